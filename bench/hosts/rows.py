"""The situations: their set-ups, faults and measures. `SITUATIONS` lists them in the order of the table.

A situation has cases. A case may name a base case (`base`): the two are compared within the same round. `run` executes one
run of a case with one binary and returns the measures, numbers or texts. `goals` has the required range of a measure in
every run.
"""

import json
import os
import random
import shutil
import tempfile
import time
from types import SimpleNamespace

import traces
from cast import Transfer, events, exit_summary
from faults import EVERYTHING, FEEDBACK, LARGE, BridgeDrops, BusyPrograms, IngressDrops, LinkDown, Suspension
from keep import short
from lab import Buffers, Counter, Lab, sh
from links import Triple
from peers import Udpcast

SETTLE = 0.7  # seconds between the start of the receivers and the start of the source
DISK = "/var/tmp"
NOBODY = 65534


def case(name, base=None, **parameters):
    return SimpleNamespace(name=name, base=base, **parameters)


class Situation:
    """Base class of all situations."""

    name, title = "", ""
    light = False  # whether runs need little processor time, so that several may be concurrent
    goals = {}  # measure -> (minimum, maximum); None: no limit
    ratio = None  # the measure that is divided by the same measure of the base case in the same round
    udpcast = False  # whether udpcast is measured too

    def cases(self, args):
        raise NotImplementedError

    def seconds(self, args, one):
        """Returns the approximate duration of a run of this case in seconds."""
        raise NotImplementedError

    def run(self, bench, one, binary, number):
        raise NotImplementedError


def common_measures(transfer, begin, numbers, limit):
    """Returns the measures of all transfers. `seconds` is the time from the first data until the last receiver has verified
    all content, or `limit`."""
    done = [transfer.finished(i) for i in numbers]
    finished = all(done)
    seconds = max(done) - begin if finished else limit
    out = {"seconds": round(seconds, 3), "outcome": transfer.outcome(numbers)}
    if finished:
        out["goodput_mbps"] = round(transfer.size * 8 / seconds / 1e6, 1)
    return out


class Late(Situation):
    """The last receiver joins late, or the join timeout expires."""

    name = "late"
    title = "The last receiver joins late (`send --expect N --join-timeout S`), or the join timeout expires"
    ratio = "seconds"
    goals = {"seconds / base": (None, 1.2)}

    def cases(self, args):
        for scheme in with_feedback(args.schemes or args.catalogue):
            mbytes = 20 if scheme.split(",")[0] == "smcc" else args.mbytes  # the eight layers of SMCC are slow
            yield case(f"{scheme}, 2 present", scheme=scheme, mbytes=mbytes, expect=2, joining=2, late=0)
            yield case(f"{scheme}, the second after {args.late:g} s", f"{scheme}, 2 present", scheme=scheme, mbytes=mbytes,
                       expect=2, joining=2, late=args.late)
            yield case(f"{scheme}, 1 of 2, the wait of {args.late:g} s runs out", f"{scheme}, 2 present", scheme=scheme,
                       mbytes=mbytes, expect=2, joining=1, late=args.late)
        yield case("ormcc, 30 present", scheme="ormcc", mbytes=args.mbytes, expect=30, joining=30, late=0)
        yield case(f"ormcc, the last of 30 after {args.last:g} s", "ormcc, 30 present", scheme="ormcc", mbytes=args.mbytes,
                   expect=30, joining=30, late=args.last)

    def seconds(self, args, one):
        return one.late + 8

    def run(self, bench, one, binary, number):
        limit = bench.args.limit
        with Lab(one.expect) as lab, Transfer(bench, lab, binary, bench.source(one.mbytes)) as transfer:
            early = one.joining - 1 if one.late and one.joining == one.expect else one.joining
            for i in range(early):
                transfer.receive(i)
            transfer.count(lab.sender)
            bench.pool.sleep(SETTLE)
            wait = one.late if one.joining < one.expect else one.late + 45
            transfer.send(one.expect, "--cc", one.scheme, wait=wait)
            bench.pool.sleep(one.late - 0.3)
            if early < one.joining:
                transfer.receive(one.joining - 1)
            begin = transfer.await_data(one.joining, 30) if one.joining == one.expect else self.after_wait(transfer, one)
            transfer.await_done(begin + limit)
            out = common_measures(transfer, begin, range(one.joining), limit)
            # The minimum of the source's rate in the first three seconds.
            allowed = [e["allowed_bps"] for at, e in events(transfer.sender, "progress") if begin <= at <= begin + 3 and e["allowed_bps"]]
            return out | ({"least allowed, kbit/s": round(min(allowed) / 1e3)} if allowed else {})

    @staticmethod
    def after_wait(transfer, one):
        """Returns the time of the first data after the source's join timeout."""
        until = transfer.sent_at + one.late
        transfer.bench.pool.sleep(until - time.monotonic() - 0.2)
        while time.monotonic() < until + 15 and transfer.sender.ended is None:
            if begin := traces.first(transfer.sent(), until - 0.2, 3_000):
                return begin
            transfer.bench.pool.sleep(0.01)
        raise RuntimeError(f"no data after the join timeout: {transfer.sender.tail()}")


class Start(Situation):
    """Many receivers that start at the same time, on tmpfs and on disk."""

    name = "start"
    title = "16 receivers started at the same time"
    goals = {"s to 80 %": (None, 1.0)}

    def cases(self, args):
        yield case("tmpfs", directory=None, busy=0, user=None)
        yield case("disk", directory=DISK, busy=0, user=None)
        yield case("tmpfs, an ordinary user, socket buffers of 208 KiB at most", directory=None, busy=0, user=NOBODY)

    def seconds(self, args, one):
        return 12

    def run(self, bench, one, binary, number):
        if binary == "udpcast":
            return self.run_udpcast(bench, one)
        if one.directory:
            os.sync()  # so that data of earlier runs is not written to the disk during this run
        count = bench.args.receivers
        # The system limits the socket buffers of an ordinary user; 208 KiB is the usual limit. Root has no limit.
        with Lab(count) as lab, Buffers(208 << 10 if one.user else Buffers.LIMIT), BusyPrograms(one.busy), \
                Transfer(bench, lab, binary, bench.source(bench.args.mbytes), one.directory, one.user) as transfer:
            for i in range(count):
                transfer.receive(i)
            transfer.count(lab.sender)
            bench.pool.sleep(SETTLE + 0.3)
            transfer.send(count)
            begin = transfer.await_data(count)
            transfer.await_done(begin + bench.args.limit)
            transfer.stop()
            out = common_measures(transfer, begin, range(count), bench.args.limit)
            end = begin + out["seconds"]
            rtts = transfer.progress_values("rtt_ms")
            out |= self.course(transfer.sent(), begin, end)
            out["idle, %"] = percent(transfer.processors.idle(begin, end))
            cpu = sum(p.cpu for p in transfer.programs if p.cpu)
            out["CPU, ns per byte"] = round(cpu * 1e9 / transfer.size / count, 2)
            ends = [event for r in transfer.receivers.values() for _, event in events(r, "done") if "lost" in event]
            out |= {"lost": sum(e["lost"] for e in ends), "dropped_local": sum(e["dropped_local"] for e in ends)}
            if rtts:
                out |= {"most rtt_ms": round(max(rtts), 1), "trace of rtt_ms": [round(rtt, 2) for rtt in rtts]}
            return out

    @staticmethod
    def course(sent, begin, end):
        """Returns the time from the first data to 80 % of the maximum rate (over half seconds), the maximum and the trace."""
        best = max((rate for _, rate in traces.windows(sent, begin, end, 0.5)), default=None)
        if best is None:
            return {"s to 80 %": 0.0}
        trace = [round(rate, 1) for rate in traces.rates(sent, begin, end)]
        return {"s to 80 %": round(traces.reached(sent, begin, end, 0.8 * best), 2), "best half second, Mbit/s": round(best),
                "trace": trace}

    def run_udpcast(self, bench, one):
        """Runs a case with udpcast at its tuned settings."""
        peer = Udpcast(**{"full-duplex": True, "max-slice-size": 512}, rcvbuf=8_000_000)
        count, source = bench.args.receivers, bench.source(bench.args.mbytes)
        directory = tempfile.mkdtemp(prefix="faircast-hosts-", dir=one.directory or bench.scratch)
        try:
            with Lab(count) as lab, BusyPrograms(one.busy):
                outs = [os.path.join(directory, f"out{i}") for i in range(count)]
                for out in outs:
                    os.makedirs(out)
                programs = [peer.receive(lab, i, out) for i, out in enumerate(outs)]
                bench.pool.sleep(SETTLE)
                counter = Counter(lab.sender)
                try:
                    bench.pool.sleep(0.3)
                    programs.append(peer.send(lab, source))
                    end = time.monotonic() + bench.args.limit + 10
                    while time.monotonic() < end and not all(peer.finished(p) for p in programs[:-1]):
                        bench.pool.sleep(0.02)
                    programs[-1].wait(5)
                finally:
                    counter.stop()
                    for program in programs:
                        program.stop()
                done, begin = [peer.finished(p) for p in programs[:-1]], counter.passed(64_000)
                if not all(done) or not begin:
                    return {"seconds": bench.args.limit, "outcome": "incomplete"}
                size = os.path.getsize(source)
                cpu = sum(p.cpu for p in programs)
                return {"seconds": round(max(done) - begin, 3), "outcome": "complete",
                        "goodput_mbps": round(size * 8 / (max(done) - begin) / 1e6, 1),
                        "CPU, ns per byte": round(cpu * 1e9 / size / count, 2)}
        finally:
            shutil.rmtree(directory, ignore_errors=True)


class BusyHosts(Start):
    """As `Start`, with two other programs that use the processors all the time; also with udpcast."""

    name = "busy"
    title = "16 receivers, with two other programs that use the processors all the time"
    ratio = "seconds"
    udpcast = True
    goals = {"seconds / base": (None, 2.5)}

    def cases(self, args):
        yield case("quiet", directory=None, busy=0, user=None)
        yield case("two busy programs", "quiet", directory=None, busy=2, user=None)


class Throttled(Situation):
    """One receiver with a slow destination: 30 MB/s, or 10, then 30, then 10 MB/s."""

    name = "throttled"
    title = "One receiver with a slow destination of the given rate (`recv --stdout` into a slow reader)"
    goals = {"rate / limit": (0.8, 1.2), "rate / limit, from a second after up": (0.8, 1.2),
             "rate / limit, from a second after down": (0.8, 1.2), "lost": (0, 0), "s to follow up": (None, 0.5), "s to follow down": (None, 0.5),
             "dropped_local": (0, 0)}

    def cases(self, args):
        yield case("30 MB/s", profile="30", mbytes=300, steps=[])
        yield case("10, 30, 10 MB/s", profile="10:6,30:6,10", mbytes=300, steps=[(6, 30, "up"), (12, 10, "down")])

    def seconds(self, args, one):
        return 22

    def run(self, bench, one, binary, number):
        with Lab(1) as lab, Transfer(bench, lab, binary, bench.source(one.mbytes)) as transfer:
            program = transfer.receive_throttled(0, one.profile)
            transfer.count(lab.sender)
            bench.pool.sleep(SETTLE + 0.3)
            transfer.send(1)
            begin = transfer.await_data(1)
            transfer.await_done(begin + 60)
            transfer.stop()
            reads = [line.split() for _, line in program.lines if line.startswith("read ")]
            digest = next((line.split()[1] for _, line in program.lines if line.startswith("digest ")), None)
            right = digest == bench.digest(transfer.source)
            end = transfer.sender.ended or time.monotonic()
            out = {"seconds": round(end - begin, 2), "outcome": "complete" if right else f"incomplete, source {exit_summary(transfer.sender)}"}
            started = float(reads[0][1]) if reads else begin
            out |= self.followed(transfer.sent(), started, end, one)
            done = [event for _, event in events(program, "done")]
            if done and "lost" in done[-1]:
                out |= {"lost": done[-1]["lost"], "dropped_local": done[-1]["dropped_local"]}
            return out | {"trace": [round(r, 1) for r in traces.rates(transfer.sent(), begin, end)]}

    @staticmethod
    def followed(sent, started, end, one):
        """Returns the source's rate relative to the limit, from two seconds after the start and after each change of the limit."""
        limit = float(one.profile.split(":")[0].split(",")[0])
        until = started + one.steps[0][0] if one.steps else end - 1
        out = {"rate / limit": round(traces.mbps(sent, started + 2, until) / (8 * limit), 3)}
        # The relative deviation from the limit of each half second.
        off = [abs(rate / (8 * limit) - 1) for _, rate in traces.windows(sent, started + 2, until, 0.5)]
        out["half seconds within 20 %, %"] = percent(sum(o <= 0.2 for o in off) / max(len(off), 1))
        for (at, limit, way), until in zip(one.steps, [at for at, *_ in one.steps[1:]] + [end - started - 1]):
            moment = started + at
            if until > at + 2:
                out[f"rate / limit, from a second after {way}"] = round(traces.mbps(sent, moment + 1, started + until) / (8 * limit), 3)
            near = next((start - moment for start, rate in traces.windows(sent, moment, min(moment + 6, end), 0.5)
                         if 0.8 <= rate / (8 * limit) <= 1.2), None)
            out[f"s to follow {way}"] = round(near, 2) if near is not None else "never"
        return out


class Stopped(Situation):
    """One receiver is suspended for 300 ms."""

    name = "stopped"
    title = "One of four receivers is suspended for 300 ms (SIGSTOP) at a random moment"
    ratio = "seconds"
    goals = {"s more than base": (None, 0.3)}

    def cases(self, args):
        for name, options, mbytes in [("at most 400 Mbit/s", ["--max", "400M"], 100), ("no limit", [], 400)]:
            yield case(f"{name}, undisturbed", options=options, mbytes=mbytes, stop=False)
            yield case(f"{name}, 300 ms", f"{name}, undisturbed", options=options, mbytes=mbytes, stop=True)

    def seconds(self, args, one):
        return 8

    def run(self, bench, one, binary, number):
        with Lab(4) as lab, Transfer(bench, lab, binary, bench.source(one.mbytes)) as transfer:
            for i in range(4):
                transfer.receive(i)
            transfer.count(lab.sender)
            bench.pool.sleep(SETTLE)
            transfer.send(4, *one.options)
            begin = transfer.await_data(4)
            out = {}
            if one.stop:
                # A random moment, the same for every binary; in every other run within the first 0.3 s, during slow start.
                after = random.Random(f"moment {number}").uniform(0.02, 0.3 if number % 2 == 0 else 1.5)
                fault = Suspension(transfer.receivers[0])
                bench.pool.sleep(begin + after - time.monotonic())
                hit = transfer.receivers[0].ended is None
                fault.start()
                bench.pool.sleep(0.3)
                fault.end()
                out = {"stopped after, s": round(after, 2)} | ({} if hit else {"note": "the receiver had ended before"})
            transfer.await_done(begin + bench.args.limit)
            return common_measures(transfer, begin, range(4), bench.args.limit) | out


class Silence(Situation):
    """Base class: after 3 s the bridge drops the packets that match a rule, until the session ends."""

    light = True
    cap = 20

    def cases(self, args):
        for scheme in with_feedback(args.schemes) or self.defaults:
            yield case(scheme, scheme=scheme)

    def seconds(self, args, one):
        return args.silence_limit + 3

    def run(self, bench, one, binary, number):
        mbytes = int(self.cap / 8 * bench.args.silence_limit * 1.2) + 10
        offloads = self.rule != LARGE  # with offloads the bridge would see several packets as one large packet
        with Lab(2, offloads=offloads, lock=False) as lab, Transfer(bench, lab, binary, bench.source(mbytes)) as transfer:
            for i in range(2):
                transfer.receive(i)
            transfer.count(lab.sender)
            bench.pool.sleep(SETTLE)
            transfer.send(2, "--cc", one.scheme, "--max", f"{self.cap}M")
            begin = transfer.await_data(2)
            bench.pool.sleep(begin + 3 - time.monotonic())
            BridgeDrops(lab, self.rule).start()
            cut = time.monotonic()
            end = cut + bench.args.silence_limit
            while time.monotonic() < end and transfer.sender.ended is None:
                bench.pool.sleep(0.1)
            ended, exits = transfer.sender.ended, {"source": exit_summary(transfer.sender), "receiver": exit_summary(transfer.receivers[0])}
            transfer.stop()
            sent, end = transfer.sent(), ended or end
            before = traces.mbps(sent, begin + 1, cut)
            out = {"before, Mbit/s": round(before, 2)}
            for second in (1, 5, 10, 20):
                if cut + second + 1 <= end:
                    out[f"after {second} s, Mbit/s"] = round(traces.mbps(sent, cut + second, cut + second + 1), 3)
            half, tenth = (traces.fell(sent, cut, end, before * part) for part in (0.5, 0.1))
            out["s to a half"] = round(half, 2) if half is not None else "never"
            out["s to a tenth"] = round(tenth, 2) if tenth is not None else "never"
            out["sent after the cut, MB"] = round((traces.at(sent, end) - traces.at(sent, cut)) / 1e6, 1)
            out["ended after, s"] = round(ended - cut, 1) if ended else f"not within {bench.args.silence_limit:g}"
            return out | exits | {"trace": [round(r, 3) for r in traces.rates(sent, begin, end, 1.0)]}


class NoFeedback(Silence):
    """All feedback of the receivers is dropped."""

    name, rule = "no-feedback", FEEDBACK
    title = "All feedback is dropped after 3 s, `--max 20M`"
    defaults = ["ormcc", "le-sbcc", "tfmcc"]
    goals = {"s to a half": (None, 2.0)}


class BlackHole(Silence):
    """Packets of more than 1000 bytes are dropped, as on a path with a smaller MTU than both ends assume."""

    name, rule = "black-hole", LARGE
    title = "Packets of more than 1000 bytes are dropped after 3 s, `--max 20M`"
    defaults = ["ormcc", "le-sbcc", "tfmcc"]
    goals = {"s to a half": (None, 2.0)}


class Outage(Situation):
    """Base class: a path, an interface or a program fails for some seconds and recovers."""

    light = True
    mbps = 50

    def seconds(self, args, one):
        return 45

    def fault(self, bench, lab, transfer, one):
        raise NotImplementedError

    def lab(self, bench, one):
        lab = Lab(2, offloads=False, lock=False)
        return lab, lambda: lab.bottleneck(0, self.mbps * 1_000_000, 250_000)

    def run(self, bench, one, binary, number):
        lab, prepare = self.lab(bench, one)
        with lab, Transfer(bench, lab, binary, bench.source(int(self.mbps / 8 * 30))) as transfer:
            prepare()
            count = len(lab.receivers)
            for i in range(count):
                transfer.receive(i)
            transfer.count(lab.sender, lab.receivers[0])
            bench.pool.sleep(SETTLE)
            transfer.send(count, "--cc", one.scheme)
            begin = transfer.await_data(count)
            bench.pool.sleep(begin + 6 - time.monotonic())
            fault = self.fault(bench, lab, transfer, one)
            fault.start()
            out_at = time.monotonic()
            bench.pool.sleep(one.out)
            fault.end()
            back = time.monotonic()
            transfer.await_done(back + bench.args.limit)
            ends = {name: exit_summary(program) for name, program in [("source", transfer.sender), ("receiver", transfer.receivers[0])]}
            outcome = transfer.outcome(range(count))
            transfer.stop()
            got = transfer.got(0)
            end = min(transfer.receivers[0].ended or time.monotonic(), back + bench.args.limit)
            before = traces.mbps(got, out_at - 3, out_at)
            # Without a rate before the fault there is no recovery to measure.
            half = traces.reached(got, back, end, before / 2, 0.2) if before >= 1 else None
            out = {"before, Mbit/s": round(before, 1), "outcome": outcome,
                   "s to half the rate": round(half, 2) if half is not None else "never"}
            if half is not None and end > back + 6:
                out["seconds 1 to 5 after, part of before"] = round(traces.mbps(got, back + 1, back + 6) / before, 2)
            out |= {name: words for name, words in ends.items() if words != "exit 0"}
            return out | {"trace": [round(r, 2) for r in traces.rates(got, begin, end, 0.5)]}


class InterfaceDown(Outage):
    """An interface goes down and up again, with the same address or another one."""

    name = "link-down"
    title = "An interface is down for 10 s; bottleneck of 50 Mbit/s before one receiver"
    goals = {"s to half the rate": (None, 2.0)}

    def cases(self, args):
        for scheme in args.schemes or ["ormcc"]:
            for host in ["sender", "receiver"]:
                yield case(f"{scheme}, {host}", scheme=scheme, host=host, out=10, renumber=False)
                yield case(f"{scheme}, {host}, then another address", scheme=scheme, host=host, out=10, renumber=True)

    def fault(self, bench, lab, transfer, one):
        return LinkDown(lab, lab.sender if one.host == "sender" else lab.receivers[0], one.renumber)


class Suspended(Outage):
    """A program is suspended for 20 s, as on a closed laptop or in a virtual machine that migrates."""

    name = "suspended"
    title = "The sender or one of two receivers is suspended for 20 s (SIGSTOP); bottleneck of 50 Mbit/s before one receiver"
    goals = {"s to half the rate": (None, 2.0)}

    def cases(self, args):
        for scheme in args.schemes or ["ormcc"]:
            for host in ["sender", "receiver"]:
                yield case(f"{scheme}, {host}", scheme=scheme, host=host, out=20)

    def fault(self, bench, lab, transfer, one):
        return Suspension(transfer.sender if one.host == "sender" else transfer.receivers[0])


class PathOut(Outage):
    """All packets are dropped for 4 s, on the bridge or on an emulated path with a long round-trip time."""

    name = "outage"
    title = "All packets are dropped for 4 s; bottleneck of 50 Mbit/s"
    goals = {"s to half the rate": (None, 1.0)}

    def cases(self, args):
        for scheme in args.schemes or ["ormcc", "le-sbcc", "tfmcc"]:
            yield case(f"{scheme}, bridge", scheme=scheme, emulated=False, out=4)
            if args.emulator:
                yield case(f"{scheme}, emulated path, 40 ms", scheme=scheme, emulated=True, out=4)

    def lab(self, bench, one):
        if not one.emulated:
            return super().lab(bench, one)
        plan = (f"router r\nlink source r delay=10ms\nlink tcp r delay=10ms\n"
                f"link r receiver rate={self.mbps}M delay=10ms queue=droptail,167\n")
        return Triple(bench.args.emulator, plan, bench.scratch), lambda: None

    def fault(self, bench, lab, transfer, one):
        return IngressDrops([lab.sender, lab.receivers[0]]) if one.emulated else BridgeDrops(lab, EVERYTHING)


class Layers(Situation):
    """Two receivers of a layered session, one behind 20 Mbit/s."""

    light = True
    snooping = False

    def cases(self, args):
        for scheme in [s for s in args.schemes if s.split(",")[0] in LAYERED] or LAYERED:
            yield case(scheme, scheme=scheme)

    def seconds(self, args, one):
        return args.layers_limit + 4

    def run(self, bench, one, binary, number):
        limit = bench.args.layers_limit
        with Lab(2, offloads=False, snooping=self.snooping, lock=False) as lab, \
                Transfer(bench, lab, binary, bench.source(20)) as transfer:
            lab.bottleneck(0, 20_000_000)
            if self.snooping:
                lab.bottleneck(1, 100_000_000, 250_000)
            for i in range(2):
                transfer.receive(i)
            transfer.count(lab.sender, *lab.receivers)
            bench.pool.sleep(SETTLE)
            transfer.send(2, "--cc", one.scheme)
            begin = transfer.await_data(2)
            transfer.await_done(begin + limit)
            end = min(max(r.ended or time.monotonic() for r in transfer.receivers.values()), begin + limit)
            dropped, ends = drops(lab, 0), exit_summary(transfer.sender)
            transfer.stop()
            return {"source": ends} | self.measures(transfer, begin, end, dropped, limit)

    @staticmethod
    def measures(transfer, begin, end, dropped, limit):
        """Returns the measures of both receivers and of the source."""
        out = {}
        for number, name in enumerate(["slow", "fast"]):
            done = transfer.finished(number)
            out[f"{name}, s"] = round(done - begin, 1) if done else f"not within {limit:g}"
            out[f"{name}, % verified"] = percent(transfer.verified(number))
        passed = traces.at(transfer.got(0), end) - traces.at(transfer.got(0), begin)
        out["lost before the slow one, %"] = percent(dropped / max(dropped + passed / 1470, 1))
        out["sent, Mbit/s"] = round(traces.mbps(transfer.sent(), begin, end), 2)
        output = " ".join(program.text().lower() for program in transfer.programs)
        out["snooping named"] = "yes" if "snooping" in output else "no"
        return out


class Floods(Layers):
    """The bridge forwards every group to all ports."""

    name = "flood"
    title = "Layers on a bridge without IGMP snooping, bottleneck of 20 Mbit/s before one of two receivers, 20 MB"


class Snoops(Layers):
    """The bridge forwards a group to its members only."""

    name, snooping = "snoop", True
    title = "Layers on a bridge with IGMP snooping and a querier, bottlenecks of 20 and 100 Mbit/s, 20 MB"


LAYERED = ["gmcc", "rlc", "smcc"]
SITUATIONS = [Late(), Start(), BusyHosts(), Throttled(), Stopped(), NoFeedback(), BlackHole(), InterfaceDown(), Suspended(),
              PathOut(), Floods(), Snoops()]


def with_feedback(schemes):
    """Returns the schemes whose receivers send reports."""
    return [scheme for scheme in schemes if scheme.split(",")[0] != "rlc"]


def drops(lab, receiver):
    """Returns the number of packets that the bottleneck before a receiver has dropped."""
    shown = json.loads(sh("tc", "-n", lab.bridge, "-s", "-j", "qdisc", "show", "dev", lab.port(lab.receivers[receiver])))
    return shown[0]["drops"]


def percent(part):
    """Returns a fraction as a percentage with three digits, or None."""
    return None if part is None else float(short(100 * part))
