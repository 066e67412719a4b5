"""A web server behind a bottleneck, and clients at several distances from it.

    web --veth-- edge [tbf, 20 packets] --emulated delay-- client1, client2, client3

Standard library only. What the server sends is queued and dropped where the edge sends it on, so the server's TCP learns
of it as of any loss on the way. The emulated links only delay.
"""

import json
import os
import re
import signal
import subprocess
import time

from lab import MORTAL, OFFLOADS, sh
from links import Emulated

SERVER = "10.79.9.1"
PORT = 8080
PACKET = 1514  # with the Ethernet header, as tbf counts it


def inside(ns, *args, check=True):
    return sh("ip", "netns", "exec", ns, *args, check=check)


class Site(Emulated):
    """`rtts` are the round trips to the clients in ms; each client has a /24 of its own, or all share one."""

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
        """The emulator knows the server's address at the edge; the edge passes on what comes for it."""
        sh("ip", "netns", "add", self.web)
        sh("ip", "-n", self.web, "link", "set", "lo", "up")
        sh("ip", "-n", self.edge, "link", "add", "in", "type", "veth", "peer", "name", "out", "netns", self.web)
        for ns, interface in [(self.edge, "in"), (self.web, "out")]:
            for feature in OFFLOADS:
                inside(ns, "ethtool", "-K", interface, feature, "off", check=False)
            shown = inside(ns, "ethtool", "-k", interface)
            for name in ["generic-segmentation-offload", "tcp-segmentation-offload", "generic-receive-offload"]:
                if f"{name}: off" not in shown:
                    raise RuntimeError(f"{interface} keeps {name}")
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

    def choose(self, congestion_control):
        """The server's congestion control, by its route. A sysctl of its namespace would take none that the machine restricts."""
        sh("ip", "-n", self.web, "route", "replace", "default", "via", "10.79.8.1", "dev", "out", "congctl", congestion_control)

    def bottleneck(self):
        """Packets sent and dropped at the bottleneck so far."""
        shown = json.loads(sh("tc", "-n", self.edge, "-j", "-s", "qdisc", "show", "dev", "eth0"))
        root = next(each for each in shown if each.get("root"))
        return root["packets"], root["drops"]

    def tcp(self):
        """The server's counters of TCP."""
        counts = {}
        for name in ["snmp", "netstat"]:
            lines = inside(self.web, "cat", f"/proc/net/{name}").splitlines()
            for keys, values in zip(lines[::2], lines[1::2]):
                kind = keys.split(":")[0]
                if kind in ("Tcp", "TcpExt"):
                    counts.update({k: int(v) for k, v in zip(keys.split()[1:], values.split()[1:])})
        return counts


class Nginx:
    """The distribution's nginx in a namespace, with files of so many bytes, while this lasts. `keepalive`: seconds that a
    connection may wait for its next request; 0: it ends after the first."""

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
        self.process = subprocess.Popen([*MORTAL, "ip", "netns", "exec", self.ns, "nginx", "-c", self.path],
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
    """`count` downloads at the same moment, shared by the clients; (seconds, bytes, HTTP status) of each."""
    begun = []
    for number, ns in enumerate(clients):
        share = len(range(number, count, len(clients)))
        if share == 0:
            continue
        arguments = ["curl", "--silent", "--http1.1", "--parallel", "--parallel-immediate", "--parallel-max", str(share),
                     "--max-time", str(limit), "--write-out", "%{time_total} %{size_download} %{http_code}\\n"]
        for _ in range(share):
            arguments += ["--output", "/dev/null", f"http://{SERVER}:{PORT}/{size}"]
        begun.append(subprocess.Popen([*MORTAL, "ip", "netns", "exec", ns, *arguments], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True))
    done = []
    for process in begun:
        text, _ = process.communicate(timeout=limit + 30)
        done += [(float(a), int(b), int(c)) for a, b, c in re.findall(r"([\d.]+) (\d+) (\d+)", text)]
    return done
