"""Results of runs."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, Mapping

from . import _native, formats, stats
from .table import Table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from .plot import Plots
    from .scenario import Scenario


class Result:
    """The tables of all runs of a scenario, in the order of points and seeds.

    Every table begins with the number of the point, the value on each axis of the sweep, and the seed. The unit of rates is bit/s,
    the unit of times is seconds.

    Attributes
    ----------
    scenario : Scenario
        The scenario.
    seeds : list of int
        The seeds of the runs.
    is_precise : bool or None
        With `run(until=..)`: whether the required precision was reached.
    """

    def __init__(self, scenario: Scenario, seeds: list[int], tables: Mapping[str, Table], native: Any = None) -> None:
        self.scenario = scenario
        self.seeds = seeds
        self.is_precise: bool | None = None
        self._tables = tables
        self._native = native
        self._values: dict[tuple[int, str], dict[int, float]] | None = None

    @classmethod
    def of_run(cls, scenario: Scenario, seeds: list[int], native: _native.Results) -> Result:
        """Return the result of runs of this process."""
        return cls(scenario, seeds, {name: Table(native.table(name)) for name in native.table_names}, native)

    @property
    def summary(self) -> Table:
        """Mean, standard deviation and 95 % interval (Student's t) of each metric at each point."""
        return self.summarise()

    def summarise(self, confidence: float = 0.95) -> Table:
        """Return `summary` with another level of confidence."""
        return Table(_native.summary(self.metrics._native, confidence))

    @property
    def metrics(self) -> Table:
        """One value of each metric for each run."""
        return self.table("metrics")

    @property
    def flows(self) -> Table:
        """Numbers of packets, rates and delays of each flow in each window."""
        return self.table("flows")

    @property
    def series(self) -> Table:
        """The rate of each receiver over time."""
        return self.table("rates")

    @property
    def queues(self) -> Table:
        """The queues of probed links over time. A link is probed if `probe.links` of the scenario names it."""
        return self.table("queues")

    @property
    def events(self) -> Table:
        """Events of sessions, if `probe.events` of the scenario records them."""
        return self.table("events")

    @property
    def table_names(self) -> list[str]:
        """The names of all tables that have rows."""
        return list(self._tables)

    def table(self, name: str) -> Table:
        """Return a table.

        Raises
        ------
        KeyError
            If the runs have no such table, or it has no rows.
        """
        if name not in self._tables:
            raise KeyError(f"no rows in a table {name!r}; there are {', '.join(self._tables)}")
        return self._tables[name]

    def to_arrow(self, name: str = "metrics") -> pyarrow.Table:
        """Return a table as a table of PyArrow, without copies."""
        return self.table(name).to_arrow()

    def to_pandas(self, name: str = "metrics") -> pandas.DataFrame:
        """Return a table as a data frame of pandas."""
        return self.table(name).to_pandas()

    def to_polars(self, name: str = "metrics") -> polars.DataFrame:
        """Return a table as a data frame of Polars, without copies."""
        return self.table(name).to_polars()

    def to_parquet(self, directory: str | os.PathLike[str]) -> list[str]:
        """Write each table as `NAME.parquet` into a directory. Equal results give equal bytes.

        Returns
        -------
        list of str
            The paths of the files.
        """
        tables = [(name, table._native) for name, table in self._tables.items()]
        return [os.fspath(path) for path in _native.write_parquet(tables, os.fspath(directory))]

    def write(self, directory: str | os.PathLike[str]) -> list[str]:
        """Write the files that `faircast sim run --out DIRECTORY` writes, with the same bytes.

        Raises
        ------
        ValueError
            If the result is that of a campaign, or comes from another process. Use `to_parquet` then.
        """
        if self._native is None:
            raise ValueError("the result of a campaign or of another process has no files of `sim run`; use `to_parquet`")
        return [os.fspath(path) for path in self._native.write(os.fspath(directory))]

    def to_flent(self, path: str | os.PathLike[str], point: int = 0, seed: int | None = None) -> None:
        """Write the rates and round-trip times of one run as a data file of Flent (`.flent.gz`), test `tcp_nup`.

        The flows with a window are `TCP upload::1` and so on, with `::tcp_rtt` and `::tcp_cwnd`; the mean of their round-trip
        times is `Ping (ms) ICMP`. Receivers of sessions are `FLOW::COPY::RECEIVER`.

        Parameters
        ----------
        path : path
            The file.
        point : int
            The point of the sweep.
        seed : int, optional
            The seed [default: the first].
        """
        formats.write_flent(self, path, point, seed)

    def to_events(self, path: str | os.PathLike[str], point: int = 0, seed: int | None = None) -> None:
        """Write the events of one run as a JSON text sequence in the form of qlog (`formats.EventFile`).

        The scenario must have `probe.events = "on"`. Events of sessions on real networks have the same form:
        `for event in sender: file.write(event)`.

        Raises
        ------
        ValueError
            If the runs have recorded no events.
        """
        formats.write_events(self, path, point, seed)

    @property
    def claims(self) -> Table:
        """The claims of the scenario, judged by these runs. A claim is `undecided` if its interval crosses a limit."""
        if self._native is None:
            raise ValueError("the claims of a campaign or of another process are not judged; `run` judges them, but repeats the runs")
        return Table(self._native.claims())

    @property
    def plot(self) -> Plots:
        """Plots in Matplotlib: `plot.rates()`, `plot.queue()`, `plot.fairness()`, `plot.metric(..)`."""
        from .plot import Plots

        return Plots(self)

    def points(self, **at: Any) -> list[int]:
        """Return the numbers of the points with these values on the axes.

        Raises
        ------
        KeyError
            If there is no such point.
        """
        every = self.scenario.points
        found = [number for number, point in enumerate(every) if all(point.get(axis) == value for axis, value in at.items())]
        if not found:
            raise KeyError(f"no point has {at}; the points are {every}")
        return found

    def point(self, **at: Any) -> int:
        """Return the number of the only point with these values on the axes."""
        found = self.points(**at)
        if len(found) > 1:
            raise KeyError(f"{len(found)} points have {at}: state a value on each axis of {list(self.scenario.points[0])}")
        return found[0]

    def values(self, metric: str, point: int | None = None, **at: Any) -> list[float]:
        """Return the values of a metric at one point, one for each seed, in the order of the seeds.

        A run in which the metric has no defined value, as a delay without packets, has NaN.

        Parameters
        ----------
        metric : str
            The metric, as in `"multicast.rate"`.
        point : int, optional
            The number of the point.
        **at
            The values on the axes of the sweep, instead of the number.
        """
        if self._values is None:
            columns = self.metrics.to_dict()
            self._values = {}
            for number, seed, name, value in zip(columns["point"], columns["seed"], columns["metric"], columns["value"]):
                self._values.setdefault((number, name), {})[seed] = value
        number = self.point(**at) if point is None else self._point(point)
        if (number, metric) not in self._values:
            known = sorted(name for where, name in self._values if where == number)
            raise KeyError(f"no metric {metric!r} at point {number}; there are {', '.join(known)}")
        values = self._values[number, metric]
        return [values.get(seed, math.nan) for seed in self.seeds]

    def interval(
        self, metric: str, point: int | None = None, *, confidence: float = 0.95, method: str = "t", **at: Any
    ) -> stats.Interval:
        """Return the mean of a metric over the runs of a point that have it, with its confidence interval (`stats.interval`)."""
        values = [value for value in self.values(metric, point, **at) if math.isfinite(value)]
        return stats.interval(values, confidence=confidence, method=method)

    def compare(
        self, metric: str, first: Mapping[str, Any], second: Mapping[str, Any], *, confidence: float = 0.95, method: str = "t"
    ) -> stats.Interval:
        """Return the mean difference of a metric between two points, second minus first, with its confidence interval.

        Runs with the same seed have the same random numbers, so the difference is taken within each seed. Its interval is often much
        narrower than those of the two means.

        Parameters
        ----------
        metric : str
            The metric.
        first, second : dict
            The values on the axes of the two points.

        Returns
        -------
        stats.Interval
            Its `runs` are the seeds with which both points have the metric.
        """
        both = zip(self.values(metric, **first), self.values(metric, **second))
        pairs = [pair for pair in both if all(map(math.isfinite, pair))]
        return stats.paired([a for a, _ in pairs], [b for _, b in pairs], confidence=confidence, method=method)

    def warmup(self, flow: str, receiver: str = "all") -> list[dict[str, Any]]:
        """Return the warm-up of the rate of a flow in each run, by MSER-5, and the test for a trend after it.

        Returns
        -------
        list of dict
            `point`, `seed`, `copy`; `seconds`: the end of the warm-up, None if the rate has no stationary part or the series is too
            short; `trend`: the probability of such a trend in a stationary series after the warm-up.
        """
        columns = self.series.to_dict()
        groups: dict[tuple[int, int, int], list[tuple[float, float]]] = {}
        rows = zip(columns["point"], columns["seed"], columns["copy"], columns["flow"], columns["receiver"], columns["time"], columns["rate"])
        for point, seed, copy, name, who, at, rate in rows:
            if name == flow and who == receiver:
                groups.setdefault((point, seed, copy), []).append((at, rate))
        if not groups:
            known = sorted(set(zip(columns["flow"], columns["receiver"])))
            raise KeyError(f"no rates of receiver {receiver!r} of flow {flow!r}; there are {known[:20]}")
        found = []
        for (point, seed, copy), course in groups.items():
            course = [(at, rate) for at, rate in course if math.isfinite(rate)]
            rates = [rate for _, rate in course]
            removed = stats.warmup(rates)
            end = None if removed is None else (course[removed - 1][0] if removed else 0.0)
            rest = rates if removed is None else rates[removed:]
            found.append({"point": point, "seed": seed, "copy": copy, "seconds": end, "trend": stats.trend(rest)})
        return found

    def _point(self, point: int) -> int:
        points = len(self.scenario.points)
        if not 0 <= point < points:
            raise IndexError(f"point {point} does not exist; the sweep has {points} points, numbered from 0")
        return point

    def _seed(self, seed: int | None) -> int:
        """Return a seed of the runs [default: the first]."""
        if seed is None:
            return self.seeds[0]
        if seed not in self.seeds:
            raise KeyError(f"no run has the seed {seed}; the seeds are {', '.join(map(str, self.seeds[:20]))}")
        return seed

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.scenario, self.seeds, dict(self._tables), self.is_precise)

    def __copy__(self) -> Result:
        return self

    def __deepcopy__(self, memo: Any) -> Result:
        return self

    def __repr__(self) -> str:
        return f"<Result of {self.scenario!r}: tables {', '.join(self._tables)}>"


def _restored(scenario: Scenario, seeds: list[int], tables: dict[str, Table], is_precise: bool | None) -> Result:
    """Return a result that was pickled."""
    result = Result(scenario, seeds, tables)
    result.is_precise = is_precise
    return result
