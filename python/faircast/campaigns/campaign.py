"""Campaigns of runs."""

from __future__ import annotations

import functools
import os
import time
from concurrent.futures import Executor
from typing import Any, Iterable, Iterator, Mapping

from .. import _native
from ..result import Result
from ..running import Progress, ProgressLine, list_of_seeds
from ..scenario import Scenario, unpacked
from ..table import Table
from .executors import Threads, check_code, opened, results, workers_of
from .store import Store

#: Duration of a task that a campaign aims at, in seconds. A task has several short runs, because each task costs about a millisecond.
TASK_SECONDS = 0.25

#: Maximum number of tasks that are submitted and not completed.
SUBMITTED = 256


class Campaign:
    """All runs of a scenario, and the data set in which they are kept.

    Parameters
    ----------
    scenario : Scenario or path
        The scenario.
    seeds : int or iterable of int, optional
        The seeds, or the number of seeds [default: the seeds of the scenario].
    sweep : dict, optional
        Values for some keys, in place of the scenario's own sweep.
    directory : path
        The data set. All workers must see it under this path.
    memory : int, optional
        Maximum memory of one run in bytes, by an estimate.
    """

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        seeds: int | Iterable[int] | None = None,
        sweep: Mapping[str, Any] | None = None,
        *,
        directory: str | os.PathLike[str],
        memory: int | None = None,
    ) -> None:
        if not isinstance(scenario, Scenario):
            scenario = Scenario.load(scenario, memory=memory)
        scenario = scenario if sweep is None else scenario.with_sweep(sweep)
        scenario._refresh()
        self.scenario = Scenario(scenario._native)  # the code of its classes changes only at `run`
        self.seeds = list_of_seeds(self.scenario.seeds if seeds is None else seeds)
        self.directory = os.path.abspath(directory)
        self.memory = self.scenario._native.memory if memory is None else memory
        self._store = Store(self.directory)

    @property
    def jobs(self) -> list[tuple[int, int]]:
        """All runs, as points and seeds, in the order of results."""
        return [(point, seed) for point in range(len(self.scenario.points)) for seed in self.seeds]

    def missing(self) -> list[tuple[int, int]]:
        """Return the runs that are not in the data set, as points and seeds."""
        return self._store.missing(self.scenario, self.jobs)

    def run(self, executor: Executor | str | None = None, *, progress: bool | Progress = True) -> Result:
        """Make the missing runs, and return the result of all runs.

        Parameters
        ----------
        executor : concurrent.futures.Executor or str, optional
            Any executor, or the name of one (`executor_of`) [default: threads of this process; a run needs no interpreter].
        progress : bool or callable
            As in `faircast.run`. The remaining time is an estimate from the completed runs.

        Raises
        ------
        RunError
            If the simulator refuses the network at a point.
        Exception
            If the executor fails. Completed runs are kept; the next call makes the remaining ones.
        """
        bar = ProgressLine() if progress is True else None
        watch = bar or (progress if callable(progress) else None)
        try:
            self.scenario._refresh()
            with opened(executor) as pool:
                self._run_on(pool, watch)
        finally:
            if bar:
                bar.close()
        return self.result()

    def _run_on(self, executor: Executor, watch: Progress | None) -> None:
        # Another process needs the text of the scenario, and its classes.
        scenario = self.scenario if isinstance(executor, Threads) else self.scenario.packed()
        missing = self.missing()
        workers = workers_of(executor)
        tasks = _Tasks(missing, getattr(executor, "task_seconds", TASK_SECONDS), workers)
        before, began = len(self.jobs) - len(missing), time.monotonic()
        done = 0

        def take(most: int) -> Iterator[tuple[Any, ...]]:
            for jobs in tasks.take(most):
                yield make_runs, _native.CODE, scenario, jobs, self.directory, self.memory

        for (_, _, _, jobs, *_), seconds in results(executor, take, max(SUBMITTED, 2 * workers)):
            tasks.learn(len(jobs), seconds)
            done += len(jobs)
            if watch:
                left = (time.monotonic() - began) / done * (len(missing) - done)
                watch(before + done, before + len(missing), (before + done) / (before + len(missing)), left)

    def result(self) -> Result:
        """Return the result of all runs. Its tables are read when they are first used.

        Raises
        ------
        ValueError
            If runs are missing.
        """
        missing = self.missing()
        if missing:
            raise ValueError(f"{len(missing)} of {len(self.jobs)} runs are missing in {self.directory}; `run` makes them")
        scenario = Scenario(self.scenario._native)  # the code of its classes may change at a later `run`
        return Result(scenario, self.seeds, _Tables(self._store, scenario, self.jobs))

    def __repr__(self) -> str:
        return f"<Campaign of {self.scenario!r}: {len(self.missing())} of {len(self.jobs)} runs are missing in {self.directory}>"


class _Tasks:
    """Divides runs among tasks of about the same duration."""

    def __init__(self, jobs: list[tuple[int, int]], task_seconds: float, workers: int) -> None:
        self._jobs = jobs
        self._parts = 4 * workers
        self._at = 0
        self._task_seconds = task_seconds
        self._runs = 0
        self._seconds = 0.0

    def take(self, most: int) -> Iterator[list[tuple[int, int]]]:
        """Return at most this number of tasks. Until a run is completed, each task has one run, and there are few tasks."""
        if not self._runs:
            most = min(most, self._parts - self._at)
        for _ in range(most):
            left = len(self._jobs) - self._at
            if left == 0:
                return
            size = 1
            if self._runs:
                size = int(self._task_seconds / max(self._seconds / self._runs, 1e-6))
            # The last tasks are small, so that all workers end at about the same time.
            size = max(1, min(size, left // self._parts))
            yield self._jobs[self._at : self._at + size]
            self._at += size

    def learn(self, runs: int, seconds: float) -> None:
        """Learn the duration of completed runs."""
        self._runs += runs
        self._seconds += seconds


class _Tables(Mapping[str, Table]):
    """The tables of a campaign, each read when it is first used."""

    def __init__(self, store: Store, scenario: Scenario, jobs: list[tuple[int, int]]) -> None:
        self._store, self._scenario, self._jobs = store, scenario, jobs
        self._read: dict[str, Table] = {}

    @functools.cached_property
    def _names(self) -> list[str]:
        return self._store.table_names(self._scenario, self._jobs)

    def __getitem__(self, name: str) -> Table:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            self._read[name] = Table(self._store.table(self._scenario, name, self._jobs))
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


_scenario = functools.lru_cache(maxsize=8)(unpacked)


def make_runs(code: str, scenario: Scenario | bytes, jobs: list[tuple[int, int]], directory: str, memory: int | None) -> float:
    """Make the missing ones of these runs in a worker. Return the duration in seconds."""
    check_code(code)
    began = time.monotonic()
    read, store = _scenario(scenario) if isinstance(scenario, bytes) else scenario, Store(directory)
    for point, seed in jobs:
        store.run(read, point, seed, memory)
    return time.monotonic() - began


def campaign(
    scenario: Scenario | str | os.PathLike[str],
    sweep: Mapping[str, Any] | None = None,
    seeds: int | Iterable[int] | None = None,
    executor: Executor | str | None = None,
    *,
    directory: str | os.PathLike[str] = "campaign",
    progress: bool | Progress = True,
    memory: int | None = None,
) -> Result:
    """Make all runs of a scenario that are missing in a data set, on any executor, and return the result of all runs.

    The parameters are those of `Campaign` and `Campaign.run`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     short = Scenario.template("dumbbell").with_(duration="10 s", warmup="2 s")
    ...     result = campaign(short, seeds=3, directory=directory, progress=False)
    ...     len(result.values("tcp.rate"))
    3
    """
    return Campaign(scenario, seeds, sweep, directory=directory, memory=memory).run(executor, progress=progress)
