"""Campaigns on executors that lose workers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, Callable

import pytest

import faircast as fc
from faircast.campaigns import dask_executor, executor_of, ray_executor, slurm_executor


def equal(first: fc.Result, second: fc.Result, directory: Path) -> None:
    """Check that two results have equal bytes."""
    for result, name in ((first, "first"), (second, "second")):
        result.to_parquet(directory / name)
    names = sorted(path.name for path in (directory / "first").iterdir())
    assert names == sorted(path.name for path in (directory / "second").iterdir())
    for name in names:
        assert (directory / "first" / name).read_bytes() == (directory / "second" / name).read_bytes(), name


def test_campaign_equals_the_runs_of_one_process(tmp_path: Path, swept: fc.Scenario) -> None:
    made = fc.campaign(swept, seeds=3, directory=tmp_path / "runs", progress=False)
    equal(made, fc.run(swept, seeds=3), tmp_path)


def test_only_missing_runs_are_made(tmp_path: Path, swept: fc.Scenario) -> None:
    fc.campaign(swept, seeds=2, directory=tmp_path, progress=False)
    wider = fc.Campaign(swept, seeds=4, directory=tmp_path)
    assert wider.missing() == [(point, seed) for point in range(6) for seed in (3, 4)]
    with pytest.raises(ValueError, match="12 of 24 runs are missing"):
        wider.result()
    kept = {path.name for path in tmp_path.glob("code=*/run=*")}
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("code=*/run=*")}
    wider.run(progress=False)
    assert not wider.missing() and len(kept) == 12
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())


def test_a_changed_key_repeats_only_the_affected_runs(tmp_path: Path, dumbbell: fc.Scenario) -> None:
    sweep = {"flow.multicast.scheme": ["ormcc", "tfmcc"]}
    fc.campaign(dumbbell, sweep, seeds=2, directory=tmp_path, progress=False)
    other = fc.Campaign(dumbbell, 2, {"flow.multicast.scheme": ["tfmcc", "pgmcc"]}, directory=tmp_path)
    assert other.missing() == [(1, 1), (1, 2)]
    assert other.run(progress=False).metrics.to_dict()["scheme"][0] == "tfmcc"


@pytest.mark.parametrize("damage", [lambda file: file.write_bytes(b"nothing"), lambda file: file.unlink()])
def test_damaged_and_lost_runs_are_errors_with_their_path(
    tmp_path: Path, dumbbell: fc.Scenario, damage: Callable[[Path], None]
) -> None:
    campaign = fc.Campaign(dumbbell, 2, directory=tmp_path)
    campaign.run(progress=False)
    result = campaign.result()
    damage(next(tmp_path.glob("code=*/run=*")))
    with pytest.raises(OSError, match="run=.*remove the file"):
        result.metrics


def test_query_engines_read_the_data_set(tmp_path: Path, dumbbell: fc.Scenario) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    metrics = fc.campaign(dumbbell, seeds=2, directory=tmp_path, progress=False).metrics
    rows = [row for file in sorted(tmp_path.glob("code=*/*.parquet")) for row in parquet.read_table(file)["metrics"][0].as_py()]
    assert [row["value"] for row in rows] == metrics.to_dict()["value"]


def test_workers_with_another_simulator_are_refused(tmp_path: Path, dumbbell: fc.Scenario) -> None:
    from faircast.campaigns.campaign import make_runs

    with pytest.raises(RuntimeError, match="install the same package"):
        make_runs("0123", b"", [(0, 1)], str(tmp_path), None)


def test_errors_on_a_dask_cluster_by_name_are_not_masked(tmp_path: Path, dumbbell: fc.Scenario) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, local_directory=tmp_path) as cluster:
        campaign = fc.Campaign(dumbbell, 2, directory=tmp_path / "runs", memory=1000)
        with pytest.raises(MemoryError, match="raise the limit"):
            campaign.run(f"dask:{cluster.scheduler_address}", progress=False)


def test_refused_networks_end_the_campaign(tmp_path: Path, dumbbell: fc.Scenario) -> None:
    with pytest.raises(MemoryError, match="raise the limit"):
        fc.campaign(dumbbell, seeds=2, directory=tmp_path, progress=False, memory=1000)
    assert not list(tmp_path.glob("code=*/run=*"))


class Counting(Executor):
    """Records each started run of another executor in a file."""

    def __init__(self, inner: Executor, log: Path) -> None:
        self._inner, self._log = inner, log

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._inner.submit(counted, str(self._log), *args)


def counted(log: str, code: str, pickled: bytes, jobs: list, directory: str, memory: int | None) -> float:
    """Make runs as a worker does, and write a line for each run that is made."""
    from faircast.campaigns.campaign import _scenario
    from faircast.campaigns.store import Store

    began = time.monotonic()
    scenario, store = _scenario(pickled), Store(directory)
    for point, seed in jobs:
        if store.path(scenario, point, seed).exists():
            continue
        with open(log, "a") as out:
            out.write(f"{point} {seed} {os.getpid()}\n")
        store.run(scenario, point, seed, memory)
    return time.monotonic() - began


def kill_one_worker(log: Path, runs: int) -> threading.Thread:
    """Kill the process of a worker after this number of runs has been started."""

    def kill() -> None:
        while not log.exists() or log.read_text().count("\n") < runs:
            time.sleep(0.01)
        os.kill(int(log.read_text().splitlines()[-1].split()[2]), signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def check_counts(log: Path, runs: int, in_flight: int) -> None:
    """Check that each run was made, and none twice except those in flight."""
    made = [line.rsplit(" ", 1)[0] for line in log.read_text().splitlines()]
    assert len(set(made)) == runs and len(made) <= runs + in_flight, f"{len(made)} of {runs}"


def short(dumbbell: fc.Scenario) -> fc.Scenario:
    return dumbbell.with_(duration="4 s", warmup="1 s")


def test_dask_cluster_completes_after_a_worker_was_killed(tmp_path: Path, dumbbell: fc.Scenario) -> None:
    distributed = pytest.importorskip("distributed")
    scenario, log = short(dumbbell), tmp_path / "log"
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=tmp_path) as cluster, distributed.Client(cluster) as client:
        killer = kill_one_worker(log, 300)
        made = fc.campaign(scenario, seeds=1000, executor=Counting(dask_executor(client), log), directory=tmp_path / "runs", progress=False)
        killer.join(60)
    check_counts(log, 1000, 2)
    equal(made, fc.run(scenario, seeds=1000), tmp_path)


def test_ray_cluster_completes_after_a_worker_was_killed(tmp_path: Path, dumbbell: fc.Scenario) -> None:
    ray = pytest.importorskip("ray")
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this module
    scenario, log = short(dumbbell), tmp_path / "log"
    directory = tempfile.mkdtemp(prefix="ray-")  # a short path, because names of sockets are short
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=directory)
    try:
        killer = kill_one_worker(log, 300)
        made = fc.campaign(scenario, seeds=1000, executor=Counting(ray_executor(), log), directory=tmp_path / "runs", progress=False)
        killer.join(60)
    finally:
        ray.shutdown()
        shutil.rmtree(directory)
    check_counts(log, 1000, 2)
    equal(made, fc.run(scenario, seeds=1000), tmp_path)


def test_submitit_executor_completes(tmp_path: Path, dumbbell: fc.Scenario) -> None:
    pytest.importorskip("submitit")
    executor = slurm_executor(str(tmp_path / "jobs"), cluster="local")
    made = fc.campaign(short(dumbbell), seeds=4, executor=executor, directory=tmp_path / "runs", progress=False)
    equal(made, fc.run(short(dumbbell), seeds=4), tmp_path)


def test_processes_complete_after_a_broken_pool(tmp_path: Path, dumbbell: fc.Scenario) -> None:
    from concurrent.futures.process import BrokenProcessPool

    scenario, log = short(dumbbell), tmp_path / "log"
    campaign = fc.Campaign(scenario, 60, directory=tmp_path / "runs")
    with executor_of("local:2") as pool:
        kill_one_worker(log, 20)
        with pytest.raises(BrokenProcessPool):
            campaign.run(Counting(pool, log), progress=False)
    assert 0 < len(campaign.missing()) < 60
    with executor_of("local:2") as pool:
        made = campaign.run(Counting(pool, log), progress=False)
    check_counts(log, 60, 2)
    equal(made, fc.run(scenario, seeds=60), tmp_path)


def test_unknown_executors_are_errors() -> None:
    with pytest.raises(ValueError, match="dask"):
        executor_of("cloud")


@pytest.mark.parametrize("executor", ["None", "'local:1'"])
def test_ctrl_c_ends_a_campaign(tmp_path: Path, executor: str) -> None:
    script = f"""
import signal
import faircast as fc
scenario = fc.Scenario.template("dumbbell").with_(duration="100000 s", warmup="5 s")
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in background jobs
    print("begins", flush=True)
    fc.campaign(scenario, seeds=2, executor={executor}, directory="runs", progress=False)
"""
    (tmp_path / "campaign.py").write_text(script)
    program = subprocess.Popen([sys.executable, "campaign.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None and program.stdout.readline() == "begins\n"
        until = time.monotonic() + 60
        while not list(tmp_path.glob("runs/code=*")) and time.monotonic() < until:
            time.sleep(0.05)
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=60)
        assert "KeyboardInterrupt" in errors and program.returncode != 0
    finally:
        program.kill()
    assert not list(tmp_path.glob("runs/code=*/run=*"))


def test_executors_of_other_kinds_are_refused(tmp_path: Path, dumbbell: fc.Scenario) -> None:
    for wrong, message in [(2, "not 2"), ("local:x", "not 'x'"), ("local:0", "not '0'"), ("dask:foo", "has a port")]:
        with pytest.raises((TypeError, ValueError), match=message):
            fc.campaign(dumbbell, seeds=1, executor=wrong, directory=tmp_path, progress=False)


def test_file_of_another_run_is_refused(tmp_path: Path, dumbbell: fc.Scenario) -> None:
    campaign = fc.Campaign(dumbbell, 2, directory=tmp_path)
    campaign.run(progress=False)
    first, second = (campaign._store.path(dumbbell, 0, seed) for seed in (1, 2))
    shutil.copy(second, first)
    with pytest.raises(OSError, match="it is a copy of run=.*-2; remove the file"):
        campaign.result().metrics
