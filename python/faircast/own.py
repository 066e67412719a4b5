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

import hashlib
import importlib
import inspect
import math
import pickle
import random as _random
import re
from typing import Any

from . import _native
from ._native import Decision, Report, Representative

#: The registered classes of each name, and the version of their code.
_registered: dict[str, tuple[tuple[type, ...], str]] = {}


class Policy:
    """A rule for the growth and the reduction of a rate, for the schemes `ormcc`, `le-sbcc`, `mca-plus` and `gmcc`.

    The scheme decides when the rate changes; the policy decides how. Each source has an object of the class.
    """

    def on_tick(self, at: _native.Operating) -> float:
        """Return the rate in bit/s after a round-trip time without congestion.

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
        Whether the discipline marks packets.
    rate : float
        Rate of the link in bit/s; set by the simulator, also at changes.
    random : random.Random
        A generator that depends on the seed of the run. Use no other one, or else equal seeds give different results.
    timer : float
        Time of the next call of `on_timer`, in seconds.
    """

    marks: bool = False
    rate: float
    random: _random.Random
    timer: float = math.inf

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
        Rate in bit/s. At first one packet per assumed round-trip time.
    rtt : float
        Round-trip time in seconds that the results report. At first the assumed one. The class decides when the rate may grow, also
        while the application has nothing to send.
    packet_size : int
        Size of a packet in bytes; set by the simulator.
    deadline : float
        Time of the next call of `on_deadline`, in seconds.
    mark : Representative or None
        Statement to all receivers in every packet.
    limiting : int or None
        The receiver that limits the rate, for the results.
    random : random.Random
        A generator that depends on the seed of the run.
    """

    rate: float
    rtt: float
    packet_size: int
    deadline: float = math.inf
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
        Time of the next call of `on_deadline`, in seconds.
    random : random.Random
        A generator that depends on the seed of the run.
    """

    me: int
    deadline: float = math.inf
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
    policies, which are options themselves. A word without a value is True. Stored runs are used again only if the source text
    of the classes is the same; if they call other code that has changed, change their attribute `version`.

    Parameters
    ----------
    name : str
        Letters, digits, `-` and `_`. A class that was registered under the same name before is replaced in scenarios that are read
        afterwards.
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
    _register(name, classes, _version(classes))


def _register(name: str, classes: tuple[type, ...], version: str) -> None:
    for kind, bases in (("policy", (Policy,)), ("queue", (Queue,)), ("scheme", (Source, SchemeReceiver))):
        if len(classes) == len(bases) and all(map(_is_subclass, classes, bases)):
            _native.register(kind, name, list(classes), _arguments, version)
            _registered[name] = (classes, version)
            return
    given = ", ".join(getattr(cls, "__name__", repr(cls)) for cls in classes) or "no class"
    raise TypeError(f"register takes a Policy, a Queue, or a Source and a SchemeReceiver, not {given}")


def packed(text: str) -> bytes | None:
    """Return the registered classes that a scenario names, for `unpack` in another process; None if it names no class."""
    names = sorted(set(re.findall(r"own:([A-Za-z0-9_-]+)", text)))
    wanted = {name: _registered[name] for name in names if name in _registered}
    return _pickle().dumps(wanted) if wanted else None


def unpack(classes: bytes | None) -> None:
    """Register the classes that another process has packed, unless the same version is registered."""
    if classes is None:
        return
    for name, (wanted, version) in pickle.loads(classes).items():
        if name not in _registered or _registered[name][1] != version:
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
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _version(classes: tuple[type, ...]) -> str:
    """Return a hash of the code of classes and of their base classes."""
    code = hashlib.sha256()
    for cls in classes:
        for base in inspect.getmro(cls) if isinstance(cls, type) else ():
            if base is object or base.__module__ == __name__:
                continue
            code.update(repr((base.__name__, getattr(base, "version", None), _text(base))).encode())
    return code.hexdigest()


def _text(cls: type) -> str:
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):  # typed at a prompt, without a file
        functions = sorted((name, member.__code__) for name, member in vars(cls).items() if inspect.isfunction(member))
        return repr([(name, code.co_code, code.co_names, _constants(code.co_consts)) for name, code in functions])


def _constants(constants: tuple[Any, ...]) -> list[str]:
    """Return constants as text without the addresses of inner functions."""
    return [repr(constant.co_code) if inspect.iscode(constant) else repr(constant) for constant in constants]
