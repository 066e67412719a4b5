"""One transfer in a lab: its programs, their events and the kernel's counters."""

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
    """Returns (time, event) of the JSON events that a faircast program has printed, of one kind if `kind` is given."""
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


def exit_summary(program):
    """Returns how a faircast program ended, in one line: exit code, error message and hint."""
    if program.ended is None:
        return "still running"
    errors = [event for _, event in events(program, "error")]
    words = " ".join(str(errors[-1].get(name) or "") for name in ("message", "hint")).strip() if errors else ""
    return f"exit {program.code}" + (f": {words[:160]}" if words else "")


class Transfer:
    """Context manager that starts a faircast source and receivers in a lab, counts their bytes, and stops them at the end."""

    def __init__(self, bench, lab, binary, source, directory=None, user=None):
        """`user` is the ID of the user that runs the programs; the default is root."""
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
        """Stops all programs and counters. The samples of the counters remain available."""
        for counter in self.counters.values():
            counter.stop()
        for program in self.programs:
            program.stop()
        self.processors.stop()

    def start(self, ns, *words):
        self.programs.append(Program(ns, *words))
        return self.programs[-1]

    def count(self, *namespaces):
        """Starts the counters of these namespaces and waits for their first samples."""
        for ns in namespaces:
            self.counters[ns] = Counter(ns, EVERY)
        limit = time.monotonic() + 10
        while not all(counter.samples for counter in self.counters.values()) and time.monotonic() < limit:
            time.sleep(0.01)

    def receive(self, number):
        """Starts a receiver with its own output directory."""
        program = self.start(self.lab.receivers[number], *self.faircast, "recv", "--group", GROUP, "--iface", "eth0", "--host",
                             f"r{number}", "--out", self.out(number), "--json")
        self.receivers[number] = program
        return program

    def receive_throttled(self, number, profile):
        """Starts a receiver whose standard output is read at the rates of the profile (throttle.py)."""
        program = self.start(self.lab.receivers[number], sys.executable, "-u", os.path.join(HERE, "throttle.py"), profile,
                             *self.faircast, "recv", "--group", GROUP, "--iface", "eth0", "--host", f"r{number}", "--stdout", "--json")
        self.receivers[number] = program
        return program

    def send(self, expect, *options, wait=30):
        """Starts the source. `wait` is its join timeout in seconds."""
        self.sent_at = time.monotonic()
        self.sender = self.start(self.lab.sender, *self.faircast, "send", self.source, "--group", GROUP, "--iface", "eth0",
                                 "--no-key", "--expect", expect, "--join-timeout", wait, "--json", *options)
        return self.sender

    def out(self, number):
        return os.path.join(self.directory, f"out{number}")

    def sent(self):
        """Returns the trace of the bytes that the source's interface has sent."""
        return traces.column(self.counters[self.lab.sender].samples, 1)

    def got(self, number):
        """Returns the trace of the multicast bytes that a receiver's kernel has received."""
        return traces.column(self.counters[self.lab.receivers[number]].samples, 3)

    def await_data(self, expect, limit=30):
        """Waits until `expect` receivers have joined and data follows. Returns the time of the first data."""
        end = time.monotonic() + limit
        while time.monotonic() < end and self.sender.ended is None:
            joined = events(self.sender, "joined")
            if len(joined) >= expect:
                begin = traces.first(self.sent(), joined[expect - 1][0] - 0.05, JOINED_DATA)
                if begin:
                    return begin
            self.bench.pool.sleep(0.005)
        raise RuntimeError(f"no data within {limit:.0f} s: {self.sender.tail()}")

    def await_done(self, end):
        """Waits until every receiver and the source have ended, at most until the moment `end`."""
        while time.monotonic() < end and any(r.ended is None for r in self.receivers.values()):
            self.bench.pool.sleep(0.02)
        # The source ends after the last report of its receivers. This delay is not part of the measured time.
        self.sender.wait(min(5, max(0.5, end - time.monotonic())))

    def finished(self, number):
        """Returns the time at which a receiver had verified all content, or None."""
        return next((moment for moment, event in events(self.receivers[number], "done") if event.get("ok")), None)

    def verified(self, number):
        """Returns the verified fraction of the file, 0 to 1, in the receiver's last report."""
        values = [event["bytes"] for _, event in events(self.receivers[number]) if event.get("event") in ("progress", "done") and "bytes" in event]
        return values[-1] / self.size if values else 0.0

    def progress_values(self, name):
        """Returns all values of a field of the source's progress events."""
        return [event[name] for _, event in events(self.sender, "progress") if event.get(name) is not None]

    def same(self, number):
        """Returns whether the file in a receiver's directory equals the source's file."""
        path = os.path.join(self.out(number), os.path.basename(self.source))
        return os.path.exists(path) and subprocess.run(["cmp", "-s", path, self.source], timeout=120).returncode == 0

    def outcome(self, numbers):
        """Returns `complete` if these receivers have the source's content, otherwise a description of the failure."""
        if all(self.finished(i) for i in numbers):
            wrong = [i for i in numbers if not self.same(i)]
            return f"WRONG CONTENT at {wrong}" if wrong else "complete"
        return f"incomplete: {100 * min(self.verified(i) for i in numbers):.0f} % verified, source {exit_summary(self.sender)}"
