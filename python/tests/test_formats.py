"""Files for other tools."""

from __future__ import annotations

import gzip
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import faircast as fc


@pytest.fixture(scope="module")
def result() -> fc.Result:
    lab = fc.Scenario.template("dumbbell").with_({"duration": "20 s", "warmup": "5 s", "probe.events": "on"})
    return fc.run(lab, seeds=2)


def test_flent_draws_a_simulation(result: fc.Result, tmp_path: Path) -> None:
    pytest.importorskip("flent")
    file, picture = tmp_path / "lab.flent.gz", tmp_path / "lab.png"
    result.to_flent(file)
    for plot in ("totals", "upload", "upload_box"):
        command = [sys.executable, "-m", "flent", "-i", file, "-p", plot, "-o", picture, "--figure-width=8", "--figure-height=4"]
        subprocess.run(command, check=True, timeout=120, capture_output=True, env={**os.environ, "MPLBACKEND": "agg"})
        width, height = struct.unpack(">II", picture.read_bytes()[16:24])
        assert width > 400 and height > 200
    summary = subprocess.run(
        [sys.executable, "-m", "flent", "-i", file, "-f", "summary"], check=True, timeout=120, capture_output=True, text=True
    ).stdout
    line = next(line for line in summary.splitlines() if "TCP upload sum" in line)
    mean = float(next(word for word in line.split(":")[1].split()))
    rates = result.table("rates").to_dict()
    rows = zip(rates["flow"], rates["receiver"], rates["seed"], rates["rate"])
    tcp = [rate for flow, receiver, seed, rate in rows if flow == "tcp" and receiver != "all" and seed == 1]
    assert mean == pytest.approx(sum(tcp) / len(tcp) / 1e6, rel=0.02)


def test_flent_files_have_all_flows_and_equal_bytes(result: fc.Result, tmp_path: Path) -> None:
    file = tmp_path / "lab.flent.gz"
    result.to_flent(file, seed=2)
    first = file.read_bytes()
    result.to_flent(file, seed=2)
    assert file.read_bytes() == first
    content = json.loads(gzip.decompress(first))
    receivers = [name for name in content["results"] if name.startswith("multicast::")]
    assert len(receivers) == 4 and content["metadata"]["TEST_PARAMETERS"] == {"upload_streams": "1"}
    lengths = {len(values) for values in content["results"].values()}
    assert lengths == {len(content["x_values"])}


def test_events_of_a_simulation_are_a_json_text_sequence(result: fc.Result, tmp_path: Path) -> None:
    result.to_events(tmp_path / "lab.sqlog")
    raw = (tmp_path / "lab.sqlog").read_bytes()
    assert raw.startswith(b'\x1e{"file_schema": "urn:ietf:params:qlog:file:sequential"') and raw.endswith(b"}\n")
    events = fc.formats.read_events(tmp_path / "lab.sqlog")
    names = {event["name"] for event in events}
    assert {"faircast:start", "faircast:cut", "faircast:loss"} <= names
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    cut = next(event for event in events if event["name"] == "faircast:cut")
    assert cut["data"]["flow"] in ("multicast", "tcp") and 0 < cut["time"] < 20_000


def test_records_that_are_cut_off_are_left_out(result: fc.Result, tmp_path: Path) -> None:
    result.to_events(tmp_path / "lab.sqlog")
    whole = fc.formats.read_events(tmp_path / "lab.sqlog")
    raw = (tmp_path / "lab.sqlog").read_bytes()
    (tmp_path / "cut.sqlog").write_bytes(raw[:-20])
    assert fc.formats.read_events(tmp_path / "cut.sqlog") == whole[:-1]
    with pytest.raises(ValueError, match="probe.events"):
        fc.run(result.scenario.with_({"probe.events": "off"}), seeds=1).to_events(tmp_path / "none.sqlog")


def test_events_of_a_session_have_the_same_form(tmp_path: Path) -> None:
    place = {"interface": "lo", "group": f"239.255.{os.getpid() % 250}.13:{20000 + os.getpid() % 20000}"}
    receiver = fc.Receiver(**place)
    sender = fc.Sender(b"x" * 50_000, expect=1, join_timeout=30, **place)
    with fc.formats.EventFile(tmp_path / "session.sqlog", "a session", "server") as file:
        for event in sender:
            file.write(event)
    assert sender.wait()["ok"] and receiver.wait()["ok"]
    events = fc.formats.read_events(tmp_path / "session.sqlog")
    assert "faircast:joined" in {event["name"] for event in events}
    assert all(0 <= event["time"] < 60_000 for event in events)


def test_packets_of_a_simulation_are_written_for_wireshark(tmp_path: Path) -> None:
    lab = fc.Scenario.template("dumbbell").with_({"duration": "10 s", "warmup": "2 s", "probe.taps": ["left->right"]})
    written = [Path(path) for path in fc.run(lab, seeds=1).write(tmp_path)]
    captures = [path for path in written if path.suffix == ".pcapng"]
    assert len(captures) == 1 and captures[0].read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
