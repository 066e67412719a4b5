#!/usr/bin/env python3
"""A destination with a limited rate: runs a command and reads its standard output at given rates.

    throttle.py 10:6,30:6,10 COMMAND...

reads 10 MB/s for six seconds after the first byte, then 30 MB/s for six seconds, then 10 MB/s. Every 50 ms it prints
`read SECONDS BYTES LIMIT` (monotonic clock, bytes so far, present limit in MB/s), and at the end `digest SHA-256`. The standard
error of the command goes to the standard error of this script.
"""

import ctypes
import hashlib
import os
import signal
import subprocess
import sys
import time

STEP = 0.002  # seconds between two reads
PRINT = 0.05  # seconds between two printed lines


def parse(text):
    """Returns a profile as `[(end in seconds, bytes per second), ...]`. The last rate applies until the end of the output."""
    rates, until = [], 0.0
    for part in text.split(","):
        rate, _, lasts = part.partition(":")
        until = until + float(lasts) if lasts else float("inf")
        rates.append((until, float(rate) * 1e6))
    return rates


def limit(rates, at):
    """Returns the limit at a time of the profile, in bytes per second."""
    return next((rate for until, rate in rates if at < until), rates[-1][1])


def main():
    rates = parse(sys.argv[1])
    die_with_parent = lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    child = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, preexec_fn=die_with_parent)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    pipe, digest = child.stdout.fileno(), hashlib.sha256()
    begin, allowed, read, printed = None, 0.0, 0, 0.0
    last = time.monotonic()
    while True:
        now = time.monotonic()
        rate = limit(rates, now - begin) if begin else rates[0][1]
        # Unused bytes expire after 20 ms: a slow destination has no credit for the past.
        allowed = min(allowed + (now - last) * rate, 0.02 * rate)
        last = now
        if allowed < 4096:
            time.sleep(STEP)
            continue
        part = os.read(pipe, min(int(allowed), 1 << 20))
        if not part:
            break
        at = time.monotonic()  # after the read: the first read waits for the start of the session
        begin = begin or at
        allowed -= len(part)
        read += len(part)
        digest.update(part)
        if at - printed >= PRINT:
            printed = at
            print("read", f"{at:.4f}", read, f"{rate / 1e6:g}", flush=True)
    print("read", f"{time.monotonic():.4f}", read, f"{rate / 1e6:g}", flush=True)
    print("digest", digest.hexdigest(), flush=True)
    sys.exit(child.wait())


if __name__ == "__main__":
    main()
