/* A receiver of files with libnorm, the reference implementation of NORM (RFC 5740). (C++, because normApi.h is.)
 *
 *   norm_receive DIRECTORY GROUP PORT INTERFACE NODE FILES
 *
 * Prints "ready" when its socket is open, and "received" when FILES files are complete. Each file is moved to the name in its
 * NORM_INFO message, inside DIRECTORY. The program then stays, to acknowledge, until the sender has ended or it is stopped.
 */
#include <errno.h>
#include <normApi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int fail(const char *what) {
    fprintf(stderr, "norm_receive: %s\n", what);
    return 1;
}

/* Makes the directories above a path. */
static bool make_parents(char *path) {
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
        *at = '/';
        if (!made) return false;
    }
    return true;
}

/* Moves a complete file to its name. The sender of a test chooses the name, so it is not checked. */
static bool settle(const char *directory, NormObjectHandle file) {
    char path[4096];
    int before = snprintf(path, sizeof path, "%s/", directory);
    UINT16 length = NormObjectGetInfo(file, path + before, (UINT16)(sizeof path - before - 1));
    if (!length) return false;
    path[before + length] = 0;
    return make_parents(path) && NormFileRename(file, path);
}

int main(int count, char **arg) {
    if (count != 7) return fail("DIRECTORY GROUP PORT INTERFACE NODE FILES");
    int wanted = atoi(arg[6]);
    char cache[4096];
    NormInstanceHandle instance = NormCreateInstance(false);
    if (snprintf(cache, sizeof cache, "%s/", arg[1]) >= (int)sizeof cache || !NormSetCacheDirectory(instance, cache))
        return fail("no directory");
    NormSessionHandle session =
        NormCreateSession(instance, arg[2], (unsigned short)atoi(arg[3]), (NormNodeId)atoi(arg[5]));
    if (session == NORM_SESSION_INVALID) return fail("no session");
    NormSetMulticastInterface(session, arg[4]);
    /* Odd nodes send feedback to the sender, the others to the group, which is the default. */
    NormSetDefaultUnicastNack(session, atoi(arg[5]) % 2 == 1);
    if (!NormStartReceiver(session, 32u << 20)) return fail("no receiver");
    NormSetRxSocketBuffer(session, 4u << 20);
    printf("ready\n");
    fflush(stdout);
    NormEvent event;
    while (NormGetNextEvent(instance, &event, true)) {
        if (event.type == NORM_RX_OBJECT_ABORTED) return fail("the transfer was aborted");
        if (event.type != NORM_RX_OBJECT_COMPLETED) continue;
        if (!settle(arg[1], event.object)) return fail("a file has no name, or cannot be moved");
        if (--wanted == 0) {
            printf("received\n");
            fflush(stdout);
        }
    }
    return fail("no more events");
}
