"""Congestion control and queues as Python classes."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import faircast as fc


class Aimd(fc.Policy):
    """The built-in policy `aimd`, paper 000, 3.1.5."""

    def on_tick(self, at):
        return at.rate + 8 * at.packet_size / at.rtt

    def on_congestion(self, at, level, keep):
        return min(at.rate, level * keep)


class Tail(fc.Queue):
    def __init__(self, limit=50):
        self.limit = limit

    def on_arrival(self, packet):
        return fc.Decision.OVERFLOW if packet.waiting >= self.limit else fc.Decision.ACCEPT


class Halving(fc.Source):
    """Adds a packet per round trip, and halves its rate at losses, at most once per round trip."""

    def __init__(self, keep=0.5):
        self.keep, self.cut_at = keep, -math.inf

    def start(self, now):
        self.deadline = now + self.rtt

    def on_report(self, report, now):
        if report.rtt is not None:
            self.rtt = 0.875 * self.rtt + 0.125 * report.rtt
        if report.kind == "lost" and now >= self.cut_at + self.rtt:
            self.rate *= self.keep
            self.cut_at, self.limiting = now, report.receiver

    def on_deadline(self, now):
        self.rate += 8 * self.packet_size / self.rtt
        self.deadline = now + self.rtt


class Losses(fc.SchemeReceiver):
    def on_data(self, packet, now):
        return fc.Report("lost", count=packet.lost) if packet.lost else None


@pytest.fixture(scope="module")
def plain() -> fc.Scenario:
    """One multicast session and one TCP flow share a bottleneck for 60 s."""
    return fc.Scenario.template("dumbbell").with_(duration="60 s", warmup="10 s")


def test_policy_equal_to_a_built_in_one_gives_the_same_run(plain: fc.Scenario) -> None:
    fc.register("aimd", Aimd)
    own = fc.run(plain.with_({"flow.multicast.scheme": "ormcc,policy=own:aimd"}), seeds=2)
    built_in = fc.run(plain.with_({"flow.multicast.scheme": "ormcc,policy=aimd"}), seeds=2)
    assert own._native.digest == built_in._native.digest


def test_queue_is_a_python_class(plain: fc.Scenario) -> None:
    fc.register("tail", Tail)
    own = fc.run(plain.with_({"topology.bottleneck.queue": "own:tail,limit=50"}), seeds=1)
    longer = fc.run(plain.with_({"topology.bottleneck.queue": "own:tail,limit=200"}), seeds=1)
    assert own.values("tcp.lost")[0] > 0
    assert longer.values("tcp.rtt")[0] > own.values("tcp.rtt")[0]


def test_queue_has_random_numbers_a_timer_and_departures(plain: fc.Scenario) -> None:
    calls = {"timer": 0, "sent": 0}

    class Early(fc.Queue):
        marks = True

        def __init__(self):
            self.share = 0.0
            self.timer = 0.1

        def on_timer(self, packet):
            calls["timer"] += 1
            self.share = min(0.2, packet.waiting / 200)
            self.timer = packet.now + 0.1

        def on_departure(self, sent):
            calls["sent"] += 1
            assert sent.size > 0 and sent.now >= 0

        def on_arrival(self, packet):
            if packet.waiting >= 100:
                return fc.Decision.OVERFLOW
            return fc.Decision.MARK if self.random.random() < self.share else fc.Decision.ACCEPT

    fc.register("early", Early)
    scenario = plain.with_({"topology.bottleneck.queue": "own:early"})
    one, same = fc.run(scenario, seeds=[5]), fc.run(scenario, seeds=[5])
    assert one._native.digest == same._native.digest, "equal seeds give equal runs"
    assert fc.run(scenario, seeds=[6])._native.digest != one._native.digest
    assert calls["timer"] > 1000 and calls["sent"] > 10_000


def test_source_and_receiver_are_python_classes(plain: fc.Scenario) -> None:
    fc.register("halving", Halving, Losses)
    scenario = plain.with_({"flow.multicast.scheme": "own:halving,keep=0.7"})
    result = fc.run(scenario, seeds=2)
    assert fc.run(scenario, seeds=2)._native.digest == result._native.digest
    assert min(result.values("multicast.rate")) > 100_000
    assert min(result.values("multicast.indications")) > 3, "the rate has been reduced"
    assert min(result.values("tcp.rate")) > 100_000


def test_representative_reaches_the_receivers(plain: fc.Scenario) -> None:
    seen = set()

    class Announcing(Halving):
        def on_report(self, report, now):
            super().on_report(report, now)
            self.mark = fc.Representative(report.receiver, mean=2.5)

    class Watching(Losses):
        def on_data(self, packet, now):
            if packet.mark is not None:
                seen.add((packet.mark.receiver, packet.mark.mean))
            return super().on_data(packet, now)

    fc.register("announcing", Announcing, Watching)
    fc.run(plain.with_({"flow.multicast.scheme": "own:announcing"}), seeds=1)
    assert {mean for _, mean in seen} == {2.5}


def test_receiver_reports_at_its_deadline(plain: fc.Scenario) -> None:
    kinds = []

    class Listening(Halving):
        def on_report(self, report, now):
            kinds.append((report.kind, report.level))
            super().on_report(report, now)

    class Periodic(fc.SchemeReceiver):
        def on_data(self, packet, now):
            if self.deadline == math.inf:
                self.deadline = now + 1

        def on_deadline(self, now):
            self.deadline = now + 1
            return fc.Report("congested", level=3.0)

    fc.register("periodic", Listening, Periodic)
    fc.run(plain.with_({"flow.multicast.scheme": "own:periodic"}), seeds=1)
    assert kinds.count(("congested", 3.0)) > 50


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"flow.multicast.scheme": "ormcc,policy=own:fails"}, "in the tick"),
        ({"topology.bottleneck.queue": "own:fails-queue"}, "in the arrival"),
        ({"flow.multicast.scheme": "own:fails-scheme"}, "in the report"),
    ],
)
def test_exception_of_a_class_ends_the_run(plain: fc.Scenario, tmp_path: Path, setting: dict, message: str) -> None:
    class FailingPolicy(Aimd):
        def on_tick(self, at):
            raise LookupError("in the tick")

    class FailingQueue(fc.Queue):
        def on_arrival(self, packet):
            if packet.now > 59:
                raise LookupError("in the arrival")
            return fc.Decision.ACCEPT

    class FailingSource(Halving):
        def on_report(self, report, now):
            raise LookupError("in the report")

    fc.register("fails", FailingPolicy)
    fc.register("fails-queue", FailingQueue)
    fc.register("fails-scheme", FailingSource, Losses)
    scenario = plain.with_(setting)
    for _ in range(2):  # a failed run is not stored
        with pytest.raises(LookupError, match=message):
            fc.run(scenario, seeds=2, kept=tmp_path / "runs")
    fc.run(plain, seeds=1)  # the exception does not reach later runs


def test_wrong_results_are_refused(plain: fc.Scenario) -> None:
    class NoDecision(fc.Queue):
        def on_arrival(self, packet):
            return None

    class NegativeRate(Aimd):
        def on_tick(self, at):
            return -1.0

    fc.register("no-decision", NoDecision)
    fc.register("negative", NegativeRate)
    with pytest.raises(TypeError, match="ACCEPT, MARK, DROP or OVERFLOW"):
        fc.run(plain.with_({"topology.bottleneck.queue": "own:no-decision"}), seeds=1)
    with pytest.raises(ValueError, match=r"`NegativeRate.on_tick` returned -1.0, but it must return a number from 0 to 1e12"):
        fc.run(plain.with_({"flow.multicast.scheme": "ormcc,policy=own:negative"}), seeds=1)
    with pytest.raises(ValueError, match="congested"):
        fc.Report("lots")


def test_options_and_names_are_checked(plain: fc.Scenario) -> None:
    fc.register("tail", Tail)
    for text, message in [
        ("own:tail,length=3", "no option 'length'; it takes: limit"),
        ("own:unknown-queue", "there is no queue"),
    ]:
        with pytest.raises(fc.ScenarioError, match=message):
            plain.with_({"topology.bottleneck.queue": text})
    with pytest.raises(TypeError, match="not Tail, Aimd"):
        fc.register("both", Tail, Aimd)
    with pytest.raises(TypeError, match="no class"):
        fc.register("nothing")
    with pytest.raises(ValueError, match="letters"):
        fc.register("a b", Tail)


def test_method_is_called_again_only_at_a_later_time(plain: fc.Scenario) -> None:
    calls: dict[str, list[float]] = {"queue": [], "source": [], "receiver": []}

    class Once(Tail):
        timer = 0.1

        def on_timer(self, packet):
            calls["queue"].append(packet.now)

    class Source(Halving):
        def start(self, now):
            self.deadline = now + 1

        def on_deadline(self, now):
            calls["source"].append(now)

    class Receiver(Losses):
        deadline = 2.0

        def on_deadline(self, now):
            calls["receiver"].append(now)
            return fc.Report("alive")

    fc.register("once", Once)
    fc.register("once", Source, Receiver)
    fc.run(plain.with_({"topology.bottleneck.queue": "own:once", "flow.multicast.scheme": "own:once"}), seeds=1)
    receivers = len({*fc.run(plain, seeds=1).series.to_dict()["receiver"]} - {"all"})
    assert len(calls["queue"]) == 1 and len(calls["source"]) == 1 and 1 <= len(calls["receiver"]) <= receivers


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rate", 1e30, r"`Setting.rate` is 1e\+30, but it must be a number from 0 to 1e12"),
        ("rate", None, "`Setting.rate` is None"),
        ("rtt", math.nan, "a positive number of seconds"),
        ("deadline", math.nan, "a time in seconds, or None for never"),
        ("limiting", 99, "99, but it must be None or the number of a receiver whose report has arrived"),
        ("limiting", -1, "-1, but it must be None"),
        ("mark", 3, "a Representative or None"),
    ],
)
def test_wrong_attributes_are_named(plain: fc.Scenario, name: str, value: object, message: str) -> None:
    class Setting(Halving):
        def on_report(self, report, now):
            setattr(self, name, value)

    fc.register("setting", Setting, Losses)
    with pytest.raises(ValueError, match=message):
        fc.run(plain.with_({"flow.multicast.scheme": "own:setting"}), seeds=1)


def test_time_does_not_go_back(plain: fc.Scenario) -> None:
    times = []

    class Late(Tail):
        def on_arrival(self, packet):
            times.append(packet.now)
            if packet.now > 3:
                self.timer = 2.0 if self.timer in (None, math.inf) else self.timer
            return super().on_arrival(packet)

        def on_timer(self, packet):
            times.append(packet.now)

    fc.register("late", Late)
    fc.run(plain.with_({"topology.bottleneck.queue": "own:late"}), seeds=1)
    assert times == sorted(times)


def test_attributes_may_be_none(plain: fc.Scenario) -> None:
    class Quiet(Tail):
        timer = None

        def on_timer(self, packet):
            raise AssertionError("there is no time")

    fc.register("quiet", Quiet)
    fc.run(plain.with_({"topology.bottleneck.queue": "own:quiet"}), seeds=1)


def test_reports_and_decisions_are_checked_and_pickled() -> None:
    report = fc.Report("lost", count=3, loss=0.5, receiver=2, rtt=0.1)
    same = pickle.loads(pickle.dumps(report))
    assert (same.kind, same.count, same.loss, same.receiver, same.rtt) == ("lost", 3, 0.5, 2, 0.1)
    assert pickle.loads(pickle.dumps(fc.Representative(4, mean=2.0))).receiver == 4
    assert pickle.loads(pickle.dumps(fc.Decision.DROP)) == fc.Decision.DROP
    assert {fc.Decision.ACCEPT: 1}[fc.Decision.ACCEPT] == 1
    with pytest.raises(ValueError, match="from 0 to 65535, not 70000"):
        fc.Report("lost", count=70000)
    with pytest.raises(ValueError, match="`level` is a finite number, not NaN"):
        fc.Report("congested", level=math.nan)


def test_options_are_values_of_python(plain: fc.Scenario) -> None:
    seen = []

    class Marking(Tail):
        def __init__(self, ecn=True, limit=50):
            seen.append((ecn, limit))
            super().__init__(limit)

    fc.register("marking", Marking)
    for text in ("own:marking,ecn=false", "own:marking,ecn,limit=2.5"):
        fc.run(plain.with_({"topology.bottleneck.queue": text, "duration": "11 s"}), seeds=1)
    assert {(False, 50), (True, 2.5)} <= set(seen)
    with pytest.raises(fc.ScenarioError, match="'limit' occurs twice"):
        plain.with_({"topology.bottleneck.queue": "own:marking,limit=1,limit=2"})
    with pytest.raises(fc.ScenarioError, match="no policy .*own:unregistered"):
        plain.with_({"flow.multicast.scheme": "ormcc,policy=own:unregistered"})
    fc.register("aimd", Aimd)
    with pytest.raises(fc.ScenarioError, match="no option 'gain'"):
        plain.with_({"flow.multicast.scheme": "ormcc,policy=own:aimd:gain=2"})


def test_campaign_sends_classes_to_its_workers(plain: fc.Scenario, tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    fc.register("aimd", Aimd)
    scenario = plain.with_({"flow.multicast.scheme": "ormcc,policy=own:aimd"})
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        result = fc.campaign(scenario, seeds=4, executor=executor, directory=tmp_path, progress=False)
    assert list(result.values("tcp.rate")) == list(fc.run(scenario, seeds=4).values("tcp.rate"))
    assert pickle.loads(pickle.dumps(scenario)).fingerprint() == scenario.fingerprint()
