"""Scenarios: a network, its flows, and what is recorded."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any, Mapping

from . import _native, own
from ._toml import document_of, text_of


class Scenario:
    """A valid scenario.

    A scenario does not change. `with_` returns a changed scenario. All faults of a scenario are reported together, as one
    `ScenarioError`, with the line, the column and a suggestion for each.

    Examples
    --------
    >>> scenario = Scenario.template("dumbbell").with_(duration="30 s", warmup="5 s")
    >>> scenario.title
    'Multicast beside one TCP flow'
    >>> scenario.with_({"flow.multicast.scheme": "ormc"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    faircast.ScenarioError: ...
    """

    __slots__ = ("_native", "_points", "_versions")

    def __init__(self, native: _native.Scenario) -> None:
        self._native = native
        self._points: list[dict[str, float | str]] | None = None
        self._versions = own.registered(native.text)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, memory: int | None = None) -> Scenario:
        """Read a scenario file, and the trace files that it names.

        Parameters
        ----------
        path : path
            The TOML file.
        memory : int, optional
            Maximum memory of one run in bytes, by an estimate [default: 8 GiB].

        Raises
        ------
        OSError
            If a file cannot be read.
        ScenarioError
            If the scenario has faults.
        """
        place = Path(path)

        def trace(name: str) -> str:
            return (place.parent / name).read_text(encoding="utf-8")

        return cls(_native.Scenario.load(place.read_text(encoding="utf-8"), str(place), memory, trace))

    @classmethod
    def parse(cls, text: str, file: str = "scenario.toml", *, memory: int | None = None) -> Scenario:
        """Read a scenario from a text in TOML. Messages refer to the text as `file`."""
        return cls(_native.Scenario.parse(text, file, memory))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], *, memory: int | None = None) -> Scenario:
        """Make a scenario from a dictionary with the keys of a scenario file.

        Examples
        --------
        >>> scenario = Scenario.from_dict({
        ...     "title": "A session with three receivers",
        ...     "duration": "20 s",
        ...     "topology": {"kind": "star", "leaves": 3},
        ...     "flow": [{"name": "m", "kind": "session", "scheme": "ormcc", "from": "src1", "to": "leaf[1-3]"}],
        ... })
        >>> scenario.groups
        ['m']
        """
        return cls(_native.Scenario.parse(document_of(content), "scenario from a dictionary", memory))

    @classmethod
    def template(cls, name: str, *, memory: int | None = None) -> Scenario:
        """Return a template: `dumbbell`, `star`, `tree` or `sweep`. `memory` is that of `load`.

        Raises
        ------
        KeyError
            If there is no template of this name.
        """
        return cls(_native.Scenario.parse(_native.template(name), f"{name}.toml", memory))

    @staticmethod
    def schema() -> dict[str, Any]:
        """Return the JSON Schema of scenario files."""
        schema: dict[str, Any] = json.loads(_native.schema())
        return schema

    def with_(self, settings: Mapping[str, Any] | None = None, /, **keys: Any) -> Scenario:
        """Return the scenario with other values of some keys.

        Parameters
        ----------
        settings : dict, optional
            Paths of keys, as in `{"flow.multicast.scheme": "mtcp", "link.1.delay": "5 ms"}`. A path has names of keys, the `name`
            of a flow, and the number (from 1) of another table in a list.
        **keys
            The same as keyword arguments, for keys that are Python names. Two underscores stand for a dot:
            `flow__multicast__scheme="mtcp"`.

        Raises
        ------
        ScenarioError
            If a path does not exist, or the changed scenario has faults.
        """
        changes = dict(settings or {})
        changes.update((key.replace("__", "."), value) for key, value in keys.items())
        return Scenario(self._native.changed([(path, text_of(value)) for path, value in changes.items()]))

    def with_sweep(self, sweep: Mapping[str, Any]) -> Scenario:
        """Return the scenario with this sweep in place of its own.

        Parameters
        ----------
        sweep : dict
            A list of values for each path of a key. The name of the axis is the last part of the path. `{name: {"set": paths, "to":
            values, "names": labels}}` sets several keys, under another name and with other labels of the values.

        Examples
        --------
        >>> swept = Scenario.template("dumbbell").with_sweep({"flow.multicast.scheme": ["ormcc", "tfmcc"]})
        >>> swept.points
        [{'scheme': 'ormcc'}, {'scheme': 'tfmcc'}]
        """
        return Scenario(self._native.changed([("sweep", text_of(sweep))]))

    @property
    def title(self) -> str:
        """The title."""
        return self._native.title

    @property
    def text(self) -> str:
        """The text of the scenario, in TOML."""
        return self._native.text

    @property
    def file(self) -> str:
        """The name of the file in messages."""
        return self._native.file

    @property
    def seeds(self) -> list[int]:
        """The seeds that the scenario states."""
        return self._native.seeds

    @property
    def points(self) -> list[dict[str, float | str]]:
        """The points of the sweep: the value on each axis. A scenario without a sweep has one point without values."""
        if self._points is None:
            self._points = self._native.points
        return [dict(point) for point in self._points]

    @property
    def groups(self) -> list[str]:
        """The names of the groups of flows."""
        return self._native.groups

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """Probable mistakes, in the form of `ScenarioError.faults`."""
        return self._native.warnings

    def metric_names(self, point: int = 0) -> list[str]:
        """Return the names of the metrics of a run at a point of the sweep."""
        return self._native.metric_names(point)

    def fingerprint(self, point: int = 0) -> str:
        """Return a hash of everything that determines a run at a point, except its seed and the code of the simulator."""
        self._refresh()
        return self._native.fingerprint(point)

    def _refresh(self) -> None:
        """Take the present code of the classes that the scenario names, as before each run."""
        if self._versions:
            own.look(self.text)
            versions = own.registered(self.text)
            if versions != self._versions:
                self._native, self._versions = self._native.changed([]), versions

    def __repr__(self) -> str:
        title = self.title or self.file
        return f"<Scenario {title!r}: {len(self.points)} points, {len(self.seeds)} seeds>"

    def __eq__(self, other: object) -> bool:
        """Whether both scenarios make the same runs: an equal text, and equal code of the classes that it names."""
        if not isinstance(other, Scenario):
            return NotImplemented
        mine, theirs = ((it.text, it._versions, it._native.memory) for it in (self, other))
        return mine == theirs

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        self._refresh()
        try:
            classes = own.packed(self.text)
        except Exception:  # the other process must register the classes itself
            classes = None
        return _restored, (self.text, self.file, self._native.memory, classes, False)

    def __copy__(self) -> Scenario:
        return self

    def __deepcopy__(self, memo: Any) -> Scenario:
        return self

    def packed(self) -> bytes:
        """Return the scenario for a worker, with the classes that it names; `unpacked` reads it."""
        self._refresh()
        return pickle.dumps((self.text, self.file, self._native.memory, own.packed(self.text), True))


def unpacked(packed: bytes) -> Scenario:
    """Return the scenario of a campaign in a worker. Its classes replace those of earlier campaigns."""
    return _restored(*pickle.loads(packed))


def _restored(text: str, file: str, memory: int | None, classes: bytes | None, replace: bool) -> Scenario:
    """Return a scenario that was pickled, with the classes that it names. Registered classes of these names stay unless `replace`."""
    own.unpack(classes, replace=replace)
    return Scenario.parse(text, file, memory=memory)
