"""Network namespaces that are connected by emulated links, for benchmarks."""

import itertools
import os
import re
import subprocess

from lab import KILL_WITH_PARENT, sh


class Emulated:
    """Context manager with hosts and the emulated links of a plan. `hosts` maps a name to the groups that the host receives:
    `all`, `none` or addresses."""

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
            self.process = subprocess.Popen([*KILL_WITH_PARENT, self.emulator, self.plan], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
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

    def reported(self, line, name):
        """Returns a number of the emulator's report: the value `name` in the first line that matches the pattern `line`."""
        text = next(l for l in self.report.splitlines() if re.match(line, l))
        return float(re.search(rf"\b{name}=([\d.]+)", text).group(1))


class Triple(Emulated):
    """Hosts `source`, `tcp` and `receiver`, with the attributes of `lab.Lab`."""

    def __init__(self, emulator, links, scratch):
        super().__init__(emulator, {"source": "none", "tcp": "none", "receiver": "all"}, links, scratch)
        self.sender, self.tcp = self.namespaces["source"], self.namespaces["tcp"]
        self.receivers = [self.namespaces["receiver"]]


PACKET = 1500  # bytes of an IP packet of TCP
DATA = 1498  # bytes of an IP packet of a multicast session: the default with an MTU of 1500


def bottleneck(rtt, mbps, queue=None, jitter=None):
    """Returns the bottleneck's queue in packets and the senders' maximum jitter in ms. `rtt` is in ms, `mbps` in Mbit/s.

    The default queue is one bandwidth-delay product, at least 50 packets. The default jitter is the transmission time of one
    packet at the bottleneck."""
    queue = int(queue or max(50, -(-int(mbps * 1e6 / 8 * rtt / 1000) // PACKET)))
    return queue, PACKET * 8 / mbps / 1000 if jitter is None else jitter


def shared_path(rtt, mbps, queue, jitter):
    """Returns the plan's links of a `Triple`: both senders share a bottleneck before the receiver."""
    quarter = rtt / 4
    return (f"router r\nlink source r delay={quarter}ms jitter={jitter:g}ms back jitter=0ms\n"
            f"link tcp r delay={quarter}ms jitter={jitter:g}ms back jitter=0ms\n"
            f"link r receiver rate={mbps}M delay={quarter}ms queue=droptail,{queue}\n")


def simulated_path(links, scheme, tcp, session_start, tcp_start):
    """Returns the network and the flows of a scenario for the simulator: a session and a TCP flow over the links of a `Triple`."""
    return f"""[topology]
kind = "text"
network = \"\"\"
host source
host tcp
host receiver
{links}\"\"\"
[[flow]]
name = "multicast"
kind = "session"
scheme = "{scheme}"
packet = "{DATA} B"
from = "source"
to = "receiver"
start = "{session_start}"
alive = "250 ms"
[[flow]]
name = "tcp"
kind = "{tcp}"
packet = "{PACKET} B"
from = "tcp"
to = "receiver"
start = "{tcp_start}"
"""
