"""The papers' figures."""

from __future__ import annotations

from pathlib import Path

import pytest

import faircast as fc
from faircast.__main__ import main


def test_figures_are_listed() -> None:
    ids = [entry.id for entry in fc.repro.list()]
    assert len(ids) > 80 and "000/fig-3.8" in ids


def test_figure_is_repeated() -> None:
    done = fc.repro.run("003/fig-3", quick=True)
    assert len(done.claims) > 0 and all("<svg" in svg for svg in done.figures.values())


def test_unknown_figures_are_errors() -> None:
    with pytest.raises(KeyError, match="000/fig-99"):
        fc.repro.run("000/fig-99")


def test_figures_are_verified_on_an_executor_once(tmp_path: Path) -> None:
    steps: list[int] = []

    def note(done: int, *_rest: object) -> None:
        steps.append(done)

    first = fc.repro.verify(["003/fig-3"], seeds=2, directory=tmp_path / "runs", progress=note)
    files = sorted(path.name for path in (tmp_path / "runs").rglob("*") if path.is_file())
    again = fc.repro.verify(["003/fig-3"], seeds=2, executor="local:1", directory=tmp_path / "runs", progress=False)
    alone = fc.repro.run("003/fig-3", seeds=2)
    assert steps == [1, 2] and files and files == sorted(path.name for path in (tmp_path / "runs").rglob("*") if path.is_file())
    assert str(first[0].claims.to_dict()) == str(again[0].claims.to_dict()) == str(alone.claims.to_dict())
    with pytest.raises(KeyError, match="003/fig-99"):
        fc.repro.verify(["003/fig-99"], seeds=1)


def test_command_prints_claims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["campaign", "verify", "003/fig-3", "--seeds", "2", "--dir", str(tmp_path), "-q"])
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].startswith("figure\tclaim") and all(line.startswith("003/fig-3") for line in lines[1:])
    assert code == int("fails" in printed.out) and ("undecided" in printed.err or "holds" in printed.err)
    assert main(["campaign", "verify", "009", "-q", "--dir", str(tmp_path)]) == 2
