#!/usr/bin/env python3
"""Receive files over ALC/FLUTE with flute-alc and write them below a directory.

usage: flute_receive.py INTERFACE GROUP PORT DIRECTORY NAME=BYTES...

Says "ready" when it listens and "received FILES PACKETS" when all these files are there with so many bytes.
"""

import os
import socket
import struct
import sys

from flute import receiver

interface, group, port, directory = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
wanted = [name.rsplit("=", 1) for name in sys.argv[5:]]
os.makedirs(directory, exist_ok=True)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
udp.bind((group, port))
membership = struct.pack("4s4s", socket.inet_aton(group), socket.inet_aton(interface))
udp.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
endpoint = receiver.UDPEndpoint(group, port)
flute = receiver.MultiReceiver(receiver.ObjectWriterBuilder(directory), receiver.Config())


def complete():
    """Whether every file has its bytes."""
    paths = [(os.path.join(directory, name), int(size)) for name, size in wanted]
    return all(os.path.isfile(path) and os.path.getsize(path) == size for path, size in paths)


print("ready", flush=True)
packets = 0
while not complete():
    flute.push(endpoint, udp.recv(65_536))
    packets += 1
print("received", len(wanted), packets, flush=True)
