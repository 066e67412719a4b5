#!/usr/bin/env python3
"""The ends of a measured stream, and a fan-out over TCP.

    ends.py write RATE RECORD SECONDS     writes records at a rate in bit/s to standard output, each with its time
    ends.py read RECORD SKIP              reads records from standard input; prints their latencies as JSON
    ends.py listen PORT                   accepts one connection and copies it to standard output
    ends.py fan PORT HOST...              copies standard input to one connection per host

A record begins with the time at which it is written, on the monotonic clock, which all namespaces of a machine share. `read`
ignores the records that were written during the first SKIP seconds.
"""

import json
import os
import socket
import struct
import sys
import threading
import time

STAMP = struct.Struct("<Q")


def write(rate, record, seconds):
    """Writes records. Each is due at its time; a record that the reader delays has the time at which it was due."""
    filler, period = bytes(record - STAMP.size), record * 8 / rate
    begin = time.monotonic()
    for number in range(int(seconds / period)):
        due = begin + number * period
        if (wait := due - time.monotonic()) > 0:
            time.sleep(wait)
        part = memoryview(STAMP.pack(int(due * 1e9)) + filler)
        while part:
            part = part[os.write(1, part):]


def read(record, skip):
    """Reads records until the end. A record arrives with its last byte."""
    first, found, rest = None, [], b""
    total = 0
    while part := os.read(0, 1 << 20):
        now = time.monotonic_ns()
        total += len(part)
        rest += part
        whole = len(rest) // record
        for at in range(0, whole * record, record):
            (stamp,) = STAMP.unpack_from(rest, at)
            first = first or stamp
            if stamp - first >= skip * 1e9:
                found.append((now - stamp) / 1e6)
        rest = rest[whole * record:]
    found.sort()
    at = lambda share: found[min(int(share * len(found)), len(found) - 1)] if found else None
    print(json.dumps({"records": len(found), "bytes": total, "p50_ms": at(0.5), "p99_ms": at(0.99), "most_ms": at(1)}))


def listen(port):
    """Copies one connection to standard output."""
    with socket.create_server(("", port)) as server:
        connection, _ = server.accept()
        while part := connection.recv(1 << 20):
            while part:
                part = part[os.write(1, part):]


def fan(port, hosts):
    """Copies standard input to all hosts, each in its own thread, so that one host does not delay the others."""
    connections = [socket.create_connection((host, port)) for host in hosts]
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    queues, ready, ended = [[] for _ in hosts], threading.Condition(), []

    def send(connection, queue):
        while True:
            with ready:
                ready.wait_for(lambda: queue or ended)
                if not queue:
                    break
                parts, queue[:] = b"".join(queue), []
            connection.sendall(parts)
        connection.close()

    threads = [threading.Thread(target=send, args=both) for both in zip(connections, queues)]
    for thread in threads:
        thread.start()
    while part := os.read(0, 1 << 16):
        with ready:
            for queue in queues:
                queue.append(part)
            ready.notify_all()
    with ready:
        ended.append(True)
        ready.notify_all()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "write":
        write(float(rest[0]), int(rest[1]), float(rest[2]))
    elif what == "read":
        read(int(rest[0]), float(rest[1]))
    elif what == "listen":
        listen(int(rest[0]))
    else:
        fan(int(rest[0]), rest[1:])
