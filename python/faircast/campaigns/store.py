"""The data set of a campaign: one Parquet file for each run.

The name of a file depends on everything that determines the run: the code of the simulator, the network at its point of the sweep,
and the seed. So any number of writers can share a data set, campaigns can share runs, and a changed scenario repeats only the runs
that the change affects. A file gets its name when it is written. It has one row, and a column for each table: a list of the table's
rows. Its metadata have the name of the run, and checksums of all parts.

    DIRECTORY/code=HASH/run=FINGERPRINT-SEED.parquet
"""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from .. import _native
from ..scenario import Scenario


class Store:
    """The data set in a directory."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self._code = self.directory / f"code={_native.CODE}"

    def path(self, scenario: Scenario, point: int, seed: int) -> Path:
        """Return the file of a run."""
        return self._code / f"run={scenario._native.fingerprint(point)[:32]}-{seed}.parquet"

    def missing(self, scenario: Scenario, jobs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the runs, as points and seeds, that are not in the data set."""
        try:
            present = set(os.listdir(self._code))
        except FileNotFoundError:
            return list(jobs)
        paths = [(job, self.path(scenario, *job)) for job in jobs]
        # A network file system may list a directory as it was some seconds ago, so each path is looked up as well.
        return [job for job, path in paths if path.name not in present and not path.exists()]

    def run(self, scenario: Scenario, point: int, seed: int, memory: int | None = None) -> bool:
        """Make a run and keep it. Return False if the data set already had it."""
        final = self.path(scenario, point, seed)
        if final.exists():
            return False
        if not self._code.is_dir():
            self._code.mkdir(parents=True, exist_ok=True)
        unfinished = self._code / f".unfinished-{uuid4().hex}"  # another host may have the same name and process numbers
        try:
            _native.run_into(scenario._native, point, seed, final.stem, os.fspath(unfinished), memory)
            unfinished.replace(final)  # if another writer was faster, its file is equal
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        return True

    def table(self, scenario: Scenario, name: str, jobs: list[tuple[int, int]]) -> _native.Table:
        """Return a table of these runs."""
        runs = [(point, seed, os.fspath(self.path(scenario, point, seed))) for point, seed in jobs]
        return _native.stack_runs(scenario._native, name, runs)

    def table_names(self, scenario: Scenario, jobs: list[tuple[int, int]]) -> list[str]:
        """Return the names of the tables that have rows in any of these runs, in the order of a result."""
        return _native.tables_of_runs([os.fspath(self.path(scenario, point, seed)) for point, seed in jobs])

    def clean(self) -> None:
        """Remove what interrupted writers have left. Call it when no other writer uses the data set."""
        for path in self.directory.glob("code=*/.unfinished-*"):
            path.unlink(missing_ok=True)
