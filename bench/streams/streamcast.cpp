/* A stream to many receivers with NORM (RFC 5740), through the NormStream interface of libnorm.
 *
 *   streamcast send GROUP PORT INTERFACE RATE SEGMENT BLOCK PARITY AUTO BUFFER
 *   streamcast recv GROUP PORT INTERFACE NODE BUFFER
 *
 * `send` copies standard input into a stream, and flushes after every read; `recv` copies the stream to standard output. RATE is
 * in bit/s, or "cc" for NORM's own congestion control; SEGMENT and BUFFER are in bytes; BLOCK, PARITY and AUTO (parity that is
 * sent with each block) in segments. (C++, because normApi.h is.)
 */
#include <normApi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what) {
    fprintf(stderr, "streamcast: %s\n", what);
    return 1;
}

static int send_stream(char **arg) {
    unsigned buffer = (unsigned)strtoul(arg[8], NULL, 10);
    int paced = strcmp(arg[3], "cc") != 0;
    NormInstanceHandle instance = NormCreateInstance(false);
    NormSessionHandle session = NormCreateSession(instance, arg[0], (unsigned short)atoi(arg[1]), 1);
    if (session == NORM_SESSION_INVALID) return fail("no session");
    NormSetMulticastInterface(session, arg[2]);
    NormSetGrttEstimate(session, 0.001);
    NormSetGrttMax(session, 1.0);
    NormSetBackoffFactor(session, 1.0);
    NormSetGroupSize(session, 10.0);
    if (paced) {
        NormSetTxRate(session, strtod(arg[3], NULL));
        NormSetCongestionControl(session, false, false);
    } else {
        NormSetTxRate(session, 1e7);
        NormSetCongestionControl(session, true, true);
    }
    if (!NormStartSender(session, 1, buffer, (unsigned short)atoi(arg[4]), (unsigned short)atoi(arg[5]),
                         (unsigned short)atoi(arg[6]), 0))
        return fail("no sender");
    NormSetAutoParity(session, (unsigned char)atoi(arg[7]));
    NormSetTxSocketBuffer(session, 8u << 20);
    NormObjectHandle stream = NormStreamOpen(session, buffer, NULL, 0);
    if (stream == NORM_OBJECT_INVALID) return fail("no stream");
    static char bytes[65536];
    ssize_t len;
    while ((len = read(0, bytes, sizeof bytes)) > 0) {
        for (ssize_t at = 0; at < len;) {
            unsigned taken = NormStreamWrite(stream, bytes + at, (unsigned)(len - at));
            at += taken;
            if (taken == 0) usleep(100); /* the buffer is full */
        }
        NormStreamFlush(stream, false, NORM_FLUSH_PASSIVE);
    }
    NormStreamClose(stream, true);
    sleep(3);
    _Exit(0);
}

static int receive_stream(char **arg) {
    unsigned buffer = (unsigned)strtoul(arg[4], NULL, 10);
    NormInstanceHandle instance = NormCreateInstance(false);
    NormSessionHandle session =
        NormCreateSession(instance, arg[0], (unsigned short)atoi(arg[1]), (NormNodeId)atoi(arg[3]));
    if (session == NORM_SESSION_INVALID) return fail("no session");
    NormSetMulticastInterface(session, arg[2]);
    NormSetDefaultUnicastNack(session, true);
    if (!NormStartReceiver(session, buffer)) return fail("no receiver");
    NormSetRxSocketBuffer(session, 32u << 20);
    fprintf(stderr, "ready\n");
    NormEvent event;
    static char bytes[65536];
    while (NormGetNextEvent(instance, &event, true)) {
        if (event.type == NORM_RX_OBJECT_UPDATED) {
            unsigned len = sizeof bytes;
            while (NormStreamRead(event.object, bytes, &len) && len > 0) {
                for (unsigned at = 0; at < len;) {
                    ssize_t put = write(1, bytes + at, len - at);
                    if (put <= 0) return fail("no output");
                    at += (unsigned)put;
                }
                len = sizeof bytes;
            }
        } else if (event.type == NORM_RX_OBJECT_COMPLETED || event.type == NORM_RX_OBJECT_ABORTED) {
            _Exit(0);
        }
    }
    return fail("no more events");
}

int main(int count, char **arg) {
    if (count == 11 && !strcmp(arg[1], "send")) return send_stream(arg + 2);
    if (count == 7 && !strcmp(arg[1], "recv")) return receive_stream(arg + 2);
    return fail("usage: streamcast send|recv ...");
}
