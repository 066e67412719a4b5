#!/usr/bin/env python3
"""Send files over ALC/FLUTE with flute-alc, once each.

usage: flute_send.py INTERFACE GROUP PORT CODE RATE FILE...

CODE is none or rs28 (Reed-Solomon over GF(2^8), FEC Encoding ID 5), RATE is in bit/s. Says "sent PACKETS" at the end.
"""

import os
import socket
import sys
import time

from flute import sender

interface, group, port, code, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], float(sys.argv[5])
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
codes = {
    "none": lambda: sender.Oti.new_no_code(1_400, 64),
    "rs28": lambda: sender.Oti.new_reed_solomon_rs28(1_400, 60, 8),
}
flute = sender.Sender(17, codes[code](), sender.Config())
for path in sys.argv[6:]:
    with open(path, "rb") as file:
        location = "file:///" + os.path.basename(path)
        flute.add_object_from_buffer(file.read(), "application/octet-stream", location, None)
flute.publish()
packets = 0
due = time.monotonic()
while (packet := flute.read()) is not None:
    udp.sendto(bytes(packet), (group, port))
    packets += 1
    due += (len(packet) + 28) * 8 / rate
    time.sleep(max(0.0, due - time.monotonic()))
print("sent", packets, flush=True)
