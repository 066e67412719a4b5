"""The papers' figures."""

from __future__ import annotations

import pytest

import faircast as fc


def test_figures_are_listed() -> None:
    ids = [entry.id for entry in fc.repro.list()]
    assert len(ids) > 80 and "000/fig-3.8" in ids


def test_figure_is_repeated() -> None:
    done = fc.repro.run("003/fig-3", quick=True)
    assert len(done.claims) > 0 and all("<svg" in svg for svg in done.figures.values())


def test_unknown_figures_are_errors() -> None:
    with pytest.raises(KeyError, match="000/fig-99"):
        fc.repro.run("000/fig-99")
