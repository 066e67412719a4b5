"""The figures and tables of the papers, repeated and judged.

Examples
--------
>>> [entry.id for entry in list() if entry.id.startswith("003/table")]
['003/table-1', '003/table-2']
"""

from __future__ import annotations

import builtins
import os
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import islice
from typing import Iterable

from . import _native
from .running import Progress, ProgressLine, list_of_seeds
from .table import Table


@dataclass(frozen=True)
class Entry:
    """A figure or table of a paper.

    Attributes
    ----------
    id : str
        Identifier, as in `"000/fig-3.8"`.
    about : str
        Its content.
    document : str
        The name of the paper.
    """

    id: str
    about: str
    document: str


@dataclass(frozen=True)
class Reproduction:
    """A repeated figure or table.

    Attributes
    ----------
    id : str
        Its identifier.
    claims : Table
        The claims with published value, measured mean, its 95 % interval, the accepted range and the verdict.
    figures : dict
        Names and SVG texts of the figures.
    """

    id: str
    claims: Table
    figures: dict[str, str]

    def _repr_html_(self) -> str:
        return "".join(self.figures.values()) + self.claims._repr_html_()


def list() -> builtins.list[Entry]:
    """Return all figures and tables."""
    return [Entry(*entry) for entry in _native.entries()]


def run(
    id: str,
    *,
    seeds: int | Iterable[int] | None = None,
    quick: bool = False,
    threads: int = 0,
    alternatives: int = 0,
    kept: str | os.PathLike[str] | None = None,
    progress: bool | Progress = False,
) -> Reproduction:
    """Repeat a figure or table.

    Parameters
    ----------
    id : str
        Its identifier, as in `"000/fig-3.8"`.
    seeds : int or iterable of int, optional
        Seeds in place of the scenario's.
    quick : bool
        Whether to make two short runs only. Such runs give no verdict.
    threads : int
        Number of simultaneous runs; 0 means one for each processor.
    alternatives : int
        Number of seeds for runs with other values of what the paper leaves open.
    kept : path, optional
        A directory with the runs of earlier calls, which are not repeated.
    progress : bool or callable
        As in `faircast.run`.

    Raises
    ------
    KeyError
        If there is no such figure.
    """
    bar = ProgressLine() if progress is True else None
    watch = bar or (progress if callable(progress) else None)
    chosen = None if seeds is None else list_of_seeds(seeds)
    try:
        path = None if kept is None else os.fspath(kept)
        claims, figures = _native.reproduce(id, chosen, quick, threads, alternatives, path, watch)
    finally:
        if bar:
            bar.close()
    return Reproduction(id, Table(claims), dict(figures))


def verify(
    ids: Iterable[str] | None = None,
    *,
    seeds: int | Iterable[int],
    executor: Executor | str | None = None,
    directory: str | os.PathLike[str] = "verify",
    alternatives: int = 0,
    progress: bool | Progress = True,
) -> builtins.list[Reproduction]:
    """Repeat figures and tables on any executor, and judge their claims.

    Each figure with each seed is a task. Its runs are kept in a directory that all workers must see; call again after an
    interruption, and only the missing runs are made.

    Parameters
    ----------
    ids : iterable of str, optional
        Identifiers, also of groups: `"002"`, `"002/fig-3"` [default: all].
    seeds : int or iterable of int
        The seeds, or their number.
    executor : Executor or str, optional
        As in `Campaign.run`.
    directory : path
        The directory of the runs.
    alternatives : int
        As in `run`.
    progress : bool or callable
        As in `faircast.run`; the unit is a task.

    Raises
    ------
    KeyError
        If there is no such figure.
    """
    from .campaigns.executors import opened, results, workers_of

    chosen, path = list_of_seeds(seeds), os.path.abspath(directory)
    wanted = _selected(ids)
    tasks = [(_repeat, _native.CODE, id, [seed], 0, path) for id in wanted for seed in chosen]
    last = [(_repeat, _native.CODE, id, chosen, alternatives, path) for id in wanted] if alternatives else []
    bar = ProgressLine() if progress is True else None
    watch = bar or (progress if callable(progress) else None)
    try:
        with opened(executor) as pool:
            done, count = 0, len(tasks) + len(last)
            for step in (iter(tasks), iter(last)):
                for _ in results(pool, lambda most: islice(step, most), 2 * workers_of(pool)):
                    done += 1
                    if watch:
                        watch(done, count, done / count, None)
        return [run(id, seeds=chosen, alternatives=alternatives, kept=path) for id in wanted]
    finally:
        if bar:
            bar.close()


def _selected(ids: Iterable[str] | None) -> builtins.list[str]:
    """Return the identifiers of figures that are named, or belong to a named group: a paper, a chapter, or parts of a figure."""
    known = [entry.id for entry in list()]
    if ids is None:
        return known
    selected: builtins.list[str] = []
    for wanted in [ids] if isinstance(ids, str) else ids:
        found = [id for id in known if id == wanted or id.startswith((f"{wanted}/", f"{wanted}."))]
        if not found:
            raise KeyError(f"no figure {wanted!r}; there are {', '.join(known)}")
        selected += [id for id in found if id not in selected]
    return selected


def _repeat(code: str, id: str, seeds: builtins.list[int], alternatives: int, kept: str) -> None:
    """Make the runs of a figure in a worker."""
    from .campaigns.executors import check_code

    check_code(code)
    _native.reproduce(id, seeds, False, 1, alternatives, kept, None)
