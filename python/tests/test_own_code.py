"""Stored runs and workers follow the code of Python classes."""

from __future__ import annotations

import copy
import importlib
import os
import pickle
import subprocess
import sys
import types
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


@pytest.fixture
def lab(plain: fc.Scenario) -> fc.Scenario:
    fc.register("q", _class_of(LIMITED))
    return plain.with_({"topology.bottleneck.queue": "own:q"})


@pytest.fixture(autouse=True)
def cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module in which texts are executed."""
    monkeypatch.setitem(sys.modules, "cell", types.ModuleType("cell"))


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


CHANGES = [
    ("a named tuple with a method", "from typing import NamedTuple\nclass R(NamedTuple):\n    base: int = 1\n    def limit(self): return self.base * {n}\nR1 = R()", "R1.limit()"),
    ("a default value of a dictionary", "from collections import defaultdict\nD = defaultdict(lambda: {n})", "D[1]"),
    ("a subclass of int", "class I(int):\n    def limit(self): return self + {n}\nI1 = I(1)", "I1.limit()"),
    ("a callable object", "import functools\nclass C:\n    def __init__(self, f): functools.update_wrapper(self, f); self.k = {n}\n    def __call__(self): return self.k\n@C\ndef f(): return 1", "f()"),
    ("code that wraps a function of C", "import functools, math\n@functools.wraps(math.floor)\ndef f(): return {n}", "f()"),
    ("a read-only mapping", "import types\nM = types.MappingProxyType({{'full': {n}}})", "M['full']"),
    ("an attribute of a function", "def f(): return f.full\nf.full = {n}", "f()"),
    ("a bound method of a dictionary", "g = {{'full': {n}}}.get", "g('full')"),
    ("the order of a dictionary", "D = dict([(5, 1), ({n}, 1), (5, 2)]) if {n} < 5 else dict([({n}, 1), (5, 1)])", "next(iter(D))"),
    ("a regular expression", "import re\nP = re.compile('x' * {n})", "len(P.pattern)"),
    ("a metaclass", "class Meta(type):\n    def limit(cls): return {n}\nclass K(metaclass=Meta): pass", "K.limit()"),
    ("a partial function", "import functools\nf = functools.partial(pow, {n})", "f(1)"),
    ("a cached function", "import functools\n@functools.lru_cache\ndef f(): return {n}", "f()"),
    ("a member of an enumeration", "import enum\nclass E(enum.Enum):\n    A = {n}", "E.A.value"),
    ("a data class", "from dataclasses import dataclass\n@dataclass\nclass P:\n    full: int = {n}", "P().full"),
    ("an object that cannot be pickled", "import threading\nclass L:\n    def __init__(self): self.lock = threading.Lock(); self.full = {n}\nX = L()", "X.full"),
    ("bytes that can be changed", "B = memoryview(bytes([{n}]))", "B[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "outside", "use"), CHANGES, ids=[name for name, *_ in CHANGES])
def test_change_outside_of_the_class_changes_the_version(name: str, outside: str, use: str) -> None:
    def version(number: int) -> str:
        text = outside.format(n=number) + LIMITED.replace("self.full", use)
        space: dict[str, Any] = {"__name__": "cell"}
        exec(text, space)
        return _code.digest(space["Q"])

    assert version(3) == version(3) != version(4)


def test_use_of_a_class_does_not_change_its_version() -> None:
    text = """
import copy, enum, faircast as fc
class E(enum.IntFlag):
    A = 1
    B = 2
class Q(fc.Queue):
    e = E.A
    limits = {len, max, int}
    def on_arrival(self, packet):
        import colorsys
        return colorsys
"""
    space: dict[str, Any] = {"__name__": "cell"}
    exec(text, space)
    sys.modules.pop("colorsys", None)
    before = _code.digest(space["Q"])
    copy.copy(space["Q"]())
    space["E"].A | space["E"].B
    importlib.import_module("colorsys")
    assert _code.digest(space["Q"]) == before


def test_version_is_the_same_in_all_processes(tmp_path: Path) -> None:
    (tmp_path / "limits.py").write_text(LIMITED + "\n    names = {'a', 'b', 'c', waiting}\n".replace("    names", "Q.names"))
    script = "import limits; from faircast import _code; print(_code.digest(limits.Q))"
    versions = set()
    for seed in ("1", "2"):
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True)
        versions.add(done.stdout or done.stderr)
    assert len(versions) == 1 and len(versions.pop().strip()) == 64


def test_imports_of_methods_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "limits_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "base.py").write_text("def most():\n    return 5\n")
    for number, (before, use) in enumerate([("from .base import most", "most()"), ("from . import base", "base.most()")]):
        text = LIMITED.replace("        return fc.Decision", f"        {before}\n        return fc.Decision").replace("self.full", use)
        (package / f"queue{number}.py").write_text(text)
        module = importlib.import_module(f"limits_package.queue{number}")
        first = _code.digest(module.Q)
        base = importlib.import_module("limits_package.base")
        exec("def most():\n    return 6\n", vars(base))
        assert _code.digest(module.Q) != first
        importlib.reload(base)
    for name in [name for name in sys.modules if name.startswith("limits_package")]:
        del sys.modules[name]


def test_large_and_deep_values_have_a_version() -> None:
    assert _code.digest(list(range(1_000_000))) != _code.digest(list(range(1, 1_000_001)))
    deep: Any = ()
    for _ in range(10_000):
        deep = (deep,)
    with pytest.raises(ValueError, match="too deeply"):
        _code.digest(deep)


def test_loading_a_result_replaces_no_class(lab: fc.Scenario) -> None:
    fc.register("q", limited(200))
    stored = pickle.dumps(fc.run(lab, seeds=1))
    fc.register("q", limited(5))
    before = fc.run(lab, seeds=1).values("tcp.rtt")
    assert pickle.loads(stored).values("tcp.rtt") > before == fc.run(lab, seeds=1).values("tcp.rtt")
