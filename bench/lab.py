"""Network namespaces for benchmarks: a sender and receivers on one bridge, programs in them, and what they cost.

Standard library only. Needs root, iproute2 and ethtool. Everything made here is removed at the end, also after an
exception; programs are killed by their own process id.
"""

import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
LOCK = "/run/lock/faircast-lab"
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
MORTAL = ["setpriv", "--pdeathsig", "KILL"]
OFFLOADS = ["tso", "gso", "gro", "tx-udp-segmentation", "tx-gso-list", "rx-gro-list", "rx-udp-gro-forwarding"]


def end_in_order():
    """Make SIGTERM, SIGHUP and the first SIGINT an exception, so that namespaces and programs are removed then too."""
    ends = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]

    def leave(number, _):
        for each in ends:  # another one must not interrupt the tidying up
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(f"stopped by {signal.Signals(number).name}; what has been measured is kept")

    for each in ends:
        signal.signal(each, leave)


def sweep():
    """Remove what benchmarks left that were killed before they could do so: names carry a process id."""
    for line in sh("ip", "netns", "list").splitlines():
        owner = re.match(r"(?:fcbench|fcemu)(\d+)\b", line)
        if owner and not os.path.exists(f"/proc/{owner.group(1)}"):
            sh("ip", "netns", "del", line.split()[0], check=False)
    for name in os.listdir(MEMORY) if MEMORY else []:
        owner = re.match(r"faircast-bench-(\d+)-", name)
        if owner and not os.path.exists(f"/proc/{owner.group(1)}"):
            shutil.rmtree(os.path.join(MEMORY, name), ignore_errors=True)


def scratch():
    """A temporary directory in memory, so that no disk is measured."""
    return tempfile.TemporaryDirectory(dir=MEMORY, prefix=f"faircast-bench-{os.getpid()}-")


class Buffers:
    """Lets every program have socket buffers of so many bytes, 64 MiB unless said, while this lasts; all tools ask for more than
    the usual limit."""

    NAMES = ["net.core.rmem_max", "net.core.wmem_max"]
    LIMIT = 64 << 20

    def __init__(self, limit=LIMIT):
        self.limit = limit

    def __enter__(self):
        self.before = {name: int(sh("sysctl", "-n", name)) for name in self.NAMES}
        for name in self.NAMES:
            sh("sysctl", "-qw", f"{name}={self.limit}")

    def __exit__(self, *_):
        for name, value in self.before.items():
            if value != self.limit:  # otherwise another benchmark has set it, and will set it back
                sh("sysctl", "-qw", f"{name}={value}")


def sh(*args, check=True):
    """Run a short command and return what it prints."""
    done = subprocess.run(args, capture_output=True, text=True, timeout=20)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


class Turn:
    """One benchmark or test at a time on this machine, while this lasts."""

    def __enter__(self):
        self.file = open(LOCK, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


class Lab:
    """Namespaces `sender`, `receivers[i]` and `tcp` (a second sender), each with an `eth0`, on a bridge.

    With `snooping` the bridge queries for members (IGMPv3, MLDv2) and sends a group only to ports with members, as a
    router does; without, it sends everything to all. One lab at a time runs on a machine, unless the caller has its turn
    already (`turn=False`): then labs may run side by side.
    """

    count = itertools.count()

    def __init__(self, receivers, offloads=True, mtu=1500, snooping=False, turn=True):
        self.tag = f"fcbench{os.getpid()}-{next(Lab.count)}"
        self.turn = Turn() if turn else None
        self.bridge = f"{self.tag}-bridge"
        self.sender = f"{self.tag}-sender"
        self.tcp = f"{self.tag}-tcp"
        self.receivers = [f"{self.tag}-recv{i}" for i in range(receivers)]
        self.addresses = {}
        self.offloads, self.mtu, self.snooping = offloads, mtu, snooping

    def __enter__(self):
        if self.turn:
            self.turn.__enter__()
        try:
            sh("ip", "netns", "add", self.bridge)
            # The bridge needs its own IPv6 address at once: without one it cannot ask for members of IPv6 groups.
            quiet = [f"net.ipv6.conf.{which}.accept_dad=0" for which in ["all", "default"]]
            sh("ip", "netns", "exec", self.bridge, "sysctl", "-qw", *quiet)
            sh("ip", "-n", self.bridge, "link", "add", "br0", "mtu", str(self.mtu), "type", "bridge", "mcast_snooping", "0")
            sh("ip", "-n", self.bridge, "link", "set", "br0", "up")
            for number, ns in enumerate([self.sender, self.tcp, *self.receivers]):
                self.join(ns, f"10.78.{number // 250}.{number % 250 + 1}")
            if self.snooping:
                self.snoop()
        except BaseException:
            self.__exit__()
            raise
        return self

    def join(self, ns, address):
        port = self.port(ns)
        self.addresses[ns] = address
        sh("ip", "netns", "add", ns)
        sh("ip", "-n", ns, "link", "add", "eth0", "mtu", str(self.mtu), "type", "veth",
           "peer", "name", port, "mtu", str(self.mtu), "netns", self.bridge)
        if not self.offloads:
            for where, interface in [(ns, "eth0"), (self.bridge, port)]:
                for feature in OFFLOADS:
                    sh("ip", "netns", "exec", where, "ethtool", "-K", interface, feature, "off", check=False)
                shown = sh("ip", "netns", "exec", where, "ethtool", "-k", interface)
                for name in ["generic-segmentation-offload", "tcp-segmentation-offload", "generic-receive-offload"]:
                    if f"{name}: off" not in shown:
                        raise RuntimeError(f"{interface} keeps {name}")
        sh("ip", "-n", self.bridge, "link", "set", port, "master", "br0", "up")
        sh("ip", "-n", ns, "address", "add", f"{address}/16", "broadcast", "+", "dev", "eth0")
        for interface in ["lo", "eth0"]:
            sh("ip", "-n", ns, "link", "set", interface, "up")
        sh("ip", "-n", ns, "route", "add", "multicast", "224.0.0.0/4", "dev", "eth0")
        sh("ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")

    def port(self, ns):
        """The bridge's port towards a host."""
        return "p-" + ns.rsplit("-", 1)[1]

    def snoop(self):
        """Query for members, and send a group to the ports with members only."""
        for ns in [self.sender, self.tcp, *self.receivers]:
            sh("bridge", "-n", self.bridge, "link", "set", "dev", self.port(ns), "mcast_flood", "off")
        set_bridge = ["ip", "-n", self.bridge, "link", "set", "br0", "type", "bridge"]
        # A new querier forwards nothing by membership for one response interval (10 s): a short one for the beginning.
        sh(*set_bridge, "mcast_igmp_version", "3", "mcast_mld_version", "2", "mcast_query_response_interval", "10")
        sh(*set_bridge, "mcast_snooping", "1", "mcast_querier", "1")
        time.sleep(0.3)
        sh(*set_bridge, "mcast_query_response_interval", "1000")

    def groups(self, receiver):
        """The IPv4 groups that the bridge forwards to a receiver now, in the order of their addresses."""
        shown = json.loads(sh("bridge", "-n", self.bridge, "-j", "mdb", "show"))
        entries = shown[0]["mdb"] if shown else []
        found = {e["grp"] for e in entries if e["port"] == self.port(self.receivers[receiver]) and ":" not in e["grp"]}
        return sorted(found, key=lambda group: [int(part) for part in group.split(".")])

    def bottleneck(self, receiver, bits_per_second, queue=50_000, burst=5_000):
        """A token bucket with a queue of bytes before a receiver."""
        port = self.port(self.receivers[receiver])
        sh("tc", "-n", self.bridge, "qdisc", "replace", "dev", port, "root", "tbf", "rate", f"{bits_per_second}bit",
           "burst", str(burst), "limit", str(queue))

    def __exit__(self, *_):
        for ns in [self.sender, self.tcp, *self.receivers, self.bridge]:
            sh("ip", "netns", "del", ns, check=False)
        if self.turn:
            self.turn.__exit__()


class Program:
    """A program in a namespace. Notes the moment of every line it prints, and its processor time at its end."""

    def __init__(self, ns, *args, cwd=None):
        # `setpriv` and `ip netns exec` replace themselves by the program, so the process id is the program's own. It is
        # killed when the thread that started it ends, however that ends.
        self.args = [str(a) for a in args]
        self.lines, self.ended, self.cpu, self.code = [], None, None, None
        self.process = subprocess.Popen([*MORTAL, "ip", "netns", "exec", ns, *self.args], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd)
        self.readers = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._wait, daemon=True)]
        for reader in self.readers:
            reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.decode(errors="replace").rstrip()))

    def _wait(self):
        _, status, usage = os.wait4(self.process.pid, 0)
        self.code = self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu = usage.ru_utime + usage.ru_stime
        self.ended = time.monotonic()

    def said(self, word):
        """When it first printed a line with this word, or None."""
        return next((at for at, line in list(self.lines) if word in line), None)

    def wait(self, seconds):
        """Whether it ends within so many seconds."""
        self.readers[1].join(max(0, seconds))
        return self.ended is not None

    def stop(self):
        for number in [signal.SIGTERM, signal.SIGKILL]:
            if self.ended is None:
                try:
                    os.kill(self.process.pid, number)
                except ProcessLookupError:
                    pass
                self.readers[1].join(2)
        self.readers[0].join(2)

    def text(self):
        return "\n".join(line for _, line in self.lines)

    def tail(self):
        return " | ".join(line for _, line in self.lines[-4:])


class Counter(threading.Thread):
    """Samples the counters of a namespace's `eth0`, through one small reader that `ip netns exec` starts in there.

    A sample is (monotonic seconds, bytes sent, IP bytes received, of these by multicast).
    """

    READER = r"""
import sys, time
every = float(sys.argv[1])
begin = time.monotonic(); tick = 0
while True:
    row = next(l for l in open("/proc/net/dev") if l.strip().startswith("eth0:")).split(":")[1].split()
    names, values = [l.split() for l in open("/proc/net/netstat") if l.startswith("IpExt:")]
    ip = dict(zip(names, values))
    print(time.monotonic(), row[8], ip["InOctets"], ip["InMcastOctets"], flush=True)
    tick += 1
    time.sleep(max(0, begin + tick * every - time.monotonic()))
"""

    def __init__(self, ns, every=0.01):
        super().__init__(daemon=True)
        self.samples = []
        self.process = subprocess.Popen([*MORTAL, "ip", "netns", "exec", ns, sys.executable, "-u", "-c", self.READER, str(every)],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.start()

    def run(self):
        for line in self.process.stdout:
            at, *counts = line.split()
            if not line.endswith(b"\n") or len(counts) != 3:
                break  # it was stopped in the middle of a line
            self.samples.append((float(at), *map(int, counts)))

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.join(2)
        return self.samples

    def passed(self, volume):
        """When so many bytes had been sent since the first sample, or None."""
        samples = list(self.samples)
        return next((s[0] for s in samples if s[1] - samples[0][1] > volume), None)

    def at(self, moment):
        """The last sample up to a moment."""
        return [s for s in self.samples if s[0] <= moment][-1]


def machine():
    """One line about this machine."""
    with open("/proc/cpuinfo") as info:
        model = next((l.split(":")[1].strip() for l in info if l.startswith("model name")), "unknown processor")
    return f"{os.cpu_count()} x {model}, Linux {os.uname().release}"
