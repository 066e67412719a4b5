#!/usr/bin/env python3
"""Receive a ZeroMQ publisher's messages over PGM and write them to a file, a line each.

usage: zmq_subscribe.py ENDPOINT FILE MESSAGES

Says "ready" when it listens and "received MESSAGES BYTES" at the end. The rate and the recovery interval are ZeroMQ's
own options: together they size the receive window, and the defaults (100 kbit/s, 10 s) leave room for 83 packets only.
"""

import sys

import zmq

endpoint, path, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
context = zmq.Context()
socket = context.socket(zmq.SUB)
socket.rate = 10_000  # kbit/s
socket.recovery_ivl = 30_000  # ms
socket.rcvhwm = 0
socket.subscribe(b"")
socket.connect(endpoint)
print("ready", flush=True)
count = size = 0
with open(path, "wb") as file:
    while count < wanted:
        message = socket.recv()
        file.write(message + b"\n")
        count += 1
        size += len(message) + 1
print("received", count, size, flush=True)
