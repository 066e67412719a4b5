"""One transfer in a lab: its programs, what they told, and what the kernel counted."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import traces
from lab import Counter, Program
from keep import Processors

HERE = os.path.dirname(os.path.abspath(__file__))
GROUP = "239.255.70.1:5777"
EVERY = 0.01
JOINED_DATA = 3_000  # bytes that the source's interface sends after the last join only if it sends data


def events(program, kind=None):
    """(moment, event) of what a faircast told as JSON."""
    found = []
    for moment, line in list(program.lines):
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                continue
            if kind in (None, event.get("event")):
                found.append((moment, event))
    return found


def last_words(program):
    """How a faircast ended, in one line: exit code, error and hint."""
    if program.ended is None:
        return "goes on"
    said = [event for _, event in events(program, "error")]
    words = " ".join(str(said[-1].get(name) or "") for name in ("message", "hint")).strip() if said else ""
    return f"exit {program.code}" + (f": {words[:160]}" if words else "")


class Cast:
    """Starts a source and receivers of faircast in a lab's namespaces, and stops them and counts at the end."""

    def __init__(self, bench, lab, binary, source, directory=None, user=None):
        """`user` is the number of the user that the programs run as, if not root."""
        self.bench, self.lab, self.source = bench, lab, source
        drop = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"] if user else []
        self.faircast = [*drop, bench.readable(binary) if user else binary]
        self.size = os.path.getsize(source)
        self.directory = tempfile.mkdtemp(prefix="faircast-hosts-", dir=directory or bench.scratch)
        if user:
            os.chown(self.directory, user, user)
        self.programs, self.counters, self.receivers = [], {}, {}
        self.sender = self.processors = self.sent_at = None

    def __enter__(self):
        self.processors = Processors()
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def stop(self):
        """Stop everything that still runs; what was counted stays."""
        for counter in self.counters.values():
            counter.stop()
        for program in self.programs:
            program.stop()
        self.processors.stop()

    def start(self, ns, *words):
        self.programs.append(Program(ns, *words))
        return self.programs[-1]

    def count(self, *namespaces):
        """Count bytes of these namespaces' interfaces from now on."""
        for ns in namespaces:
            self.counters[ns] = Counter(ns, EVERY)
        limit = time.monotonic() + 10
        while not all(counter.samples for counter in self.counters.values()) and time.monotonic() < limit:
            time.sleep(0.01)

    def receive(self, number):
        """Start a receiver that writes to a directory of its own."""
        program = self.start(self.lab.receivers[number], *self.faircast, "recv", "--group", GROUP, "--iface", "eth0", "--host",
                             f"r{number}", "--out", self.out(number), "--json")
        self.receivers[number] = program
        return program

    def receive_throttled(self, number, profile):
        """Start a receiver whose output is read at the given rates only."""
        program = self.start(self.lab.receivers[number], sys.executable, "-u", os.path.join(HERE, "throttle.py"), profile,
                             *self.faircast, "recv", "--group", GROUP, "--iface", "eth0", "--host", f"r{number}", "--stdout", "--json")
        self.receivers[number] = program
        return program

    def send(self, expect, *options, wait=30):
        self.sent_at = time.monotonic()
        self.sender = self.start(self.lab.sender, *self.faircast, "send", self.source, "--group", GROUP, "--iface", "eth0",
                                 "--no-key", "--expect", expect, "--join-timeout", wait, "--json", *options)
        return self.sender

    def out(self, number):
        return os.path.join(self.directory, f"out{number}")

    def sent(self):
        """Bytes that the source's interface has sent."""
        return traces.column(self.counters[self.lab.sender].samples, 1)

    def got(self, number):
        """Bytes of multicast that a receiver's kernel has got."""
        return traces.column(self.counters[self.lab.receivers[number]].samples, 3)

    def await_data(self, expect, limit=30):
        """Wait until so many have joined and data flows; the moment of the first data."""
        end = time.monotonic() + limit
        while time.monotonic() < end and self.sender.ended is None:
            joined = events(self.sender, "joined")
            if len(joined) >= expect:
                begin = traces.first(self.sent(), joined[expect - 1][0] - 0.05, JOINED_DATA)
                if begin:
                    return begin
            self.bench.crew.sleep(0.005)
        raise RuntimeError(f"no data within {limit:.0f} s: {self.sender.tail()}")

    def await_done(self, end):
        """Wait until every receiver and the source have ended, or a moment."""
        while time.monotonic() < end and any(r.ended is None for r in self.receivers.values()):
            self.bench.crew.sleep(0.02)
        # The source ends when it has heard that all are done, which is not part of what is timed.
        self.sender.wait(min(5, max(0.5, end - time.monotonic())))

    def finished(self, number):
        """When a receiver had verified everything, or None."""
        return next((moment for moment, event in events(self.receivers[number], "done") if event.get("ok")), None)

    def verified(self, number):
        """The verified part of the file, 0 to 1, as the receiver told last."""
        told = [event["bytes"] for _, event in events(self.receivers[number]) if event.get("event") in ("progress", "done") and "bytes" in event]
        return told[-1] / self.size if told else 0.0

    def told(self, name):
        """Every value of a field of the source's progress."""
        return [event[name] for _, event in events(self.sender, "progress") if event.get(name) is not None]

    def same(self, number):
        """Whether what a receiver wrote to its directory is the source's content."""
        path = os.path.join(self.out(number), os.path.basename(self.source))
        return os.path.exists(path) and subprocess.run(["cmp", "-s", path, self.source], timeout=120).returncode == 0

    def outcome(self, numbers):
        """`complete` if these receivers have everything and it is what was sent, otherwise what they have."""
        if all(self.finished(i) for i in numbers):
            wrong = [i for i in numbers if not self.same(i)]
            return f"WRONG CONTENT at {wrong}" if wrong else "complete"
        return f"incomplete: {100 * min(self.verified(i) for i in numbers):.0f} % verified, source {last_words(self.sender)}"
