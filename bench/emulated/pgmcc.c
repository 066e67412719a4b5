/* OpenPGM's own PGMCC between two of its peers, over UDP.
 *
 * usage: pgmcc send ADDRESS GROUP PORT SECONDS    sends units of 1400 bytes as fast as the window lets it
 *        pgmcc recv ADDRESS GROUP PORT SECONDS    receives, and prints units and bytes at the end
 */
#include <pgm/pgm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>

enum { UNIT = 1400 };

static void fail(const char *what, pgm_error_t *error)
{
    fprintf(stderr, "%s: %s\n", what, error && error->message ? error->message : "refused");
    exit(2);
}

static void set(pgm_sock_t *sock, int option, int value, const char *name)
{
    if (!pgm_setsockopt(sock, IPPROTO_PGM, option, &value, sizeof value))
        fail(name, NULL);
}
#define SET(option, value) set(sock, option, value, #option)

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

/* Sleeps until OpenPGM wants to be called again. */
static void rest(pgm_sock_t *sock, int option)
{
    struct timeval left = {0, 10000};
    socklen_t len = sizeof left;
    pgm_getsockopt(sock, IPPROTO_PGM, option, &left, &len);
    if (left.tv_sec > 0 || left.tv_usec > 10000)
        left = (struct timeval){0, 10000};
    if (left.tv_usec < 100)
        left.tv_usec = 100;
    fd_set readable;
    FD_ZERO(&readable);
    int count = 0;
    pgm_select_info(sock, &readable, NULL, &count);
    select(count, &readable, NULL, NULL, &left);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: pgmcc send|recv ADDRESS GROUP PORT SECONDS\n");
        return 2;
    }
    const bool sends = strcmp(argv[1], "send") == 0;
    const int port = atoi(argv[4]);
    pgm_error_t *error = NULL;
    if (!pgm_init(&error))
        fail("pgm_init", error);
    char network[128];
    snprintf(network, sizeof network, "%s;%s", argv[2], argv[3]);
    struct pgm_addrinfo_t *found = NULL;
    if (!pgm_getaddrinfo(network, NULL, &found, &error))
        fail("pgm_getaddrinfo", error);
    pgm_sock_t *sock = NULL;
    if (!pgm_socket(&sock, AF_INET, SOCK_SEQPACKET, IPPROTO_UDP, &error))
        fail("pgm_socket", error);
    SET(PGM_UDP_ENCAP_UCAST_PORT, port);
    SET(PGM_UDP_ENCAP_MCAST_PORT, port);
    SET(PGM_MTU, 1500);
    /* ack_c and ack_c_p are the loss filter's and the election's constants in OpenPGM's own examples. */
    struct pgm_pgmccinfo_t pgmcc = {.ack_bo_ivl = pgm_msecs(50), .ack_c = 75, .ack_c_p = 500};
    if (sends) {
        SET(PGM_SEND_ONLY, 1);
        SET(PGM_TXW_SQNS, 20000);
        SET(PGM_AMBIENT_SPM, pgm_secs(8));
        const int beats[] = {pgm_msecs(100), pgm_msecs(100), pgm_msecs(1300), pgm_secs(7)};
        if (!pgm_setsockopt(sock, IPPROTO_PGM, PGM_HEARTBEAT_SPM, &beats, sizeof beats))
            fail("PGM_HEARTBEAT_SPM", NULL);
    } else {
        SET(PGM_RECV_ONLY, 1);
        SET(PGM_PASSIVE, 0);
        SET(PGM_RXW_SQNS, 20000);
        SET(PGM_PEER_EXPIRY, pgm_secs(300));
        SET(PGM_SPMR_EXPIRY, pgm_msecs(250));
        SET(PGM_NAK_BO_IVL, pgm_msecs(50));
        SET(PGM_NAK_RPT_IVL, pgm_msecs(200));
        SET(PGM_NAK_RDATA_IVL, pgm_msecs(400));
        SET(PGM_NAK_DATA_RETRIES, 50);
        SET(PGM_NAK_NCF_RETRIES, 50);
    }
    if (!pgm_setsockopt(sock, IPPROTO_PGM, PGM_USE_PGMCC, &pgmcc, sizeof pgmcc))
        fail("PGM_USE_PGMCC", NULL);
    SET(PGM_NOBLOCK, 1);
    struct pgm_sockaddr_t address;
    memset(&address, 0, sizeof address);
    address.sa_port = port;
    address.sa_addr.sport = DEFAULT_DATA_SOURCE_PORT;
    if (!pgm_gsi_create_from_hostname(&address.sa_addr.gsi, &error))
        fail("pgm_gsi_create_from_hostname", error);
    if (sends)
        address.sa_addr.gsi.identifier[5] ^= 1; /* both hosts have this machine's name */
    struct pgm_interface_req_t interface;
    memset(&interface, 0, sizeof interface);
    interface.ir_interface = found->ai_recv_addrs[0].gsr_interface;
    if (!pgm_bind3(sock, &address, sizeof address, &interface, sizeof interface, &interface, sizeof interface, &error))
        fail("pgm_bind3", error);
    if (!pgm_setsockopt(sock, IPPROTO_PGM, PGM_JOIN_GROUP, &found->ai_recv_addrs[0], sizeof(struct group_req)) ||
        !pgm_setsockopt(sock, IPPROTO_PGM, PGM_SEND_GROUP, &found->ai_send_addrs[0], sizeof(struct group_req)))
        fail("joining the group", NULL);
    if (!pgm_connect(sock, &error))
        fail("pgm_connect", error);
    printf("ready\n");
    fflush(stdout);

    static char unit[65536];
    unsigned long long units = 0, bytes = 0, resets = 0;
    const double end = now() + atof(argv[5]);
    while (now() < end) {
        size_t len = 0;
        int status;
        if (sends) {
            /* With PGMCC's option in the header, OpenPGM 5.3.128 crashes when it copies from an address that is a multiple
             * of 16: its checksum takes the copy's address for one as well. */
            status = pgm_send(sock, unit + 4, UNIT, &len);
            len = UNIT;
        } else {
            status = pgm_recv(sock, unit, sizeof unit, MSG_DONTWAIT, &len, &error);
        }
        if (status == PGM_IO_STATUS_NORMAL) {
            units += 1;
            bytes += len;
        } else if (status == PGM_IO_STATUS_RESET) {
            resets += 1;
        } else if (status == PGM_IO_STATUS_ERROR) {
            fail("transfer", error);
        }
        if (sends) { /* acknowledgements are read here; nothing is ever delivered */
            static char other[65536];
            size_t read = 0;
            if (pgm_recv(sock, other, sizeof other, MSG_DONTWAIT, &read, NULL) == PGM_IO_STATUS_ERROR)
                fail("reading acknowledgements", NULL);
        }
        if (status != PGM_IO_STATUS_NORMAL)
            rest(sock, status == PGM_IO_STATUS_RATE_LIMITED ? PGM_RATE_REMAIN : PGM_TIME_REMAIN);
    }
    printf("units %llu bytes %llu resets %llu\n", units, bytes, resets);
    pgm_close(sock, FALSE);
    pgm_freeaddrinfo(found);
    pgm_shutdown();
    return 0;
}
