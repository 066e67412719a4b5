"""Runs of scenarios."""

from __future__ import annotations

import operator
import os
import sys
import time
from typing import Any, Callable, Iterable, Mapping, SupportsIndex

from . import _native
from .result import Result
from .scenario import Scenario

#: Maximum number of seeds that are given by their number.
MOST_SEEDS = 1_000_000

#: Minimum number of runs at each point with a required precision.
FIRST_RUNS = 5

Progress = Callable[[int, int, float, "float | None"], None]


def run(
    scenario: Scenario | str | os.PathLike[str],
    seeds: int | Iterable[int] | None = None,
    sweep: Mapping[str, Any] | None = None,
    *,
    threads: int = 0,
    progress: bool | Progress = False,
    memory: int | None = None,
    kept: str | os.PathLike[str] | None = None,
    until: Mapping[str, float] | None = None,
    most_runs: int = 1000,
) -> Result:
    """Run every point of a scenario with every seed.

    A run is a function of its scenario, its point and its seed. So the same arguments give the same results, with any number of
    threads, and the same bytes as `faircast sim run`. Other threads of Python continue meanwhile. Ctrl-C ends the runs.

    Parameters
    ----------
    scenario : Scenario or path
        The scenario.
    seeds : int or iterable of int, optional
        The seeds, or the number of seeds: `10` stands for 1 to 10 [default: the seeds of the scenario].
    sweep : dict, optional
        Values for some keys, in place of the scenario's own sweep: `{"flow.multicast.scheme": ["ormcc", "mtcp"]}`.
    threads : int
        Number of simultaneous runs; 0 means one for each processor.
    progress : bool or callable
        Whether to print the progress to standard error; or a function of the number of completed runs, the number of all runs,
        the completed share, and the remaining time in seconds or None. It is called in this thread. An exception of the function
        ends the runs.
    memory : int, optional
        Maximum memory of all simultaneous runs in bytes, by an estimate [default: 8 GiB].
    kept : path, optional
        A directory with the runs of earlier calls, which are not repeated. New runs are added.
    until : dict, optional
        Required precision of metrics, as a share of their mean: `{"multicast.rate": 0.02}` adds seeds until the half width of the
        95 % interval of this metric is at most 2 % of its mean at every point. `seeds` are the first seeds then (at least 5).
        An interval that decides about its own number of runs covers the mean slightly less often than in 95 % of cases.
    most_runs : int
        Maximum number of runs at each point with `until`. The result states whether the precision was reached
        (`Result.is_precise`).

    Returns
    -------
    Result
        The tables of all runs.

    Raises
    ------
    RunError
        If the simulator refuses the network.
    MemoryError
        If the runs would need more memory than permitted.

    Examples
    --------
    >>> result = run(Scenario.template("dumbbell").with_(duration="20 s", warmup="5 s"), seeds=2)
    >>> len(result.values("multicast.rate"))
    2
    """
    if not isinstance(scenario, Scenario):
        scenario = Scenario.load(scenario, memory=memory)
    if sweep is not None:
        scenario = scenario.with_sweep(sweep)
    scenario._refresh()
    chosen = list_of_seeds(scenario.seeds if seeds is None else seeds)
    if until is not None and most_runs < max(FIRST_RUNS, len(chosen)):
        raise ValueError(f"`most_runs` is {most_runs}, but each point has at least {max(FIRST_RUNS, len(chosen))} runs")
    bar = ProgressLine() if progress is True else None
    watch = bar or (progress if callable(progress) else None)
    try:
        if until is None:
            return Result.of_run(scenario, chosen, _native.run(scenario._native, chosen, None, threads, memory, _path(kept), watch))
        native, used, is_precise = _native.run_until(
            scenario._native, chosen, list(until.items()), most_runs, threads, memory, _path(kept), watch
        )
        result = Result.of_run(scenario, used, native)
        result.is_precise = is_precise
        return result
    finally:
        if bar:
            bar.close()


def list_of_seeds(seeds: SupportsIndex | Iterable[int]) -> list[int]:
    """Return the seeds as a list."""
    number = _index(seeds)
    if number is not None and number > MOST_SEEDS:
        raise ValueError(f"{number} seeds are too many; for the seed {number} write seeds=[{number}]")
    given: Any = seeds if number is None else range(1, number + 1)
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise TypeError(f"seeds are whole numbers, or their number, not {seeds!r}")
    chosen = []
    for seed in given:
        number = _index(seed)
        if number is None or not 0 <= number < 1 << 64:
            raise ValueError(f"a seed is a whole number from 0 to 2^64 - 1, not {seed!r}")
        chosen.append(number)
    if not chosen:
        raise ValueError(f"there are no seeds in {seeds!r}; each seed is one run of each point")
    if len(set(chosen)) < len(chosen):
        raise ValueError("a seed occurs twice, but two runs with the same seed are equal")
    return chosen


def _index(value: Any) -> int | None:
    """Return a whole number as `int`; None for another value, as an array of several numbers."""
    try:
        return operator.index(value)
    except TypeError:
        return None


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


class ProgressLine:
    """Prints the progress of runs on one line of standard error."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._printed_at = 0.0

    def __call__(self, done: int, runs: int, share: float, left: float | None) -> None:
        now = time.monotonic()
        pause = 0.2 if self._is_terminal else 10.0
        if done < runs and now - self._printed_at < pause:
            return
        self._printed_at = now
        ahead = "" if left is None else f", {duration(left)} left"
        line = f"{100 * share:3.0f} %  {done} of {runs} runs done{ahead}"
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{line}")
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Remove the line."""
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def duration(seconds: float) -> str:
    """Return a duration in words.

    >>> duration(3725)
    '1:02:05'
    >>> duration(42.4)
    '42 s'
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
