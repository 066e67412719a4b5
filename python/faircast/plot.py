"""Plots of results in Matplotlib."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .result import Result

# Colours that people with any colour vision can tell apart (M. Okabe and K. Ito, 2008).
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442"]


class Plots:
    """Plots of a result. Each method draws on `ax`, or on new axes, and returns them."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def rates(self, flows: str | Iterable[str] | None = None, *, point: int = 0, seed: int | None = None, ax: Axes | None = None) -> Axes:
        """Draw the mean rate of the receivers of each flow over time.

        Parameters
        ----------
        flows : str or iterable of str, optional
            The flows [default: all].
        point : int
            The number of the point.
        seed : int, optional
            One run; without it, the mean over all runs, with a band from the lowest to the highest run.
        """
        import numpy

        point, seed = self._result._point(point), None if seed is None else self._result._seed(seed)
        columns = self._result.series.to_dict()
        wanted = _names(flows)
        courses: dict[str, dict[int, dict[float, list[float]]]] = {}
        rows = zip(columns["point"], columns["seed"], columns["flow"], columns["receiver"], columns["time"], columns["rate"])
        for where, run, flow, receiver, at, rate in rows:
            if where == point and receiver == "all" and run in (seed, run if seed is None else seed) and (wanted is None or flow in wanted):
                courses.setdefault(flow, {}).setdefault(run, {}).setdefault(at, []).append(rate)
        if not courses:
            raise ValueError(f"no rates of flows {flows} at point {point} with seed {seed}")
        ax = ax or _axes()
        for (flow, runs), colour in zip(courses.items(), _colours()):
            times = sorted({at for run in runs.values() for at in run})
            lines = numpy.array([[numpy.mean(run[at]) if at in run else numpy.nan for at in times] for run in runs.values()]) / 1e6
            ax.plot(times, numpy.nanmean(lines, axis=0), label=flow, color=colour)
            if len(lines) > 1:
                ax.fill_between(times, numpy.nanmin(lines, axis=0), numpy.nanmax(lines, axis=0), alpha=0.2, color=colour, linewidth=0)
        return _finished(ax, "time (s)", "rate (Mbit/s)")

    def queue(self, links: str | Iterable[str] | None = None, *, point: int = 0, seed: int | None = None, ax: Axes | None = None) -> Axes:
        """Draw the queue of each probed link over time, in kB, for one run [default: the first seed]."""
        point, seed = self._result._point(point), self._result._seed(seed)
        columns = self._result.queues.to_dict()
        wanted = _names(links)
        courses: dict[str, tuple[list[float], list[float]]] = {}
        for where, run, link, at, size in zip(columns["point"], columns["seed"], columns["link"], columns["time"], columns["bytes"]):
            if where == point and run == seed and (wanted is None or link in wanted):
                times, sizes = courses.setdefault(link, ([], []))
                times.append(at)
                sizes.append(size / 1e3)
        if not courses:
            raise ValueError(f"no queues of links {links} at point {point} with seed {seed}")
        ax = ax or _axes()
        for (link, (times, sizes)), colour in zip(courses.items(), _colours()):
            ax.step(times, sizes, where="post", label=link, color=colour, linewidth=0.8)
        return _finished(ax, "time (s)", "queue (kB)")

    def fairness(self, *, point: int | None = None, ax: Axes | None = None) -> Axes:
        """Draw the mean goodput of each flow with its 95 % interval over the runs, at one point or at all points."""
        from . import stats

        if point is not None:
            self._result._point(point)
        flows = self._result.flows.to_dict()
        shares: dict[tuple[int, str], dict[int, list[float]]] = {}
        for where, seed, flow, window, rate in zip(flows["point"], flows["seed"], flows["flow"], flows["window"], flows["goodput"]):
            if window == "" and (point is None or where == point):
                shares.setdefault((where, flow), {}).setdefault(seed, []).append(rate)
        names = list(dict.fromkeys(flow for _, flow in shares))
        points = list(dict.fromkeys(where for where, _ in shares))
        ax = ax or _axes()
        width = 0.8 / len(names)
        for place, (name, colour) in enumerate(zip(names, _colours())):
            means, errors, at = [], [], []
            for row, where in enumerate(points):
                runs = [sum(rates) / len(rates) / 1e6 for rates in shares.get((where, name), {}).values()]
                if not runs:
                    continue
                at.append(row + (place - (len(names) - 1) / 2) * width)
                means.append(sum(runs) / len(runs))
                errors.append(stats.interval(runs).half_width if len(runs) > 1 else 0.0)
            ax.bar(at, means, width, yerr=errors, label=name, color=colour, capsize=3)
        ax.set_xticks(range(len(points)), [self._label(where) for where in points])
        return _finished(ax, "", "goodput of a flow (Mbit/s)")

    def metric(self, metric: str, over: str, *, by: str | None = None, confidence: float = 0.95, ax: Axes | None = None, **at: Any) -> Axes:
        """Draw a metric over an axis of the sweep, with a band for its confidence interval if there are several runs.

        Parameters
        ----------
        metric : str
            The metric.
        over : str
            The axis of the sweep on the horizontal axis.
        by : str, optional
            Another axis of the sweep: one line for each of its values.
        **at
            The values on the remaining axes.
        """
        from . import stats

        axes = list(self._result.scenario.points[0])
        for axis in (over, by, *at):
            if axis is not None and axis not in axes:
                raise KeyError(f"the sweep has no axis {axis!r}; {f'its axes are {axes}' if axes else 'the scenario has no sweep'}")
        lines: dict[Any, dict[Any, list[float]]] = {}
        for number in self._result.points(**at):
            values = self._result.scenario.points[number]
            line = lines.setdefault(values[by] if by else metric, {})
            if values[over] in line:
                raise KeyError(f"several points have {over} = {values[over]!r}: state a value on each of {[a for a in axes if a not in (over, by, *at)]}")
            line[values[over]] = [value for value in self._result.values(metric, number) if math.isfinite(value)]
        ax = ax or _axes()
        for (name, line), colour in zip(lines.items(), _colours()):
            places = [place for place, runs in line.items() if runs]
            if all(isinstance(place, (int, float)) for place in places):
                places.sort()
            ax.plot(places, [sum(line[at]) / len(line[at]) for at in places], marker="o", markersize=4, label=str(name), color=colour)
            ends = {at: stats.interval(line[at], confidence=confidence) for at in places if len(line[at]) > 1}
            ax.fill_between(list(ends), [end.low for end in ends.values()], [end.high for end in ends.values()], alpha=0.2, color=colour, linewidth=0)
        return _finished(ax, over, metric)

    def _label(self, point: int) -> str:
        return "\n".join(str(value) for value in self._result.scenario.points[point].values())


def _names(names: str | Iterable[str] | None) -> set[str] | None:
    return None if names is None else {names} if isinstance(names, str) else set(names)


def _axes() -> Axes:
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(7, 3.5), layout="constrained")[1]


def _colours() -> Iterable[str]:
    from itertools import cycle

    return cycle(COLOURS)


def _finished(ax: Axes, across: str, up: str) -> Axes:
    ax.set_xlabel(across)
    ax.set_ylabel(up)
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return ax
