"""Joins and leaves by host and group, from the IGMP and MLD reports that a router receives.

Standard library only. `Watch` starts this file in the router's namespace and reads its output.
"""

import collections
import ctypes
import ipaddress
import os
import socket
import struct
import subprocess
import sys
import threading
import time

ALL_PROTOCOLS, INCOMING, ATTACH_FILTER = 0x0003, (0, 1, 2, 3), 26
# A packet filter: IPv4 with protocol IGMP, or IPv6 with hop-by-hop options first, as in MLD.
PROGRAM = [(0x28, 0, 0, 12), (0x15, 0, 2, 0x0800), (0x30, 0, 0, 23), (0x15, 3, 4, 2), (0x15, 0, 3, 0x86DD),
           (0x30, 0, 0, 20), (0x15, 0, 1, 0), (0x06, 0, 0, 0xFFFF), (0x06, 0, 0, 0)]
V3_REPORT, V1_REPORT, V2_REPORT, V2_LEAVE = 0x22, 0x12, 0x16, 0x17
MLD2_REPORT, MLD1_REPORT, MLD1_DONE = 143, 131, 132

Change = collections.namedtuple("Change", "at port group joined")


def records(frame):
    """Yields (group, record type of IGMPv3, sources) for each group in a frame."""
    if frame[12:14] == b"\x08\x00":
        body, width = frame[14 + 4 * (frame[14] & 15):], 4
        kinds = {V3_REPORT: "many", V1_REPORT: 4, V2_REPORT: 4, V2_LEAVE: 3}
    else:
        body, width = frame[54 + 8 * (frame[55] + 1):], 16
        kinds = {MLD2_REPORT: "many", MLD1_REPORT: 4, MLD1_DONE: 3}
    kind = kinds.get(body[0] if body else None)
    if kind == "many":
        (left,), at = struct.unpack("!H", body[6:8]), 8
        while left > 0 and at + 4 + width <= len(body):
            record, extra, count = struct.unpack("!BBH", body[at:at + 4])
            at += 4
            addresses = [str(ipaddress.ip_address(body[at + i * width:at + (i + 1) * width])) for i in range(count + 1)]
            yield addresses[0], record, addresses[1:]
            at += (count + 1) * width + extra * 4
            left -= 1
    elif kind:
        at = 4 if width == 4 else 8
        yield str(ipaddress.ip_address(body[at:at + width])), kind, []


class State:
    """The memberships of each port. A repeated report changes nothing."""

    def __init__(self):
        self.sources = {}

    def change(self, port, group, record, sources):
        """Applies a record. Returns True if the port becomes a member, False if its membership ends, None otherwise."""
        before = self.sources.get((port, group))
        after = set(before or ())
        if record in (2, 4):  # exclude some sources
            after = {"any"}
        elif record in (1, 3):  # include these sources only
            after = set(sources)
        elif record == 5:
            after |= set(sources)
        elif record == 6:
            after -= set(sources)
        if after:
            self.sources[port, group] = after
        else:
            self.sources.pop((port, group), None)
        return None if bool(before) == bool(after) else bool(after)


class Watch(threading.Thread):
    """Collects the membership changes that a lab's router receives, until it is stopped."""

    def __init__(self, lab):
        super().__init__(daemon=True)
        self.changes, self.reports = [], 0
        self.process = subprocess.Popen(["ip", "netns", "exec", lab.bridge, sys.executable, "-u", os.path.abspath(__file__)],
                                        stdout=subprocess.PIPE)
        self.process.stdout.readline()  # the line `listening`
        self.start()

    def run(self):
        state = State()
        for line in self.process.stdout:
            at, port, group, record, *sources = line.decode().split()
            self.reports += 1
            changed = state.change(port, group, int(record), sources)
            if changed is not None:
                self.changes.append(Change(float(at), port, group, changed))

    def stop(self):
        """Stops the process and returns the changes."""
        self.process.kill()
        self.process.wait()
        self.join(2)
        return self.changes


def main():
    # All protocols: a bridge takes the packets of its ports before sockets of a single protocol get them.
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in PROGRAM))
    tap.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, struct.pack("HL", len(PROGRAM), ctypes.addressof(code)))
    print("listening", flush=True)
    while True:
        frame, (port, _, direction, *_) = tap.recvfrom(65535)
        at = time.monotonic()
        if direction in INCOMING and port.startswith("p-"):
            for group, record, sources in records(frame):
                print(at, port, group, record, *sources, flush=True)


if __name__ == "__main__":
    main()
