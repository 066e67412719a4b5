"""Stored runs and workers follow the code of Python classes."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import faircast as fc
from faircast import _code
from faircast.campaigns.executors import Processes

LIMITED = """
import faircast as fc

class Q(fc.Queue):
    full = 200

    def __init__(self, low=1):
        self.low = low

    def on_arrival(self, packet):
        return fc.Decision.OVERFLOW if waiting(packet) >= self.full else fc.Decision.ACCEPT

def waiting(packet):
    return MORE + packet.waiting

MORE = 0
"""


@pytest.fixture(scope="module")
def plain() -> fc.Scenario:
    return fc.Scenario.template("dumbbell").with_(duration="20 s", warmup="5 s")


@pytest.fixture(scope="module")
def lab(plain: fc.Scenario) -> fc.Scenario:
    fc.register("q", _class_of(LIMITED))
    return plain.with_({"topology.bottleneck.queue": "own:q"})


def _class_of(text: str) -> Any:
    space: dict[str, Any] = {"__name__": "cell"}
    exec(text, space)
    return space["Q"]


def limited(full: int, notes: list[float] | None = None) -> Any:
    class Q(fc.Queue):
        def on_arrival(self, packet):
            if notes is not None:
                notes.append(packet.now)
            return fc.Decision.OVERFLOW if packet.waiting >= full else fc.Decision.ACCEPT

    return Q


@pytest.mark.parametrize(
    ("old", "new"),
    [("full = 200", "full = 5"), ("low=1", "low=2"), ("MORE = 0", "MORE = 1"), ("MORE + packet", "MORE - packet"), (">= self", "> self")],
)
def test_each_change_changes_the_version(old: str, new: str) -> None:
    assert _code.digest(_class_of(LIMITED)) == _code.digest(_class_of("\n# a comment\n" + LIMITED))
    assert _code.digest(_class_of(LIMITED)) != _code.digest(_class_of(LIMITED.replace(old, new)))


def test_changed_cell_of_a_notebook_repeats_stored_runs(lab: fc.Scenario, tmp_path: Path) -> None:
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell()
    rtts = []
    for full in (200, 5):
        shell.run_cell(LIMITED.replace("200", str(full)) + '\nfc.register("q", Q)').raise_error()
        rtts.append(fc.run(lab, seeds=1, kept=tmp_path).values("tcp.rtt"))
        assert rtts[-1] == fc.run(lab, seeds=1).values("tcp.rtt")
    assert rtts[0] > rtts[1]


def test_variables_from_outside_count(lab: fc.Scenario, tmp_path: Path) -> None:
    rtts = []
    for full in (200, 5):
        fc.register("q", limited(full))
        rtts.append(fc.campaign(lab, seeds=1, directory=tmp_path, progress=False).values("tcp.rtt"))
    assert rtts[0] > rtts[1]
    assert not fc.Campaign(lab, 1, directory=tmp_path).missing()


def test_variable_changed_after_registration_counts(lab: fc.Scenario, tmp_path: Path) -> None:
    cell = _class_of(LIMITED)
    fc.register("q", cell)
    space = cell.on_arrival.__globals__
    rtts = []
    for more in (0, 195):
        space["MORE"] = more
        rtts.append(fc.run(lab, seeds=1, kept=tmp_path).values("tcp.rtt"))
    assert rtts[0] > rtts[1]


def test_campaign_with_a_class_that_collects_is_complete(lab: fc.Scenario, tmp_path: Path) -> None:
    notes: list[float] = []
    fc.register("q", limited(50, notes))
    result = fc.campaign(lab, seeds=2, directory=tmp_path, progress=False)
    assert len(result.values("tcp.rtt")) == 2 and notes


def test_worker_that_has_imported_an_earlier_text(lab: fc.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cloudpickle")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "limits_of_queues.py"
    file.write_text("full = 0\n")
    module = importlib.import_module("limits_of_queues")
    try:
        with Processes(1) as executor:
            for full in (200, 5):
                file.write_text(LIMITED.replace("200", str(full)))
                importlib.reload(module)
                fc.register("q", module.Q)
                done = fc.campaign(lab, seeds=1, executor=executor, directory=tmp_path / "runs", progress=False)
                assert done.values("tcp.rtt") == fc.run(lab, seeds=1).values("tcp.rtt")
            # The module of a function that the class calls is imported by the worker, once.
            helper = tmp_path / "helper_of_queues.py"
            helper.write_text("def most():\n    return 50\n")
            other = importlib.import_module("helper_of_queues")
            calling = _class_of("import helper_of_queues\n" + LIMITED.replace("self.full", "helper_of_queues.most()"))
            fc.register("q", calling)
            fc.campaign(lab, seeds=1, executor=executor, directory=tmp_path / "runs", progress=False)
            helper.write_text("def most():\n    return 500 - 495\n")
            importlib.reload(other)
            with pytest.raises(RuntimeError, match="restart the workers"):
                fc.campaign(lab, seeds=1, executor=executor, directory=tmp_path / "runs", progress=False)
    finally:
        for name in ("limits_of_queues", "helper_of_queues"):
            sys.modules.pop(name, None)


def test_policy_and_queue_may_have_one_name(plain: fc.Scenario, tmp_path: Path) -> None:
    def policy(gain: float) -> Any:
        class P(fc.Policy):
            def on_tick(self, at):
                return at.rate + gain * at.packet_size / at.rtt

            def on_congestion(self, at, level, keep):
                return min(at.rate, level * keep)

        return P

    fc.register("mine", policy(8.0))
    fc.register("mine", limited(50))
    both = plain.with_({"topology.bottleneck.queue": "own:mine", "flow.multicast.scheme": "ormcc,policy=own:mine"})
    before = both.fingerprint()
    fc.register("mine", policy(4.0))
    assert both.fingerprint() != before
    if importlib.util.find_spec("cloudpickle"):
        with Processes(1) as executor:
            done = fc.campaign(both, seeds=1, executor=executor, directory=tmp_path, progress=False)
        assert done.values("tcp.rate") == fc.run(both, seeds=1).values("tcp.rate")


def test_class_registered_again_replaces_the_earlier_one(lab: fc.Scenario, tmp_path: Path) -> None:
    fc.register("q", limited(200))
    scenario = lab.with_(warmup="4 s")
    before = fc.run(scenario, seeds=1).values("tcp.rtt")
    fc.register("q", limited(5))
    after = fc.campaign(scenario, seeds=1, directory=tmp_path, progress=False).values("tcp.rtt")
    assert before > after == fc.run(scenario, seeds=1).values("tcp.rtt")


def test_values_that_cannot_be_pickled_do_not_disturb(lab: fc.Scenario, tmp_path: Path) -> None:
    import threading

    lock = threading.Lock()

    class Locking(fc.Queue):
        def on_arrival(self, packet, full=fc.Decision.OVERFLOW):
            with lock:
                return full if packet.waiting >= 50 else fc.Decision.ACCEPT

    fc.register("q", Locking)
    assert fc.campaign(lab, seeds=1, directory=tmp_path, progress=False).values("tcp.rate")[0] > 0
