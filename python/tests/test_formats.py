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
from conftest import PROGRAM


@pytest.fixture(scope="module")
def result() -> fc.Result:
    lab = fc.Scenario.template("dumbbell").with_({"duration": "20 s", "warmup": "5 s", "probe.events": "on"})
    return fc.run(lab, seeds=2)


#: Two TCP flows share 4 Mbit/s.
TWO_FLOWS = """title = "two flows"
duration = "10 s"
warmup = "1 s"

[topology]
kind = "text"
network = '''
host a
host b
host c
router r
link a r delay=10ms
link c r delay=10ms
link r b rate=4M delay=10ms queue=droptail,30
'''

[probe]
links = "r->b"

[[flow]]
name = "one"
kind = "tcp-cubic"
from = "a"
to = "b"

[[flow]]
name = "two"
kind = "tcp-cubic"
from = "c"
to = "b"
"""


def flent(*words: object) -> str:
    """Runs Flent, and returns its output."""
    command = [sys.executable, "-m", "flent", *map(str, words)]
    environment = {**os.environ, "MPLBACKEND": "agg"}
    return subprocess.run(command, check=True, timeout=120, capture_output=True, text=True, env=environment).stdout


def plot(picture: Path, name: str, *files: Path) -> None:
    """Draws one of Flent's plots of these files."""
    inputs = [word for file in files for word in ("-i", file)]
    flent(*inputs, "-p", name, "-o", picture, "--figure-width=8", "--figure-height=4")
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    assert width > 400 and height > 200


def mean(file: Path, series: str) -> float:
    """Returns the mean of a series by Flent's summary."""
    line = next(line for line in flent("-i", file, "-f", "summary").splitlines() if series in line)
    return float(line.split(":")[-1].split()[0])


def test_flent_draws_a_simulation(result: fc.Result, tmp_path: Path) -> None:
    pytest.importorskip("flent")
    file = tmp_path / "lab.flent.gz"
    result.to_flent(file)
    for name in ("totals", "upload", "upload_box"):
        plot(tmp_path / "lab.png", name, file)
    rates = result.table("rates").to_dict()
    rows = zip(rates["flow"], rates["receiver"], rates["seed"], rates["rate"])
    tcp = [rate for flow, receiver, seed, rate in rows if flow == "tcp" and receiver != "all" and seed == 1]
    assert mean(file, "TCP upload sum") == pytest.approx(sum(tcp) / len(tcp) / 1e6, rel=0.02)


@pytest.mark.skipif(PROGRAM is None, reason="FAIRCAST_PROGRAM does not name the program")
@pytest.mark.skipif(os.geteuid() != 0, reason="an emulation needs root")
def test_flent_draws_a_simulation_and_an_emulation_of_the_same_network(tmp_path: Path) -> None:
    pytest.importorskip("flent")
    lab, files = tmp_path / "lab.toml", [tmp_path / f"{world}.flent.gz" for world in ("sim", "emu")]
    lab.write_text(TWO_FLOWS)
    for file in files:
        world = file.name.split(".")[0]
        done = subprocess.run([str(PROGRAM), world, "run", lab, "--flent", file], timeout=120, capture_output=True, text=True)
        # An emulation on a busy machine can be invalid, but it has written its file.
        assert done.returncode == 0 or world == "emu" and "fell behind" in done.stderr, done.stderr
        assert mean(file, "TCP upload::1") > 0.5 and mean(file, "TCP upload::2") > 0.5
        assert 3 < mean(file, "TCP upload sum") < 4
        assert 40 < mean(file, "Ping (ms) ICMP") < 140
    for name in ("totals", "upload", "ping"):
        plot(tmp_path / "both.png", name, *files)


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
