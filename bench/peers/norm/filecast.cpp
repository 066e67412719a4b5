/* One file to many receivers with NORM (RFC 5740), through the NormFile interface of libnorm.
 *
 *   filecast send FILE GROUP PORT INTERFACE RECEIVERS RATE SEGMENT BLOCK PARITY BUFFER
 *   filecast recv DIRECTORY GROUP PORT INTERFACE NODE BUFFER
 *
 * RATE is in bit/s, or "cc" for NORM's own congestion control; SEGMENT and BUFFER are in bytes; BLOCK and PARITY in
 * segments. (C++, because normApi.h is.) Receivers have the node numbers 2, 3, ...; the sender ends when all of them have acknowledged everything.
 */
#include <normApi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what) {
    fprintf(stderr, "filecast: %s\n", what);
    return 1;
}

static int send_file(char **arg) {
    unsigned buffer = (unsigned)strtoul(arg[9], NULL, 10);
    int receivers = atoi(arg[4]), paced = strcmp(arg[5], "cc") != 0;
    NormInstanceHandle instance = NormCreateInstance(false);
    NormSessionHandle session = NormCreateSession(instance, arg[1], (unsigned short)atoi(arg[2]), 1);
    if (session == NORM_SESSION_INVALID) return fail("no session");
    NormSetMulticastInterface(session, arg[3]);
    NormSetGrttEstimate(session, 0.001);
    NormSetGrttMax(session, 1.0);
    NormSetBackoffFactor(session, 1.0);
    NormSetGroupSize(session, 10.0);
    NormSetTxCacheBounds(session, (NormSize)1 << 30, 1, 256);
    if (paced) {
        NormSetTxRate(session, strtod(arg[5], NULL));
        NormSetCongestionControl(session, false, false);
    } else {
        NormSetTxRate(session, 1e7);
        NormSetCongestionControl(session, true, true);
    }
    if (!NormStartSender(session, 1, buffer, (unsigned short)atoi(arg[6]), (unsigned short)atoi(arg[7]),
                         (unsigned short)atoi(arg[8]), 0))
        return fail("no sender");
    NormSetTxSocketBuffer(session, 8u << 20);
    for (int i = 0; i < receivers; i++) NormAddAckingNode(session, (NormNodeId)(2 + i));
    NormObjectHandle file = NormFileEnqueue(session, arg[0], "file", 4);
    if (file == NORM_OBJECT_INVALID) return fail("the file cannot be enqueued");
    if (!NormSetWatermark(session, file, false)) return fail("no watermark");
    NormEvent event;
    while (NormGetNextEvent(instance, &event, true)) {
        if (event.type != NORM_TX_WATERMARK_COMPLETED) continue;
        if (NormGetAckingStatus(session, NORM_NODE_ANY) == NORM_ACK_SUCCESS) {
            printf("done\n");
            fflush(stdout);
            _Exit(0);
        }
        NormSetWatermark(session, file, false); /* somebody is late: ask again */
    }
    return fail("no more events");
}

static int receive_file(char **arg) {
    unsigned buffer = (unsigned)strtoul(arg[5], NULL, 10);
    char path[1024];
    NormInstanceHandle instance = NormCreateInstance(false);
    if (snprintf(path, sizeof path, "%s/", arg[0]) >= (int)sizeof path || !NormSetCacheDirectory(instance, path))
        return fail("no directory");
    NormSessionHandle session =
        NormCreateSession(instance, arg[1], (unsigned short)atoi(arg[2]), (NormNodeId)atoi(arg[4]));
    if (session == NORM_SESSION_INVALID) return fail("no session");
    NormSetMulticastInterface(session, arg[3]);
    NormSetRxCacheLimit(session, 256);
    NormSetDefaultUnicastNack(session, true);
    if (!NormStartReceiver(session, buffer)) return fail("no receiver");
    NormSetRxSocketBuffer(session, 32u << 20);
    printf("ready\n");
    fflush(stdout);
    NormEvent event;
    while (NormGetNextEvent(instance, &event, true)) {
        if (event.type == NORM_RX_OBJECT_COMPLETED) {
            snprintf(path, sizeof path, "%s/received", arg[0]);
            NormFileRename(event.object, path);
            printf("done\n");
            fflush(stdout); /* stays, to acknowledge, until it is stopped */
        } else if (event.type == NORM_RX_OBJECT_ABORTED) {
            return fail("the transfer was aborted");
        }
    }
    return fail("no more events");
}

int main(int count, char **arg) {
    if (count == 12 && strcmp(arg[1], "send") == 0) return send_file(arg + 2);
    if (count == 8 && strcmp(arg[1], "recv") == 0) return receive_file(arg + 2);
    fprintf(stderr, "usage: filecast send FILE GROUP PORT INTERFACE RECEIVERS RATE SEGMENT BLOCK PARITY BUFFER\n"
                    "       filecast recv DIRECTORY GROUP PORT INTERFACE NODE BUFFER\n");
    return 2;
}
