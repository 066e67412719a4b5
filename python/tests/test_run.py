"""Runs and their results."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import threading
import time

import pytest

import faircast as fc
from conftest import PROGRAM


@pytest.fixture(scope="module")
def result(swept: fc.Scenario) -> fc.Result:
    return fc.run(swept, seeds=3)


def test_same_seeds_give_the_same_values(dumbbell: fc.Scenario) -> None:
    first, second = (fc.run(dumbbell, seeds=[4, 9], threads=threads) for threads in (1, 2))
    assert first.metrics.to_dict() == second.metrics.to_dict()


@pytest.mark.skipif(PROGRAM is None, reason="FAIRCAST_PROGRAM does not name the program")
def test_files_have_the_bytes_of_the_command_line(tmp_path, swept: fc.Scenario) -> None:
    (tmp_path / "lab.toml").write_text(swept.text)
    subprocess.run([PROGRAM, "sim", "run", "lab.toml", "--seeds", "2", "--out", "out", "-q"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    written = fc.run(fc.Scenario.load(tmp_path / "lab.toml"), seeds=2).write(tmp_path / "ours")
    tables = [path for path in written if path.endswith(".csv")]
    assert len(tables) > 5
    for path in tables:
        theirs = tmp_path / "out" / os.path.basename(path)
        with open(path, "rb") as ours:
            assert ours.read() == theirs.read_bytes(), path


def test_tables_reach_other_libraries_without_copies(result: fc.Result) -> None:
    import pandas
    import polars
    import pyarrow

    table = result.series
    arrow = pyarrow.table(table)
    assert len(arrow) == len(table) > 1000
    assert "sweep.rate" in arrow.column_names, "the axis has another name than the column"
    assert pyarrow.table(table)["rate"].chunk(0).buffers()[1].address == arrow["rate"].chunk(0).buffers()[1].address
    frame = result.to_pandas("rates")
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == table.column_names
    assert polars.DataFrame(table).equals(result.to_polars("rates"))


def test_summary_has_means_and_intervals(result: fc.Result) -> None:
    frame = result.summary.to_pandas()
    row = frame[(frame.point == 2) & (frame.metric == "tcp.rate")].iloc[0]
    values = result.values("tcp.rate", 2)
    assert row["runs"] == 3 and row["mean"] == pytest.approx(sum(values) / 3)
    interval = result.interval("tcp.rate", 2)
    assert (row.low, row.high) == pytest.approx((interval.low, interval.high))


def test_unknown_names_are_errors_that_list_the_known_ones(result: fc.Result) -> None:
    with pytest.raises(KeyError, match="multicast.rate"):
        result.values("multicast.raet", 0)
    with pytest.raises(KeyError, match="rates"):
        result.table("nothing")
    with pytest.raises(KeyError, match="4 Mbit/s"):
        result.point(rate="3 Mbit/s")


def test_paired_comparison_removes_the_common_deviation(result: fc.Result) -> None:
    slow, fast = ({"rate": rate, "scheme": "ormcc"} for rate in ("1 Mbit/s", "4 Mbit/s"))
    difference = result.compare("tcp.rate", slow, fast)
    assert difference.verdict(low=0) == "holds" and difference.runs == 3
    near = [result.compare("tcp.rate", slow, slow).half_width, result.interval("tcp.rate", **slow).half_width]
    assert near[0] == 0 < near[1], "a point has no difference to itself, but a deviation"


def test_claims_are_judged(dumbbell: fc.Scenario) -> None:
    claims = fc.run(dumbbell, seeds=3).claims.to_dict()
    assert claims["verdict"][0] in {"holds", "fails", "undecided"}


def test_parquet_files_can_be_read(tmp_path, result: fc.Result) -> None:
    import pyarrow.parquet

    paths = result.to_parquet(tmp_path)
    assert len(paths) == len(result.table_names)
    table = pyarrow.parquet.read_table(tmp_path / "metrics.parquet")
    assert table["value"].to_pylist() == result.metrics.to_dict()["value"]


def test_precision_adds_runs_until_it_is_reached(dumbbell: fc.Scenario) -> None:
    rough = fc.run(dumbbell, until={"multicast.rate": 0.2})
    fine = fc.run(dumbbell, until={"multicast.rate": 0.05})
    assert rough.is_precise and fine.is_precise and len(rough.seeds) < len(fine.seeds)
    interval = fine.interval("multicast.rate")
    assert interval.half_width <= 0.05 * interval.mean
    refused = fc.run(dumbbell, until={"multicast.rate": 0.001}, most_runs=10)
    assert refused.is_precise is False and len(refused.seeds) == 10


def test_progress_reaches_all_runs(dumbbell: fc.Scenario) -> None:
    calls = []
    fc.run(dumbbell, seeds=4, progress=lambda *status: calls.append(status))
    done, runs, share, _ = calls[-1]
    assert (done, runs, share) == (4, 4, 1.0)


def test_exception_of_progress_ends_the_runs(dumbbell: fc.Scenario) -> None:
    def fail(*_status: object) -> None:
        raise LookupError("enough")

    began = time.monotonic()
    with pytest.raises(LookupError, match="enough"):
        fc.run(dumbbell.with_(duration="50000 s"), seeds=4, progress=fail)
    assert time.monotonic() - began < 60


def test_exception_of_the_last_progress_is_not_lost(dumbbell: fc.Scenario) -> None:
    def fail(done: int, runs: int, *_rest: object) -> None:
        if done == runs:
            raise LookupError("at the end")

    with pytest.raises(LookupError, match="at the end"):
        fc.run(dumbbell, seeds=2, progress=fail)


def test_progress_is_reported_in_the_calling_thread(dumbbell: fc.Scenario) -> None:
    threads, shares = set(), []

    def note(done: int, runs: int, share: float, left: object) -> None:
        threads.add(threading.get_ident())
        shares.append(share)

    fc.run(dumbbell.with_(duration="200 s"), seeds=8, progress=note)
    assert threads == {threading.get_ident()} and shares == sorted(shares)


def test_runs_without_a_metric_do_not_shift_pairs(dumbbell: fc.Scenario) -> None:
    result = fc.run(dumbbell, seeds=3, sweep={"flow.tcp.start": ["0 s", "1 s"]})
    result.values("tcp.rate", 0)
    assert result._values is not None
    del result._values[0, "tcp.rate"][1], result._values[1, "tcp.rate"][2]
    assert [value == value for value in result.values("tcp.rate", 0)] == [False, True, True]
    with pytest.raises(ValueError, match="at least two"):
        result.compare("tcp.rate", {"start": "0 s"}, {"start": "1 s"})


def test_interrupt_ends_the_runs(dumbbell: fc.Scenario) -> None:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fc.run(dumbbell.with_(duration="20000 s"), seeds=8)
    assert time.monotonic() - began < 60


def test_other_threads_continue_during_runs(dumbbell: fc.Scenario) -> None:
    count, is_over = 0, threading.Event()

    def work() -> None:
        nonlocal count
        while not is_over.wait(0.001):
            count += 1

    thread = threading.Thread(target=work)
    thread.start()
    fc.run(dumbbell.with_(duration="200 s"), seeds=4, threads=1)
    is_over.set()
    thread.join()
    assert count > 5


def test_runs_without_enough_memory_are_refused(dumbbell: fc.Scenario) -> None:
    with pytest.raises(MemoryError, match="raise the limit: memory="):
        fc.run(dumbbell, memory=1000)


def test_warmup_is_found(dumbbell: fc.Scenario) -> None:
    long = fc.run(dumbbell.with_(duration="200 s"), seeds=2)
    for run in long.warmup("multicast"):
        assert run["seconds"] is not None and run["seconds"] < 100 and 0 <= run["trend"] <= 1


def test_plots_have_a_line_for_each_flow(result: fc.Result) -> None:
    assert [line.get_label() for line in result.plot.rates(point=1).lines] == ["multicast", "tcp"]
    assert len(result.plot.queue(point=1).lines) == 1
    assert len(result.plot.fairness().patches) == 12
    axes = result.plot.metric("tcp.rate", "rate", by="scheme")
    assert [line.get_label() for line in axes.lines] == ["ormcc", "tfmcc"]


def test_seeds_are_numbers_lists_and_arrays(dumbbell: fc.Scenario) -> None:
    numpy = pytest.importorskip("numpy")
    for seeds in (numpy.arange(3, 5), numpy.array([3, 4], dtype="uint8"), (3, 4), iter([3, 4]), range(3, 5)):
        assert fc.Campaign(dumbbell, seeds, directory="unused").seeds == [3, 4]
    assert fc.Campaign(dumbbell, numpy.int64(2), directory="unused").seeds == [1, 2]
    for wrong, message in [([-1], "not -1"), ([1 << 64], "from 0 to 2"), ("10", "not '10'"), (1.5, "not 1.5"), ([], "no seeds"), (0, "no seeds"), (20260101, r"write seeds=.20260101.")]:
        with pytest.raises((TypeError, ValueError), match=message):
            fc.run(dumbbell, seeds=wrong)


def test_limit_of_runs_is_not_below_the_first_runs(dumbbell: fc.Scenario) -> None:
    for seeds, most in [(2, 1), (9, 8), (1, 4)]:
        with pytest.raises(ValueError, match="`most_runs` is"):
            fc.run(dumbbell, seeds=seeds, until={"tcp.rate": 0.1}, most_runs=most)


def test_results_are_pickled(result: fc.Result) -> None:
    same = pickle.loads(pickle.dumps(result))
    assert same.table_names == result.table_names and same.seeds == result.seeds and same.scenario == result.scenario
    for name in result.table_names:
        assert str(same.table(name).to_dict()) == str(result.table(name).to_dict()), "NaN is unequal to itself"
    with pytest.raises(ValueError, match="of another process"):
        same.claims


def test_runs_that_do_not_exist_are_errors(result: fc.Result, tmp_path) -> None:
    for wrong in (
        lambda: result.to_flent(tmp_path / "a.flent.gz", seed=99),
        lambda: result.plot.rates(seed=99),
        lambda: result.plot.queue(seed=99),
    ):
        with pytest.raises(KeyError, match="no run has the seed 99; the seeds are 1, 2, 3"):
            wrong()
    for wrong in (
        lambda: result.to_flent(tmp_path / "a.flent.gz", point=9),
        lambda: result.plot.fairness(point=99),
        lambda: result.values("tcp.rate", 6),
        lambda: result.values("tcp.rate", -1),
    ):
        with pytest.raises(IndexError, match="numbered from 0"):
            wrong()
    assert not list(tmp_path.iterdir())


def test_lines_of_a_metric_have_one_value_at_each_place(result: fc.Result) -> None:
    with pytest.raises(KeyError, match="several points have rate = '1 Mbit/s': state a value on each of .'scheme'."):
        result.plot.metric("tcp.rate", "rate")
    with pytest.raises(KeyError, match="no axis 'x'; its axes are"):
        result.plot.metric("tcp.rate", "x", by="scheme")
    assert len(result.plot.metric("tcp.rate", "rate", by="scheme").lines) == 2
    assert len(result.plot.rates("tcp").lines) == 1


def test_places_of_a_metric_are_in_order_and_need_no_interval(dumbbell: fc.Scenario) -> None:
    result = fc.run(dumbbell, seeds=1, sweep={"flow.multicast.packet": [1000, 500]})
    assert list(result.plot.metric("tcp.rate", "packet").lines[0].get_xdata()) == [500, 1000]
    with pytest.raises(KeyError, match="has no sweep"):
        fc.run(dumbbell, seeds=1).plot.metric("tcp.rate", "x")


def test_directory_of_kept_runs_is_named_in_errors(dumbbell: fc.Scenario, tmp_path) -> None:
    (tmp_path / "afile").write_text("")
    with pytest.raises(NotADirectoryError, match="afile"):
        fc.run(dumbbell, seeds=1, kept=tmp_path / "afile")
