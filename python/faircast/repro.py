"""The figures and tables of the papers, repeated and judged.

Examples
--------
>>> [entry.id for entry in list() if entry.id.startswith("003/table")]
['003/table-1', '003/table-2']
"""

from __future__ import annotations

import builtins
import os
from dataclasses import dataclass
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
