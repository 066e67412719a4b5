/* Receives application data units with plain OpenPGM and writes them to a file, until so many bytes have come.
 *
 * usage: pgm_receive INTERFACE-ADDRESS GROUP PORT FILE BYTES SKIP
 *
 * The first SKIP bytes of each unit are left out: ZeroMQ's offset, when it is 2.
 * Prints "ready" when it listens and "received UNITS BYTES" at the end. Prints OpenPGM's reasons and "lost" if data could not
 * be repaired, and ends with exit code 1. PORT is both UDP ports and PGM's own port, as with ZeroMQ.
 */
#include <poll.h>
#include <pgm/pgm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, pgm_error_t *error)
{
    fprintf(stderr, "%s: %s\n", what, error && error->message ? error->message : "refused");
    return 2;
}

static bool set(pgm_sock_t *sock, int option, int value)
{
    return pgm_setsockopt(sock, IPPROTO_PGM, option, &value, sizeof value);
}

/* Prints OpenPGM's reasons for lost data, and nothing else of its log. */
static void log_losses(const int level, const char *message, void *closure)
{
    static const char *const reasons[] = {"Lost data", "Dropped", "Data loss", "window full"};
    (void)level, (void)closure;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strstr(message, reasons[i])) {
            printf("%s\n", message);
            fflush(stdout);
            return;
        }
}

/* Waits for a packet or for OpenPGM's timers, which run within pgm_recv only: one that blocks never sends a NAK for the
 * last packets of a session. */
static void wait_for(pgm_sock_t *sock, int status)
{
    struct pollfd fds[PGM_RECV_SOCKET_READ_COUNT];
    int count = PGM_RECV_SOCKET_READ_COUNT, timeout = 100;
    struct timeval left;
    socklen_t len = sizeof left;
    const int option = status == PGM_IO_STATUS_RATE_LIMITED ? PGM_RATE_REMAIN : PGM_TIME_REMAIN;
    if (status != PGM_IO_STATUS_WOULD_BLOCK && pgm_getsockopt(sock, IPPROTO_PGM, option, &left, &len))
        timeout = (int)(left.tv_sec * 1000 + (left.tv_usec + 999) / 1000);
    memset(fds, 0, sizeof fds);
    if (pgm_poll_info(sock, fds, &count, POLLIN) == -1)
        count = 0;
    poll(fds, count, timeout);
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "usage: pgm_receive INTERFACE-ADDRESS GROUP PORT FILE BYTES SKIP\n");
        return 2;
    }
    const int port = atoi(argv[3]);
    const unsigned long long wanted = strtoull(argv[5], NULL, 10);
    const size_t skip = strtoul(argv[6], NULL, 10);
    pgm_error_t *error = NULL;
    setenv("PGM_MIN_LOG_LEVEL", "TRACE", 0);
    setenv("PGM_LOG_MASK", "0x100", 0); /* the receive window */
    pgm_log_set_handler(log_losses, NULL);
    if (!pgm_init(&error))
        return fail("pgm_init", error);

    char network[128];
    snprintf(network, sizeof network, "%s;%s", argv[1], argv[2]);
    struct pgm_addrinfo_t *found = NULL;
    if (!pgm_getaddrinfo(network, NULL, &found, &error))
        return fail("pgm_getaddrinfo", error);

    pgm_sock_t *sock = NULL;
    if (!pgm_socket(&sock, AF_INET, SOCK_SEQPACKET, IPPROTO_UDP, &error))
        return fail("pgm_socket", error);
    const bool ready = set(sock, PGM_UDP_ENCAP_UCAST_PORT, port) && set(sock, PGM_UDP_ENCAP_MCAST_PORT, port) &&
                       set(sock, PGM_RECV_ONLY, 1) && set(sock, PGM_NOBLOCK, 1) &&
                       set(sock, PGM_PASSIVE, 0) && set(sock, PGM_MTU, 1500) &&
                       set(sock, PGM_RXW_SQNS, 20000) && set(sock, PGM_PEER_EXPIRY, pgm_secs(300)) &&
                       set(sock, PGM_SPMR_EXPIRY, pgm_msecs(250)) && set(sock, PGM_NAK_BO_IVL, pgm_msecs(50)) &&
                       set(sock, PGM_NAK_RPT_IVL, pgm_msecs(200)) && set(sock, PGM_NAK_RDATA_IVL, pgm_msecs(400)) &&
                       set(sock, PGM_NAK_DATA_RETRIES, 50) && set(sock, PGM_NAK_NCF_RETRIES, 50);
    if (!ready)
        return fail("pgm_setsockopt", NULL);

    struct pgm_sockaddr_t address;
    memset(&address, 0, sizeof address);
    address.sa_port = port;
    address.sa_addr.sport = DEFAULT_DATA_SOURCE_PORT;
    if (!pgm_gsi_create_from_hostname(&address.sa_addr.gsi, &error))
        return fail("pgm_gsi_create_from_hostname", error);
    struct pgm_interface_req_t interface;
    memset(&interface, 0, sizeof interface);
    interface.ir_interface = found->ai_recv_addrs[0].gsr_interface;
    if (!pgm_bind3(sock, &address, sizeof address, &interface, sizeof interface, &interface, sizeof interface, &error))
        return fail("pgm_bind3", error);
    if (!pgm_setsockopt(sock, IPPROTO_PGM, PGM_JOIN_GROUP, &found->ai_recv_addrs[0], sizeof(struct group_req)) ||
        !pgm_setsockopt(sock, IPPROTO_PGM, PGM_SEND_GROUP, &found->ai_send_addrs[0], sizeof(struct group_req)))
        return fail("joining the group", NULL);
    if (!pgm_connect(sock, &error))
        return fail("pgm_connect", error);

    FILE *file = fopen(argv[4], "wb");
    if (!file) {
        perror(argv[4]);
        return 2;
    }
    printf("ready\n");
    fflush(stdout);

    static char unit[65536];
    unsigned long long bytes = 0, units = 0;
    while (bytes < wanted) {
        size_t len = 0;
        const int status = pgm_recv(sock, unit, sizeof unit, 0, &len, &error);
        if (status == PGM_IO_STATUS_NORMAL && len >= skip) {
            len -= skip;
            if (fwrite(unit + skip, 1, len, file) != len) {
                perror(argv[4]);
                return 2;
            }
            bytes += len;
            units += 1;
        } else if (status == PGM_IO_STATUS_RESET) {
            printf("lost\n");
            return 1;
        } else if (status == PGM_IO_STATUS_ERROR) {
            return fail("pgm_recv", error);
        } else {
            wait_for(sock, status);
        }
    }
    fclose(file);
    printf("received %llu %llu\n", units, bytes);
    pgm_close(sock, TRUE);
    pgm_freeaddrinfo(found);
    pgm_shutdown();
    return 0;
}
