"""Scenarios for the tests."""

from __future__ import annotations

import os
import shutil

import matplotlib
import pytest

import faircast as fc

matplotlib.use("agg")

#: Path of the program, for the tests that need it.
PROGRAM = os.environ.get("FAIRCAST_PROGRAM") or shutil.which("faircast")


@pytest.fixture(scope="session")
def dumbbell() -> fc.Scenario:
    """One multicast session and one TCP flow share a bottleneck for 20 s."""
    return fc.Scenario.template("dumbbell").with_(duration="20 s", warmup="5 s")


@pytest.fixture(scope="session")
def swept(dumbbell: fc.Scenario) -> fc.Scenario:
    """The same with three bottlenecks and two schemes."""
    return dumbbell.with_sweep(
        {"topology.bottleneck.rate": ["1 Mbit/s", "2 Mbit/s", "4 Mbit/s"], "flow.multicast.scheme": ["ormcc", "tfmcc"]}
    )
