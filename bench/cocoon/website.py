"""A web server, a bottleneck, and clients with different round-trip times.

    web --veth-- edge [tbf, 20 packets] --emulated delay-- client1, client2, client3

Standard library only. The queue is on the edge, not on the server's host: there a full queue would notify the server's TCP
directly. So the server's TCP detects drops as it detects any other loss in a network. The emulated links only add delay.
"""

import json
import os
import re
import signal
import subprocess
import time

from lab import KILL_WITH_PARENT, OFFLOADS, sh
from links import Emulated

SERVER = "10.79.9.1"
PORT = 8080
PACKET = 1514  # with the Ethernet header, as tbf counts it


def inside(ns, *args, check=True):
    """Runs a short command in a namespace and returns its standard output."""
    return sh("ip", "netns", "exec", ns, *args, check=check)


class Site(Emulated):
    """The namespaces. `rtts` are the round-trip times of the clients in ms. Each client has its own /24, or all share one."""

    def __init__(self, emulator, rtts, mbps, packets, scratch, one_prefix=False):
        self.rtts, self.mbps, self.packets = rtts, mbps, packets
        hosts = {"edge": "none", **{f"client{n}": "none" for n in range(1, len(rtts) + 1)}}
        links = "".join(f"link edge client{n} delay={rtt / 2}ms\n" for n, rtt in enumerate(rtts, 1))
        super().__init__(emulator, hosts, links, scratch)
        self.edge = self.namespaces["edge"]
        self.clients = [self.namespaces[f"client{n}"] for n in range(1, len(rtts) + 1)]
        self.web = f"fcemu{os.getpid()}-web"
        self.addresses = {self.edge: SERVER}
        for n, ns in enumerate(self.clients, 1):
            self.addresses[ns] = f"10.79.1.{n}" if one_prefix else f"10.79.{n}.1"

    def __enter__(self):
        super().__enter__()
        try:
            self.move_server_behind_edge()
        except BaseException:
            self.__exit__()
            raise
        return self

    def move_server_behind_edge(self):
        """Creates the server's namespace behind the edge. For the emulator the server's address is at the edge, which forwards."""
        sh("ip", "netns", "add", self.web)
        sh("ip", "-n", self.web, "link", "set", "lo", "up")
        sh("ip", "-n", self.edge, "link", "add", "in", "type", "veth", "peer", "name", "out", "netns", self.web)
        for ns, interface in [(self.edge, "in"), (self.web, "out")]:
            for feature in OFFLOADS:
                inside(ns, "ethtool", "-K", interface, feature, "off", check=False)
            shown = inside(ns, "ethtool", "-k", interface)
            for name in ["generic-segmentation-offload", "tcp-segmentation-offload", "generic-receive-offload"]:
                if f"{name}: off" not in shown:
                    raise RuntimeError(f"cannot switch off {name} of {interface}")
            sh("ip", "-n", ns, "link", "set", interface, "up")
        sh("ip", "-n", self.edge, "address", "flush", "dev", "eth0")
        sh("ip", "-n", self.edge, "address", "add", "10.79.8.1/32", "dev", "eth0")
        sh("ip", "-n", self.edge, "route", "replace", "default", "dev", "eth0")
        sh("ip", "-n", self.edge, "route", "add", SERVER, "dev", "in")
        inside(self.edge, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.in.proxy_arp=1")
        sh("ip", "-n", self.web, "address", "add", f"{SERVER}/32", "dev", "out")
        sh("ip", "-n", self.web, "route", "add", "10.79.8.1", "dev", "out")
        sh("ip", "-n", self.web, "route", "add", "default", "via", "10.79.8.1", "dev", "out")
        inside(self.web, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")
        sh("tc", "-n", self.edge, "qdisc", "replace", "dev", "eth0", "root", "handle", "1:", "tbf", "rate",
           f"{self.mbps}mbit", "burst", str(PACKET + 100), "limit", str(100 * PACKET))
        sh("tc", "-n", self.edge, "qdisc", "replace", "dev", "eth0", "parent", "1:1", "handle", "2:", "pfifo",
           "limit", str(self.packets))

    def __exit__(self, *_):
        super().__exit__()
        sh("ip", "netns", "del", self.web, check=False)

    def choose(self, congestion_control, initial_window=None):
        """Sets the server's congestion control and initial window in its route. The sysctl of a namespace refuses restricted
        congestion controls."""
        window = ["initcwnd", str(initial_window)] if initial_window else []
        sh("ip", "-n", self.web, "route", "replace", "default", "via", "10.79.8.1", "dev", "out",
           "congctl", congestion_control, *window)

    def bottleneck(self):
        """Returns the packets that the bottleneck has sent and dropped."""
        shown = json.loads(sh("tc", "-n", self.edge, "-j", "-s", "qdisc", "show", "dev", "eth0"))
        root = next(each for each in shown if each.get("root"))
        return root["packets"], root["drops"]

    def tcp(self):
        """Returns the TCP counters of the server's kernel."""
        counts = {}
        for name in ["snmp", "netstat"]:
            lines = inside(self.web, "cat", f"/proc/net/{name}").splitlines()
            for keys, values in zip(lines[::2], lines[1::2]):
                kind = keys.split(":")[0]
                if kind in ("Tcp", "TcpExt"):
                    counts.update({k: int(v) for k, v in zip(keys.split()[1:], values.split()[1:])})
        return counts


class Nginx:
    """Context manager with the distribution's nginx in a namespace. It serves one file per size in `sizes`, in bytes.

    `keepalive` is the idle timeout of a connection in seconds; with 0 a connection ends after its first request."""

    CONFIGURATION = """
daemon off; worker_processes 1; pid {d}/pid; error_log {d}/error.log; user root;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush off; keepalive_timeout {keepalive}; keepalive_requests 1000000; keepalive_time 24h;
  client_body_temp_path {d}/t; proxy_temp_path {d}/t; fastcgi_temp_path {d}/t; uwsgi_temp_path {d}/t; scgi_temp_path {d}/t;
  server {{ listen {address}:{port}; root {d}; }}
}}
"""

    def __init__(self, ns, scratch, sizes, keepalive=0):
        self.ns, self.directory = ns, os.path.join(scratch, "site")
        os.makedirs(self.directory, exist_ok=True)
        for size in sizes:
            with open(os.path.join(self.directory, str(size)), "wb") as file:
                file.write(os.urandom(size))
        self.path = os.path.join(scratch, "nginx.conf")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.CONFIGURATION.format(d=self.directory, address=SERVER, port=PORT, keepalive=keepalive))

    def __enter__(self):
        self.process = subprocess.Popen([*KILL_WITH_PARENT, "ip", "netns", "exec", self.ns, "nginx", "-c", self.path],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        end = time.monotonic() + 10
        while f":{PORT}" not in inside(self.ns, "ss", "-Htln"):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"nginx does not listen: {self.process.stderr.read().decode()}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()


def fetch(clients, size, count, limit):
    """Starts `count` downloads at the same moment, spread over the clients. Returns (seconds, bytes, HTTP status) of each."""
    processes = []
    for number, ns in enumerate(clients):
        share = len(range(number, count, len(clients)))
        if share == 0:
            continue
        arguments = ["curl", "--silent", "--http1.1", "--parallel", "--parallel-immediate", "--parallel-max", str(share),
                     "--max-time", str(limit), "--write-out", "%{time_total} %{size_download} %{http_code}\\n"]
        for _ in range(share):
            arguments += ["--output", "/dev/null", f"http://{SERVER}:{PORT}/{size}"]
        processes.append(subprocess.Popen([*KILL_WITH_PARENT, "ip", "netns", "exec", ns, *arguments], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True))
    done = []
    for process in processes:
        text, _ = process.communicate(timeout=limit + 30)
        done += [(float(a), int(b), int(c)) for a, b, c in re.findall(r"([\d.]+) (\d+) (\d+)", text)]
    return done
