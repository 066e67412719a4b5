"""One multicast session and one competing TCP flow at an emulated bottleneck, and the same network in the simulator."""

import csv
import json
import os
import shutil
import subprocess
import tempfile
import time

import traces
from keep import Processors
from lab import Counter, Program
from links import Triple, bottleneck, shared_path, simulated_path
from peers import Faircast

FIRST_DATA = 3_000
EVERY = 0.05
STEP = 0.1
SIM_WAIT = 1.0  # seconds before a simulated session's start; its receivers answer probes, as while a real source waits
SIM_LEAD = 0.05  # seconds between a real session's first data and the start of the TCP flow


def real(bench, scheme, rtt, tcp):
    """Runs one measurement. Returns the IP bytes by multicast and by TCP at the receiver's kernel, every `STEP` seconds since the
    start of the TCP flow, and the emulator's lateness."""
    args = bench.args
    queue, jitter = bottleneck(rtt, args.mbps)
    directory = tempfile.mkdtemp(dir=bench.scratch)
    peer = Faircast(args.faircast, cc=scheme)
    programs, counters = [], []
    processors = Processors(0.5)
    try:
        with Triple(args.emulator, shared_path(rtt, args.mbps, queue, jitter), directory) as lab:
            try:
                receiver = lab.receivers[0]
                programs += [peer.receive(lab, 0, directory), Program(receiver, "iperf3", "-s", "-1", "--forceflush")]
                bench.pool.sleep(1.0)
                ours, theirs = Counter(lab.sender, EVERY), Counter(receiver, EVERY)
                counters = [ours, theirs]
                bench.pool.sleep(0.3)
                sender = peer.send(lab, bench.source)
                programs.append(sender)
                limit = time.monotonic() + 20
                while ours.passed(FIRST_DATA) is None and time.monotonic() < limit and sender.ended is None:
                    bench.pool.sleep(0.01)
                bench.pool.sleep(args.lead)
                begin = time.monotonic()
                flow = Program(lab.tcp, "iperf3", "-c", lab.addresses[receiver], "-t", int(args.seconds), "-C", tcp, "-J")
                programs.append(flow)
                while time.monotonic() < begin + args.seconds + 0.2:
                    bench.pool.sleep(0.5)
                    if sender.ended is not None:
                        raise RuntimeError(f"the sender ended early: {sender.tail()}")
                    if flow.ended is not None and flow.ended < begin + args.seconds - 1:
                        raise RuntimeError(f"iperf3 ended early: {flow.tail()}")
                if not flow.wait(30):
                    raise RuntimeError("iperf3 did not end")
            finally:
                for counter in counters:
                    counter.stop()
                for program in programs:
                    program.stop()
        report = json.loads(flow.text())
        if "error" in report:
            raise RuntimeError(report["error"])
        got = [traces.column(theirs.samples, 3), [(s[0], s[2] - s[3]) for s in theirs.samples]]
        moments = [begin + STEP * number for number in range(int(args.seconds / STEP) + 1)]
        course = [[round(traces.at(trace, moment) - traces.at(trace, begin)) for trace in got] for moment in moments]
        return {"course": course, "retransmits": report["end"]["sum_sent"]["retransmits"], "drops": int(lab.reported("link +r>receiver", "overflow")),
                "late p99, us": lab.reported("late", "p99_us"), "late max, us": lab.reported("late", "max_us"),
                "load": round(os.getloadavg()[0], 1), "idle": round(processors.idle(begin, begin + args.seconds) or 0, 3)}
    finally:
        processors.stop()
        shutil.rmtree(directory, ignore_errors=True)


def simulated(bench, scheme, rtt, parts):
    """Runs the same network in the simulator. Returns the ratios of IP bytes, one per random seed, for each part.

    A part is `(name, from, to)` in seconds of the TCP flow."""
    args = bench.args
    queue, jitter = bottleneck(rtt, args.mbps)
    directory = tempfile.mkdtemp(dir=bench.scratch)
    links = shared_path(rtt, args.mbps, queue, jitter)
    lead = SIM_WAIT + args.lead + SIM_LEAD
    windows = "".join(f'[[window]]\nname = "{name}"\nfrom = "{lead + begin:g} s"\nto = "{lead + end:g} s"\n' for name, begin, end in parts)
    try:
        scenario = os.path.join(directory, "scenario.toml")
        with open(scenario, "w", encoding="utf-8") as file:
            file.write(f"""title = "{scheme} and one competing TCP flow"
duration = "{args.seconds + lead + 0.2:g} s"
warmup = "{lead:g} s"
seeds = {args.seeds}
{simulated_path(links, scheme, args.sim_tcp, f"{SIM_WAIT:g} s", f"{lead:g} s .. {lead + 0.1:g} s")}{windows}""")
        done = subprocess.run([args.faircast, "sim", "run", scenario, "-q", "--out", os.path.join(directory, "out")],
                              capture_output=True, text=True, timeout=1800)
        if done.returncode != 0:
            raise RuntimeError(f"the simulator failed: {done.stderr.strip()}")
        rates = {}
        with open(os.path.join(directory, "out", "metrics.csv"), newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                rates.setdefault(row["metric"], []).append(float(row["value"]))
        return {name: [ours / max(tcp, 1) for ours, tcp in zip(rates[f"multicast.rate@{name}"], rates[f"tcp.rate@{name}"])]
                for name, *_ in parts}
    finally:
        shutil.rmtree(directory, ignore_errors=True)
