"""Congestion control and queues that are Python classes.

A class is registered under a name, and a scenario names it `own:NAME`::

    class Gentle(fc.Policy):
        def on_tick(self, at):
            return at.rate + 8 * at.packet_size / at.rtt / 2

        def on_congestion(self, at, level, keep):
            return 0.875 * level

    fc.register("gentle", Gentle)
    scenario = fc.Scenario.template("dumbbell").with_({"flow.multicast.scheme": "ormcc,policy=own:gentle"})
    result = fc.run(scenario)

The simulator calls the classes; real transfers do not. Runs with Python classes use one processor at a time; a campaign with
several processes uses more.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pickle
import random as _random
import re
import sys
from contextlib import ExitStack, contextmanager
from typing import Any, Iterator

from . import _code, _native
from ._native import Decision, Report, Representative

#: The registered classes of each kind and name, and the version of their code.
_registered: dict[tuple[str, str], tuple[tuple[type, ...], str]] = {}


class Policy:
    """A rule for the growth and the reduction of a rate, for the schemes `ormcc`, `le-sbcc`, `mca-plus` and `gmcc`.

    The scheme decides when the rate changes; the policy decides how. Each source has an object of the class.
    """

    def on_tick(self, at: _native.Operating) -> float:
        """Return the rate in bit/s, at most 1e12, after a round-trip time without congestion.

        Parameters
        ----------
        at : Operating
            `rate` in bit/s, `rtt` in seconds, `full_rtt` (the round-trip time at congestion, in seconds), `deviation` of the
            round-trip time in seconds, and `packet_size` in bytes.
        """
        raise NotImplementedError

    def on_congestion(self, at: _native.Operating, level: float, keep: float) -> float:
        """Return the rate in bit/s after a congestion event; a result above the present rate counts as the present rate.

        Parameters
        ----------
        at : Operating
            As in `on_tick`.
        level : float
            Rate at which congestion occurred, in bit/s.
        keep : float
            Part of `level` that remains by the scheme's own rule.
        """
        raise NotImplementedError


class Queue:
    """A first-in-first-out queue of a link that decides about each packet at its arrival.

    Optional methods are `on_departure(sent)`, called at the beginning of each transmission with `now`, `size`, `flow`,
    `waiting` and `waiting_bytes`; and `on_timer(packet)`, called at the time `self.timer` with the state of the queue. The method
    sets a later time, or else there is no further call.

    Attributes
    ----------
    marks : bool
        Whether the discipline marks packets. An attribute of the class, for warnings about scenarios; the packets are marked by
        `on_arrival`.
    rate : float
        Rate of the link in bit/s; set by the simulator, also at changes.
    random : random.Random
        A generator that depends on the seed of the run. Use no other one, or else equal seeds give different results.
    timer : float
        Time of the next call of `on_timer`, in seconds; infinite or None for no call.
    """

    marks: bool = False
    rate: float
    random: _random.Random
    timer: float | None = math.inf

    def on_arrival(self, packet: _native.Packet) -> Decision:
        """Return the decision about an arriving packet.

        `Decision.ACCEPT` queues it, `Decision.MARK` queues it with a mark if it is ECN-capable and drops it otherwise,
        `Decision.DROP` drops it early, and `Decision.OVERFLOW` drops it because the buffer is full.

        Parameters
        ----------
        packet : Packet
            `now` in seconds, `size` in bytes, `flow` (a number), `ecn` ("not-ect", "ect0", "ect1" or "ce"), `waiting` (number of
            packets, without the one in transmission), `waiting_bytes`, and `idle_since` (seconds; None while the link is busy).
        """
        raise NotImplementedError


class Source:
    """The source of a scheme with one rate. The simulator numbers and paces the packets, and measures round-trip times.

    The class sets the attributes; the simulator reads them after each call. An optional method is `on_leave(receiver, now)`,
    called when a receiver has left.

    Attributes
    ----------
    rate : float
        Rate in bit/s, at most 1e12. At first one packet per assumed round-trip time.
    rtt : float
        Round-trip time in seconds that the results report. At first the assumed one. The class decides when the rate may grow, also
        while the application has nothing to send.
    packet_size : int
        Size of a packet in bytes; set by the simulator.
    deadline : float
        Time of the next call of `on_deadline`, in seconds; infinite or None for no call.
    mark : Representative or None
        Statement to all receivers in every packet.
    limiting : int or None
        The receiver that limits the rate, for the results. It must have sent a report.
    random : random.Random
        A generator that depends on the seed of the run.
    """

    rate: float
    rtt: float
    packet_size: int
    deadline: float | None = math.inf
    mark: Representative | None = None
    limiting: int | None = None
    random: _random.Random

    def start(self, now: float) -> None:
        """Start the session. `now` is in seconds."""

    def on_report(self, report: Report, now: float) -> None:
        """Process an arrived report.

        Parameters
        ----------
        report : Report
            `kind` ("congested", "lost" or "alive"), `receiver` (a number), `level`, `mean`, `loss`, `count`, and `rtt` (a sample
            in seconds, or None).
        now : float
            The present time in seconds.
        """
        raise NotImplementedError

    def on_deadline(self, now: float) -> None:
        """Process the deadline. The method sets a later one, or else there is no further call."""


class SchemeReceiver:
    """The receiver of a scheme.

    An optional method is `on_deadline(now)`, called at the time `self.deadline`. It may return a report, and sets a later
    deadline, or else there is no further call.

    Attributes
    ----------
    me : int
        Number of the receiver; set by the simulator.
    deadline : float
        Time of the next call of `on_deadline`, in seconds; infinite or None for no call.
    random : random.Random
        A generator that depends on the seed of the run.
    """

    me: int
    deadline: float | None = math.inf
    random: _random.Random

    def on_data(self, packet: _native.Data, now: float) -> Report | None:
        """Process an arrived packet, and return a report or None.

        Parameters
        ----------
        packet : Data
            `seq`, `sent_at` in seconds, `rate` in bit/s, `size` in bytes, `lost` (number of packets missing before it), `marked`,
            `late` (it was missing before), and `mark` (a `Representative` or None).
        now : float
            The present time in seconds.
        """
        raise NotImplementedError


def register(name: str, *classes: type) -> None:
    """Register a class, so that scenarios can name it `own:NAME`.

    A scenario passes options to the constructor: `own:NAME,limit=50,ecn` for queues and schemes, `own:NAME:gain=0.5:fast` for
    policies, which are options themselves. A word without a value is True, and `false` is False.

    Stored runs are used again only for the same code: the methods, the functions and classes that they call, and the values of
    variables that they take from outside, in all modules except installed packages. A list that a class appends to from run to run
    is such a variable.

    Parameters
    ----------
    name : str
        Letters, digits, `-` and `_`. A class replaces the class that was registered under the same name before, also for scenarios
        that were read before.
    *classes : type
        A subclass of `Policy`, a subclass of `Queue`, or subclasses of `Source` and `SchemeReceiver`.

    Examples
    --------
    >>> class Short(Queue):
    ...     def __init__(self, limit=20):
    ...         self.limit = limit
    ...
    ...     def on_arrival(self, packet):
    ...         return Decision.OVERFLOW if packet.waiting >= self.limit else Decision.ACCEPT
    >>> register("short", Short)
    >>> from faircast import Scenario, run
    >>> scenario = Scenario.template("dumbbell").with_({"topology.bottleneck.queue": "own:short,limit=30", "duration": "30 s"})
    >>> run(scenario, seeds=1).values("tcp.rate")[0] > 0
    True
    """
    _kind(classes)
    _register(name, classes, _version(classes))


def _register(name: str, classes: tuple[type, ...], version: str) -> None:
    kind = _kind(classes)
    _native.register(kind, name, list(classes), _arguments, version)
    _registered[kind, name] = (classes, version)


def _kind(classes: tuple[type, ...]) -> str:
    for kind, bases in (("policy", (Policy,)), ("queue", (Queue,)), ("scheme", (Source, SchemeReceiver))):
        if len(classes) == len(bases) and all(map(_is_subclass, classes, bases)):
            return kind
    given = ", ".join(getattr(cls, "__name__", repr(cls)) for cls in classes) or "no class"
    raise TypeError(f"register takes a Policy, a Queue, or a Source and a SchemeReceiver, not {given}")


def look(text: str) -> None:
    """Register the classes that a scenario names again if their code has changed, as by a global variable with another value."""
    for (_, name), (classes, version) in _named(text):
        current = _version(classes)
        if current != version:
            _register(name, classes, current)


def registered(text: str) -> list[str]:
    """Return the versions of the registered classes that a scenario names."""
    return [version for _, (_, version) in _named(text)] if "own:" in text else []


def _named(text: str) -> list[tuple[tuple[str, str], tuple[tuple[type, ...], str]]]:
    names = set(re.findall(r"own:([A-Za-z0-9_-]+)", text))
    return [(key, entry) for key, entry in sorted(_registered.items()) if key[1] in names]


def packed(text: str) -> bytes | None:
    """Return the registered classes that a scenario names, for `unpack` in another process; None if it names no class."""
    wanted = [(name, classes, version) for (_, name), (classes, version) in _named(text)]
    if not wanted:
        return None
    with ExitStack() as stack:
        for module in sorted({cls.__module__ for _, classes, _ in wanted for cls in classes}):
            stack.enter_context(_by_value(module))
        try:
            return bytes(_pickle().dumps(wanted))
        except Exception:  # a value that cannot be pickled: the workers import the module instead
            pass
    return bytes(_pickle().dumps(wanted))


@contextmanager
def _by_value(module: str) -> Iterator[None]:
    """Have the classes of a module pickled with their code, because a worker may have imported an earlier text of the module."""
    pickler = _pickle()
    by_value = (
        pickler is not pickle
        and module != "__main__"
        and module in sys.modules
        and not _code.is_installed(module)
        and module not in pickler.list_registry_pickle_by_value()
    )
    if by_value:
        pickler.register_pickle_by_value(sys.modules[module])
    try:
        yield
    finally:
        if by_value:
            pickler.unregister_pickle_by_value(sys.modules[module])


def unpack(classes: bytes | None, *, replace: bool) -> None:
    """Register the classes that another process has packed.

    Parameters
    ----------
    classes : bytes or None
        The result of `packed`.
    replace : bool
        Whether a class replaces one that is registered under its name.

    Raises
    ------
    RuntimeError
        If this process has other code of the classes.
    """
    if classes is None:
        return
    for name, wanted, version in pickle.loads(classes):
        known = [entry[1] for key, entry in _registered.items() if key == (_kind(wanted), name)]
        if version in known or known and not replace:
            continue
        if _version(wanted) != version:
            names = " and ".join(f"{cls.__module__}.{cls.__qualname__}" for cls in wanted)
            raise RuntimeError(
                f"the code of {names}, or a variable that it uses, is another one in this worker than in the campaign: restart the workers"
            )
        _register(name, wanted, version)


def _pickle() -> Any:
    """Return the module that pickles classes: cloudpickle, which Dask and Ray have, also pickles classes of a notebook."""
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return pickle


def _is_subclass(cls: Any, base: type) -> bool:
    return isinstance(cls, type) and issubclass(cls, base)


def _arguments(classes: list[type], text: str) -> list[dict[str, Any]]:
    """Return the arguments for the constructor of each class, from the options in a scenario."""
    options = {}
    for option in filter(None, re.split("[,:]", text)):
        word, equals, value = (part.strip() for part in option.partition("="))
        if word in options:
            raise ValueError(f"the option {word!r} occurs twice")
        if equals and not value:
            raise ValueError(f"the option {word!r} has no value")
        options[word] = _value(value) if equals else True
    arguments: list[dict[str, Any]] = []
    for cls in classes:
        parameters = inspect.signature(cls).parameters
        takes_all = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
        arguments.append({word: value for word, value in options.items() if takes_all or word in parameters})
        inspect.signature(cls).bind(**arguments[-1])  # a TypeError names a missing argument
    for word in options:
        if not any(word in taken for taken in arguments):
            known = sorted({name for cls in classes for name in inspect.signature(cls).parameters})
            takes = ", ".join(known) if known else "no options"
            raise ValueError(f"{' and '.join(cls.__name__ for cls in classes)} has no option {word!r}; it takes: {takes}")
    return arguments


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _version(classes: tuple[type, ...]) -> str:
    return _code.digest(classes)
