/* Receives application data units with plain OpenPGM and writes them to a file, until so many bytes have come.
 *
 * usage: pgm_receive INTERFACE-ADDRESS GROUP PORT FILE BYTES
 *
 * Says "ready" when it listens and "received UNITS BYTES" at the end; "lost" and exit code 1 when OpenPGM reports data
 * that could not be repaired. PORT is both UDP ports and PGM's own port, as with ZeroMQ.
 */
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

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: pgm_receive INTERFACE-ADDRESS GROUP PORT FILE BYTES\n");
        return 2;
    }
    const int port = atoi(argv[3]);
    const unsigned long long wanted = strtoull(argv[5], NULL, 10);
    pgm_error_t *error = NULL;
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
                       set(sock, PGM_RECV_ONLY, 1) && set(sock, PGM_PASSIVE, 0) && set(sock, PGM_MTU, 1500) &&
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
        if (status == PGM_IO_STATUS_NORMAL) {
            if (fwrite(unit, 1, len, file) != len) {
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
        }
    }
    fclose(file);
    printf("received %llu %llu\n", units, bytes);
    pgm_close(sock, TRUE);
    pgm_freeaddrinfo(found);
    pgm_shutdown();
    return 0;
}
