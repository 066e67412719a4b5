"""Network namespaces for benchmarks: a sender and receivers on one bridge, their programs, processor times and counters.

Standard library only. Needs root, iproute2 and ethtool. All namespaces, files and settings are removed at the end, also
after an exception. Programs are killed by their own process IDs.
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
KILL_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"]
OFFLOADS = ["tso", "gso", "gro", "tx-udp-segmentation", "tx-gso-list", "rx-gro-list", "rx-udp-gro-forwarding"]


def exit_on_signals():
    """Makes SIGTERM, SIGHUP and the first SIGINT raise SystemExit, so that namespaces and programs are removed."""
    signals = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]

    def stop(number, _):
        for each in signals:  # a second signal must not interrupt the cleanup
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(f"stopped by {signal.Signals(number).name}; the results of finished runs are stored")

    for each in signals:
        signal.signal(each, stop)


def sweep():
    """Removes the namespaces and directories of killed benchmarks: their names contain the ID of a process that has ended."""
    for line in sh("ip", "netns", "list").splitlines():
        owner = re.match(r"(?:fcbench|fcemu)(\d+)\b", line)
        if owner and not os.path.exists(f"/proc/{owner.group(1)}"):
            sh("ip", "netns", "del", line.split()[0], check=False)
    for name in os.listdir(MEMORY) if MEMORY else []:
        owner = re.match(r"faircast-bench-(\d+)-", name)
        if owner and not os.path.exists(f"/proc/{owner.group(1)}"):
            shutil.rmtree(os.path.join(MEMORY, name), ignore_errors=True)


def scratch():
    """Returns a temporary directory in memory: a disk would change the results."""
    return tempfile.TemporaryDirectory(dir=MEMORY, prefix=f"faircast-bench-{os.getpid()}-")


class Buffers:
    """Context manager that sets the system's limit of socket buffers, in bytes. The default is 64 MiB: all tools ask for more
    than the system's usual limit."""

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
            if value != self.limit:  # if equal, another benchmark set the limit and will restore it
                sh("sysctl", "-qw", f"{name}={value}")


def sh(*args, check=True):
    """Runs a short command and returns its standard output."""
    done = subprocess.run(args, capture_output=True, text=True, timeout=20)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


class MachineLock:
    """Context manager with a lock of the machine: one benchmark or test runs at a time."""

    def __enter__(self):
        self.file = open(LOCK, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


class Lab:
    """Context manager with namespaces `sender`, `receivers[i]` and `tcp` (a second sender), each with an `eth0`, on a bridge.

    With `snooping` the bridge queries for members (IGMPv3, MLDv2) and forwards a group to ports with members only, as a
    router does. Without, it forwards every packet to all ports. A lab takes the lock of the machine, so one lab runs at a
    time. With `lock=False` the caller is responsible for the lock, and labs may run concurrently.
    """

    count = itertools.count()

    def __init__(self, receivers, offloads=True, mtu=1500, snooping=False, lock=True):
        self.tag = f"fcbench{os.getpid()}-{next(Lab.count)}"
        self.lock = MachineLock() if lock else None
        self.bridge = f"{self.tag}-bridge"
        self.sender = f"{self.tag}-sender"
        self.tcp = f"{self.tag}-tcp"
        self.receivers = [f"{self.tag}-recv{i}" for i in range(receivers)]
        self.addresses = {}
        self.offloads, self.mtu, self.snooping = offloads, mtu, snooping

    def __enter__(self):
        if self.lock:
            self.lock.__enter__()
        try:
            sh("ip", "netns", "add", self.bridge)
            # The bridge needs its own IPv6 address at once: without an address it cannot send MLD queries.
            no_dad = [f"net.ipv6.conf.{which}.accept_dad=0" for which in ["all", "default"]]
            sh("ip", "netns", "exec", self.bridge, "sysctl", "-qw", *no_dad)
            # Where the host has loaded br_netfilter, every packet on a bridge would pass the firewall.
            sh("ip", "netns", "exec", self.bridge, "sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=0", check=False)
            sh("ip", "-n", self.bridge, "link", "add", "br0", "mtu", str(self.mtu), "type", "bridge", "mcast_snooping", "0")
            sh("ip", "-n", self.bridge, "link", "set", "br0", "up")
            for number, ns in enumerate([self.sender, self.tcp, *self.receivers]):
                self.attach(ns, f"10.78.{number // 250}.{number % 250 + 1}")
            if self.snooping:
                self.snoop()
        except BaseException:
            self.__exit__()
            raise
        return self

    def attach(self, ns, address):
        """Creates a namespace and attaches it to the bridge."""
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
                        raise RuntimeError(f"cannot switch off {name} of {interface}")
        sh("ip", "-n", self.bridge, "link", "set", port, "master", "br0", "up")
        sh("ip", "-n", ns, "address", "add", f"{address}/16", "broadcast", "+", "dev", "eth0")
        for interface in ["lo", "eth0"]:
            sh("ip", "-n", ns, "link", "set", interface, "up")
        sh("ip", "-n", ns, "route", "add", "multicast", "224.0.0.0/4", "dev", "eth0")
        sh("ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")

    def port(self, ns):
        """Returns the name of the bridge's port towards a host."""
        return "p-" + ns.rsplit("-", 1)[1]

    def snoop(self):
        """Makes the bridge a querier that forwards a group to the ports with members only."""
        for ns in [self.sender, self.tcp, *self.receivers]:
            sh("bridge", "-n", self.bridge, "link", "set", "dev", self.port(ns), "mcast_flood", "off")
        set_bridge = ["ip", "-n", self.bridge, "link", "set", "br0", "type", "bridge"]
        # A new querier ignores memberships for one response interval (10 s), so the first interval is short.
        sh(*set_bridge, "mcast_igmp_version", "3", "mcast_mld_version", "2", "mcast_query_response_interval", "10")
        sh(*set_bridge, "mcast_snooping", "1", "mcast_querier", "1")
        time.sleep(0.3)
        sh(*set_bridge, "mcast_query_response_interval", "1000")

    def groups(self, receiver):
        """Returns the IPv4 groups that the bridge forwards to a receiver now, sorted by address."""
        shown = json.loads(sh("bridge", "-n", self.bridge, "-j", "mdb", "show"))
        entries = shown[0]["mdb"] if shown else []
        found = {e["grp"] for e in entries if e["port"] == self.port(self.receivers[receiver]) and ":" not in e["grp"]}
        return sorted(found, key=lambda group: [int(part) for part in group.split(".")])

    def bottleneck(self, receiver, bits_per_second, queue=50_000, burst=5_000):
        """Puts a token bucket with a drop-tail queue (`queue`, in bytes) before a receiver."""
        port = self.port(self.receivers[receiver])
        sh("tc", "-n", self.bridge, "qdisc", "replace", "dev", port, "root", "tbf", "rate", f"{bits_per_second}bit",
           "burst", str(burst), "limit", str(queue))

    def __exit__(self, *_):
        for ns in [self.sender, self.tcp, *self.receivers, self.bridge]:
            sh("ip", "netns", "del", ns, check=False)
        if self.lock:
            self.lock.__exit__()


class Program:
    """A program in a namespace. Records each printed line with its time, and the processor time at the end."""

    def __init__(self, ns, *args, cwd=None):
        # `setpriv` and `ip netns exec` replace themselves with the program, so the process ID is the program's. The kernel
        # kills the program when the thread that started it ends for any reason.
        self.args = [str(a) for a in args]
        self.lines, self.ended, self.cpu, self.code = [], None, None, None
        self.process = subprocess.Popen([*KILL_WITH_PARENT, "ip", "netns", "exec", ns, *self.args], stdin=subprocess.DEVNULL,
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

    def printed_at(self, word):
        """Returns the time of the first printed line with this word, or None."""
        return next((at for at, line in list(self.lines) if word in line), None)

    def wait(self, seconds):
        """Waits for the end of the program at most this time. Returns whether the program has ended."""
        self.readers[1].join(max(0, seconds))
        return self.ended is not None

    def stop(self):
        """Ends the program with SIGTERM, or with SIGKILL after 2 s."""
        for number in [signal.SIGTERM, signal.SIGKILL]:
            if self.ended is None:
                try:
                    os.kill(self.process.pid, number)
                except ProcessLookupError:
                    pass
                self.readers[1].join(2)
        self.readers[0].join(2)

    def text(self):
        """Returns all printed lines."""
        return "\n".join(line for _, line in self.lines)

    def tail(self):
        """Returns the last four printed lines as one line."""
        return " | ".join(line for _, line in self.lines[-4:])


class Counter(threading.Thread):
    """Samples the counters of a namespace's `eth0`. A small program in the namespace reads them.

    A sample is (monotonic seconds, bytes sent, IP bytes received, IP bytes received by multicast).
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
        self.process = subprocess.Popen([*KILL_WITH_PARENT, "ip", "netns", "exec", ns, sys.executable, "-u", "-c", self.READER, str(every)],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.start()

    def run(self):
        for line in self.process.stdout:
            at, *counts = line.split()
            if not line.endswith(b"\n") or len(counts) != 3:
                break  # an incomplete line: the reader was stopped while it wrote
            self.samples.append((float(at), *map(int, counts)))

    def stop(self):
        """Stops the sampling and returns the samples."""
        self.process.kill()
        self.process.wait()
        self.join(2)
        return self.samples

    def passed(self, volume):
        """Returns the time at which more than `volume` bytes had been sent since the first sample, or None."""
        samples = list(self.samples)
        return next((s[0] for s in samples if s[1] - samples[0][1] > volume), None)

    def at(self, moment):
        """Returns the last sample up to a moment."""
        return [s for s in self.samples if s[0] <= moment][-1]


def machine():
    """Returns the processors and the kernel of this machine in one line."""
    with open("/proc/cpuinfo") as info:
        model = next((l.split(":")[1].strip() for l in info if l.startswith("model name")), "unknown processor")
    return f"{os.cpu_count()} x {model}, Linux {os.uname().release}"
