"""Namespaces joined by emulated links, for benchmarks."""

import itertools
import os
import re
import subprocess

from lab import MORTAL, sh


class Emulated:
    """Hosts, joined by a plan's links while this lasts. `hosts` says which groups each gets: `all`, `none` or addresses."""

    count = itertools.count(1)

    def __init__(self, emulator, hosts, links, scratch):
        number = next(Emulated.count)
        self.emulator, self.hosts, self.links = emulator, hosts, links
        self.plan = os.path.join(scratch, f"plan{number}")
        self.namespaces = {name: f"fcemu{os.getpid()}-{number}-{name}" for name in hosts}
        self.addresses = {ns: f"10.79.0.{number + 1}" for number, ns in enumerate(self.namespaces.values())}
        self.process, self.report = None, ""

    def __enter__(self):
        try:
            for ns in self.namespaces.values():
                sh("ip", "netns", "add", ns)
                sh("ip", "-n", ns, "link", "set", "lo", "up")
                sh("ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")
            with open(self.plan, "w", encoding="utf-8") as file:
                for name, ns in self.namespaces.items():
                    file.write(f"host {name} {self.addresses[ns]} netns={ns} groups={self.hosts[name]}\n")
                file.write(self.links)
            self.process = subprocess.Popen([*MORTAL, self.emulator, self.plan], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True)
            if self.process.stdout.readline() != "ready\n":
                raise RuntimeError(self.process.stderr.read().strip())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            try:
                self.report, _ = self.process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        for ns in self.namespaces.values():
            sh("ip", "netns", "del", ns, check=False)

    def told(self, line, name):
        """A number of the emulator's report: of the line that begins with these words, the value of this name."""
        text = next(l for l in self.report.splitlines() if re.match(line, l))
        return float(re.search(rf"\b{name}=([\d.]+)", text).group(1))


class Triple(Emulated):
    """Hosts `source`, `tcp` and `receiver`, under the names that the other benchmarks' labs use."""

    def __init__(self, emulator, links, scratch):
        super().__init__(emulator, {"source": "none", "tcp": "none", "receiver": "all"}, links, scratch)
        self.sender, self.tcp = self.namespaces["source"], self.namespaces["tcp"]
        self.receivers = [self.namespaces["receiver"]]


PACKET = 1500


def bottleneck(rtt, mbps, queue=None, jitter=None):
    """A bottleneck's queue in packets (one bandwidth-delay product, but at least 50), and the senders' jitter in ms (up to one
    transmission at the bottleneck), unless they are given. `rtt` in ms, `mbps` in Mbit/s."""
    queue = int(queue or max(50, -(-int(mbps * 1e6 / 8 * rtt / 1000) // PACKET)))
    return queue, PACKET * 8 / mbps / 1000 if jitter is None else jitter


def shared_path(rtt, mbps, queue, jitter):
    """The links of a `Triple` whose two senders share a bottleneck before the receiver."""
    quarter = rtt / 4
    return (f"router r\nlink source r delay={quarter}ms jitter={jitter:g}ms back jitter=0ms\n"
            f"link tcp r delay={quarter}ms jitter={jitter:g}ms back jitter=0ms\n"
            f"link r receiver rate={mbps}M delay={quarter}ms queue=droptail,{queue}\n")
