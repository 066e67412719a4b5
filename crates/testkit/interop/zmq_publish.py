#!/usr/bin/env python3
"""Publish a file's lines as ZeroMQ messages over PGM.

usage: zmq_publish.py ENDPOINT FILE KBIT-PER-SECOND

Says "sent MESSAGES" when ZeroMQ has taken them all. The publisher stays for repairs until it is interrupted, and then
tells its receivers that this was the end.
"""

import signal
import sys
import time

import zmq

endpoint, path, rate = sys.argv[1], sys.argv[2], int(sys.argv[3])
context = zmq.Context()
socket = context.socket(zmq.PUB)
socket.rate = rate
socket.recovery_ivl = 60_000  # ms
socket.sndhwm = 0
socket.linger = 20_000  # ms
socket.connect(endpoint)
time.sleep(1.0)  # so that the receivers have heard of it
count = 0
with open(path, "rb") as file:
    for line in file:
        socket.send(line.rstrip(b"\n"))
        count += 1
print("sent", count, flush=True)
try:
    signal.pause()
except KeyboardInterrupt:
    pass
socket.close()
context.term()
