"""The commands of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import faircast as fc
from conftest import PROGRAM
from faircast.__main__ import main


@pytest.fixture
def lab(tmp_path: Path, swept: fc.Scenario, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lab.toml").write_text(swept.text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_runs_are_made_once_and_their_means_printed(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["campaign", "missing", "lab.toml", "--seeds", "2"]) == 0
    assert "12 of 12 runs are missing" in capsys.readouterr().err
    assert main(["campaign", "run", "lab.toml", "--seeds", "2", "--executor", "local:2", "--out", "tables", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("\t") == ["rate", "scheme", "metric", "mean", "low", "high", "runs"]
    assert lines[1].startswith("1 Mbit/s\tormcc\tmulticast.rate\t") and lines[1].endswith("\t2")
    assert (lab / "tables" / "metrics.parquet").exists()
    assert main(["campaign", "missing", "lab.toml", "--seeds", "3"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "point 0, seed 3: rate = 1 Mbit/s, scheme = ormcc"


@pytest.mark.parametrize(
    "words, message",
    [
        (["run", "none.toml"], "none.toml"),
        (["run", "lab.toml", "--executor", "cloud"], "dask"),
        (["run", "lab.toml", "--set", "flow.tcp.kind=tcp-rneo"], "tcp-reno"),
    ],
)
def test_wrong_usage_is_an_error_with_advice(lab: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert main(["campaign", *words]) == 2
    assert message in capsys.readouterr().err


def test_wrong_words_are_errors(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--seeds", "some"], ["--set", "duration"]):
        with pytest.raises(SystemExit):
            main(["campaign", "run", "lab.toml", *words])
    assert "KEY=VALUE" in capsys.readouterr().err


@pytest.mark.skipif(PROGRAM is None, reason="FAIRCAST_PROGRAM does not name the program")
def test_program_calls_the_package_and_says_if_it_is_missing(lab: Path, tmp_path: Path) -> None:
    words = [str(PROGRAM), "campaign", "run", "lab.toml", "--seeds", "1", "--executor", "local:1", "-q"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    made = subprocess.run(words, env={**os.environ, "PATH": path}, text=True, capture_output=True)
    assert made.returncode == 0 and "multicast.rate" in made.stdout, made.stderr
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    refused = subprocess.run(words, env={"PATH": str(python.parent)}, text=True, capture_output=True)
    assert refused.returncode == 2 and "pip install ." in refused.stderr


def test_wrong_directories_are_errors_before_the_runs(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lab / "afile").write_text("")
    for words in (["missing", "lab.toml", "--dir", "afile"], ["run", "lab.toml", "--dir", "afile"], ["run", "lab.toml", "--out", "afile"]):
        assert main(["campaign", *words]) == 2
        assert "afile" in capsys.readouterr().err
    assert not (lab / "campaign").exists()
    with pytest.raises(SystemExit):
        main(["campaign", "run", "lab.toml", "--seeds", "3..1"])
    assert "the range 3..1 has no seeds" in capsys.readouterr().err
