"""The command lines of each tool, and the moment at which a receiver has the complete file."""

import os

from lab import Program

GROUP, PORT = "239.255.70.1", 5777


class Peer:
    """Base class of all tools. The caller starts `receive` on every receiver, and a moment later `send`."""

    name = "?"
    done = None  # word that a receiver prints when it has the file; None: the receiver ends then
    closed = None  # word that a receiver prints when the file has its final name, if that is later
    lingers = 0.0  # seconds between the last block and the word `done`: the receiver waits for repair requests of others

    def __init__(self, **settings):
        self.settings = settings

    def describe(self):
        """Returns the settings as text."""
        return " ".join(f"{k}={v}" for k, v in self.settings.items()) or "defaults"

    def receive(self, lab, number, directory):
        raise NotImplementedError

    def send(self, lab, file):
        raise NotImplementedError

    def received(self, directory):
        """Returns the path of the received file."""
        return os.path.join(directory, "received")

    def finished(self, program):
        """Returns the time at which this receiver had the complete file, or None."""
        at = program.printed_at(self.done) if self.done else None
        if at:
            return at - self.lingers
        return program.ended if program.code == 0 and not self.done else None


class Faircast(Peer):
    """faircast with congestion control. Receivers end when they have verified the file. With a key the session is sealed."""

    name = "faircast"

    def __init__(self, binary, key=None, **settings):
        super().__init__(**settings)
        self.binary = binary
        self.key = ["--key", key] if key else []

    def receive(self, lab, number, directory):
        return Program(lab.receivers[number], self.binary, "recv", "--group", f"{GROUP}:{PORT}", "--iface", "eth0",
                       "--out", directory, "--json", *self.key)

    def send(self, lab, file):
        options = self.key + [w for k, v in self.settings.items() for w in (f"--{k}", v)]
        return Program(lab.sender, self.binary, "send", file, "--group", f"{GROUP}:{PORT}", "--iface", "eth0",
                       "--expect", len(lab.receivers), "--json", *options)

    def received(self, directory):
        return next((os.path.join(top, f) for top, _, files in os.walk(directory) for f in files
                     if not f.startswith(".")), os.path.join(directory, "nothing"))


class Uftp(Peer):
    """UFTP with a fixed rate in kbit/s (`rate`, -1: no limit) or with `cc=tfmcc`, without encryption."""

    name = "uftp"
    done = "File transfer complete"
    closed = "Group file transfer confirmed"

    def receive(self, lab, number, directory):
        return Program(lab.receivers[number], "uftpd", "-d", "-q", "-t", "-D", directory, "-M", GROUP, "-p", PORT,
                       "-I", "eth0", "-U", f"0x{number + 2:08x}", "-B", self.settings["buffer"], "-c", 20_000_000, "-x", 2)

    def send(self, lab, file):
        s = self.settings
        speed = ["-C", s["cc"]] if "cc" in s else ["-R", s["rate"]]
        clients = ",".join(f"0x{i + 2:08x}" for i in range(len(lab.receivers)))
        # With a list of clients the announcement phase ends when all have registered.
        return Program(lab.sender, "uftp", *speed, "-M", GROUP, "-P", "239.255.70.2", "-p", PORT, "-I", "eth0",
                       "-B", s["buffer"], "-b", s["block"], "-H", clients, "-r", s["grtt"], "-x", 2, file)

    def received(self, directory):
        return os.path.join(directory, "source")


class Udpcast(Peer):
    """UDPcast with `full-duplex`, a slice size in blocks, and optional FEC or rate limit."""

    name = "udpcast"
    done = "Transfer complete"
    lingers = 0.1  # --exit-wait

    def receive(self, lab, number, directory):
        return Program(lab.receivers[number], "udp-receiver", "--file", os.path.join(directory, "received"), "--nokbd",
                       "--interface", "eth0", "--nosync", "--rcvbuf", self.settings["rcvbuf"], "--exit-wait", int(self.lingers * 1000),
                       "--start-timeout", 20, "--receive-timeout", 20, "--no-progress")

    def send(self, lab, file):
        options = []
        for key, value in self.settings.items():
            if key != "rcvbuf":
                options += [f"--{key}"] if value is True else [f"--{key}", value]
        # For one receiver UDPcast would use unicast; the benchmark compares multicast.
        return Program(lab.sender, "udp-sender", "--file", file, "--nokbd", "--interface", "eth0",
                       "--min-receivers", len(lab.receivers), "--nopointopoint", "--start-timeout", 20,
                       "--no-progress", *options)


class Norm(Peer):
    """NORM with `rate` in bit/s or `cc`, segment in bytes, block and parity in segments, buffer in bytes."""

    name = "norm"
    done = "done"

    def __init__(self, binary, **settings):
        super().__init__(**settings)
        self.binary = binary

    def receive(self, lab, number, directory):
        return Program(lab.receivers[number], self.binary, "recv", directory, GROUP, PORT, "eth0", number + 2,
                       self.settings["buffer"])

    def send(self, lab, file):
        s = self.settings
        return Program(lab.sender, self.binary, "send", file, GROUP, PORT, "eth0", len(lab.receivers), s["rate"],
                       s["segment"], s["block"], s["parity"], s["buffer"])
