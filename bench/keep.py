"""Helpers of all benchmarks: a journal of finished runs, concurrent jobs, samples of processor time, and tables.

Standard library only.
"""

import csv
import hashlib
import json
import os
import signal
import statistics
import subprocess
import threading
import time


class Journal:
    """A file with one line of JSON per finished run. An interrupted benchmark resumes from it.

    A dictionary, `key`, identifies a run. It contains a digest of the measured binary, so the runs of another binary are
    measured again.
    """

    def __init__(self, path, fresh=False):
        self.path, self.rows, self.lock = path, {}, threading.Lock()
        if fresh and os.path.exists(path):
            os.remove(path)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    try:
                        row = json.loads(line)
                    except json.JSONDecodeError:
                        continue  # an incomplete line: the benchmark was stopped while it wrote
                    self.rows[self.name(row["key"])] = row

    @staticmethod
    def name(key):
        """Returns the text of a key: equal keys have equal texts."""
        return json.dumps(key, sort_keys=True)

    def get(self, key):
        """Returns the result of this run, or None if it has not finished."""
        row = self.rows.get(self.name(key))
        return row["result"] if row else None

    def put(self, key, result):
        """Appends the result of this run to the file."""
        with self.lock:
            self.rows[self.name(key)] = {"key": key, "result": result}
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "result": result}) + "\n")


def fingerprint(path):
    """Returns the first 12 hexadecimal digits of a file's SHA-256."""
    state = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()[:12]


T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}


def estimate(values):
    """Returns the mean and half of its 95 % interval, or None without values. Values that are None do not count."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    if len(values) == 1:
        return values[0], 0.0
    return statistics.mean(values), T95.get(len(values) - 1, 2.1) * statistics.stdev(values) / len(values) ** 0.5


def agrees(one, other):
    """Returns whether two estimates differ by at most 10 % or have overlapping intervals."""
    near = abs(one[0] - other[0]) <= 0.1 * abs(one[0])
    return near or abs(one[0] - other[0]) <= one[1] + other[1]


def interval(estimate):
    """Returns an estimate as text."""
    return "-" if estimate is None else f"{estimate[0]:.3g} ± {estimate[1]:.2g}"


class Stopped(Exception):
    """Raised in a job when the benchmark is stopped."""


class WorkerPool:
    """Runs jobs in threads, at most `most` at a time. A signal to the benchmark also stops the jobs, which then clean up."""

    def __init__(self, most):
        self.most, self.halt = most, threading.Event()

    def sleep(self, seconds):
        """Sleeps, or raises `Stopped` when the benchmark is stopped."""
        if self.halt.wait(max(0, seconds)):
            raise Stopped

    def command(self, *command):
        """Runs a program and returns its result with its texts. When the benchmark is stopped, interrupts the program, waits for
        its end, and raises `Stopped`."""
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            while True:
                try:
                    out, err = program.communicate(timeout=0.2)
                except subprocess.TimeoutExpired:
                    if self.halt.is_set():
                        program.send_signal(signal.SIGINT)
                        program.communicate()
                        raise Stopped from None
                else:
                    return subprocess.CompletedProcess(command, program.returncode, out, err)

    def run(self, jobs):
        """Runs jobs and returns their exceptions. A job is a function without arguments that stores its own result."""
        waiting, lock = list(reversed(jobs)), threading.Lock()
        errors = []

        def work():
            while not self.halt.is_set():
                with lock:
                    if not waiting:
                        return
                    job = waiting.pop()
                try:
                    job()
                except Stopped:
                    return
                except Exception as error:  # the other jobs continue, and the caller gets the exception
                    errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(min(self.most, len(jobs)))]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                time.sleep(0.1)  # a join would delay the handling of a signal
        except BaseException:
            self.halt.set()
            raise
        finally:
            for thread in threads:
                thread.join()
        return errors


class Processors(threading.Thread):
    """Samples the machine's processor time: (monotonic seconds, busy seconds, total seconds), summed over all processors."""

    def __init__(self, every=0.05):
        super().__init__(daemon=True)
        self.every, self.samples, self.over = every, [], threading.Event()
        self.start()

    def run(self):
        tick = os.sysconf("SC_CLK_TCK")
        while not self.over.wait(self.every):
            with open("/proc/stat", encoding="ascii") as file:
                user, nice, system, idle, wait, hard, soft, steal = map(int, file.readline().split()[1:9])
            busy = user + nice + system + hard + soft
            self.samples.append((time.monotonic(), busy / tick, (busy + idle + wait + steal) / tick))

    def stop(self):
        self.over.set()
        self.join(2)

    def idle(self, begin, end):
        """Returns the idle fraction of all processors between two moments, 0 to 1; None with less than two samples."""
        inside = [s for s in self.samples if begin - self.every <= s[0] <= end + self.every]
        if len(inside) < 2 or inside[-1][2] <= inside[0][2]:
            return None
        return max(0.0, 1 - (inside[-1][1] - inside[0][1]) / (inside[-1][2] - inside[0][2]))


def short(value):
    """Returns a number with three significant digits, and any other value as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(values):
    """Returns `median (minimum to maximum)` of numbers, or the count of each text."""
    values = [v for v in values if v is not None]
    if not values:
        return "-"
    if any(isinstance(v, str) for v in values):
        seen = {str(v): sum(1 for w in values if w == v) for v in values}
        return "; ".join(f"{text} ({count}x)" if len(values) > 1 else text for text, count in seen.items())
    middle, least, most = statistics.median(values), min(values), max(values)
    return short(middle) if len(values) == 1 else f"{short(middle)} ({short(least)} to {short(most)})"


def write_csv(path, columns, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
