"""Executes the notebooks. Set NOTEBOOK_PICTURES to a directory to keep their pictures."""

from __future__ import annotations

import base64
import os
import struct
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_draws(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are stored without outputs"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pictures = [base64.b64decode(output["data"]["image/png"]) for output in outputs if "image/png" in output.get("data", {})]
    assert pictures and not any(output.get("name") == "stderr" for output in outputs), outputs
    for number, picture in enumerate(pictures, 1):
        width, height = struct.unpack(">II", picture[16:24])
        assert width > 400 and height > 200 and len(picture) > 8_000, "a picture with lines in it"
        if directory := os.environ.get("NOTEBOOK_PICTURES"):
            (Path(directory) / f"{path.stem}-{number}.png").write_bytes(picture)
