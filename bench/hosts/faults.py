"""Fault injection: paths that drop packets, interfaces that go down, busy processors, suspended programs."""

import os
import signal
import subprocess
import sys
import time

from lab import KILL_WITH_PARENT, sh

# Rules on the bridge between all hosts. Drops there are silent, as in a network. A rule for a host's outgoing packets would
# make system calls of its programs fail.
FEEDBACK = 'iifname "p-recv*" ip protocol udp drop'
LARGE = "meta length > 1000 drop"
EVERYTHING = "drop"


class BridgeDrops:
    """The lab's bridge drops the packets that match an nftables rule, from `start` until `end`."""

    def __init__(self, lab, rule):
        self.lab, self.rule = lab, rule

    def start(self):
        nft(self.lab.bridge, f"table bridge fault {{ chain forward {{ type filter hook forward priority 0; {self.rule}\n}}\n}}\n")

    def end(self):
        nft(self.lab.bridge, "delete table bridge fault")


class IngressDrops:
    """The interfaces of these hosts drop all incoming packets. With both ends of a path, no packet passes the path."""

    def __init__(self, namespaces):
        self.namespaces = namespaces

    def start(self):
        for ns in self.namespaces:
            nft(ns, 'table netdev fault { chain in { type filter hook ingress device "eth0" priority 0; drop\n}\n}\n')

    def end(self):
        for ns in self.namespaces:
            nft(ns, "delete table netdev fault")


class LinkDown:
    """A host's interface goes down and up. The kernel removes its routes, and `end` adds them again, as a network manager does.
    With `renumber` the interface has another address afterwards."""

    def __init__(self, lab, ns, renumber=False):
        self.ns, self.renumber, self.address = ns, renumber, lab.addresses[ns]

    def start(self):
        sh("ip", "-n", self.ns, "link", "set", "eth0", "down")

    def end(self):
        if self.renumber:
            sh("ip", "-n", self.ns, "address", "flush", "dev", "eth0", "scope", "global")
            other = self.address.replace("10.78.", "10.78.1", 1)  # 10.78.0.3 becomes 10.78.10.3
            sh("ip", "-n", self.ns, "address", "add", f"{other}/16", "broadcast", "+", "dev", "eth0")
        sh("ip", "-n", self.ns, "link", "set", "eth0", "up")
        sh("ip", "-n", self.ns, "route", "replace", "multicast", "224.0.0.0/4", "dev", "eth0")


class Suspension:
    """A program is suspended and resumed with signals."""

    def __init__(self, program):
        self.program = program

    def start(self):
        self.send(signal.SIGSTOP)

    def end(self):
        self.send(signal.SIGCONT)

    def send(self, number):
        if self.program.ended is None:
            os.kill(self.program.process.pid, number)


class BusyPrograms:
    """Context manager with this number of programs that use a processor all the time, at normal priority."""

    def __init__(self, count):
        self.count, self.programs = count, []

    def __enter__(self):
        for _ in range(self.count):
            self.programs.append(subprocess.Popen([*KILL_WITH_PARENT, sys.executable, "-c", "while True: pass"]))
        if self.count:
            time.sleep(0.3)

    def __exit__(self, *_):
        for program in self.programs:
            program.kill()
            program.wait()


def nft(ns, text):
    """Runs nftables commands in a namespace."""
    done = subprocess.run(["ip", "netns", "exec", ns, "nft", "-f", "-"], input=text, capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        raise RuntimeError(f"nft in {ns}: {done.stderr.strip()}")
