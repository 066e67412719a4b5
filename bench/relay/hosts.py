"""Hosts in network namespaces, connected by veth pairs, for the benchmarks of relays."""

import os

from lab import OFFLOADS, Program, sh


class Hosts:
    """Context manager with namespaces. A subclass creates them in `build`."""

    offloads = False

    def __init__(self):
        self.tag = f"fcbench{os.getpid()}"
        self.made = []

    def ns(self, name):
        """Returns the name of a host's namespace."""
        return f"{self.tag}-{name}"

    def add(self, name):
        """Creates the namespace of a host."""
        sh("ip", "netns", "add", self.ns(name))
        self.made.append(name)
        sh("ip", "-n", self.ns(name), "link", "set", "lo", "up")
        sh("ip", "netns", "exec", self.ns(name), "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")

    def cable(self, one, two):
        """Connects two hosts by a veth pair. Each end is (host, interface, address or None)."""
        (a, left, _), (b, right, _) = one, two
        sh("ip", "-n", self.ns(a), "link", "add", left, "type", "veth", "peer", "name", right, "netns", self.ns(b))
        for name, interface, address in [one, two]:
            for feature in [] if self.offloads else OFFLOADS:
                sh("ip", "netns", "exec", self.ns(name), "ethtool", "-K", interface, feature, "off", check=False)
            if address:
                sh("ip", "-n", self.ns(name), "address", "add", address, "dev", interface)
            sh("ip", "-n", self.ns(name), "link", "set", interface, "up")

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.made:
            sh("ip", "netns", "del", self.ns(name), check=False)

    def run(self, name, *args):
        """Starts a program on a host."""
        return Program(self.ns(name), *args)

    def count(self, name, interface, counter="rx_bytes"):
        """Returns a counter of a host's interface."""
        path = f"/sys/class/net/{interface}/statistics/{counter}"
        return int(sh("ip", "netns", "exec", self.ns(name), "cat", path))

    def datagrams(self, name):
        """Returns the number of UDP datagrams that a host has received."""
        for line in sh("ip", "netns", "exec", self.ns(name), "cat", "/proc/net/snmp").splitlines():
            if line.startswith("Udp:") and line.split()[1].isdigit():
                return int(line.split()[1])
        return 0
