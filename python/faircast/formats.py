"""Files for other tools: Flent's data files, and events as JSON text sequences in the form of qlog."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Mapping

from ._native import VERSION

if TYPE_CHECKING:
    from .result import Result

#: Start of a record in a JSON text sequence (RFC 7464, 2.2).
_RECORD = b"\x1e"


def write_flent(result: Result, path: str | os.PathLike[str], point: int = 0, seed: int | None = None) -> None:
    """Write the rates and round-trip times of a run as a Flent data file of the test `tcp_nup`; see `Result.to_flent`."""
    point, seed = result._point(point), result._seed(seed)
    rates, samples = (_of_run(result, table, point, seed) for table in ("rates", "samples"))
    of_tcp = {key: _series(rows, "rate", 1e-6) for key, rows in rates.items() if key in samples and _has_window(samples[key])}
    others = {key: _series(rows, "rate", 1e-6) for key, rows in rates.items() if key not in of_tcp and key[2] != "all"}
    series = {f"TCP upload::{number}": values for number, values in enumerate(of_tcp.values(), 1)}
    times = [
        (at, 1e3 * rtt) for key in of_tcp for row in samples[key] for at, rtt in [(row["time"], row["rtt"])] if rtt > 0
    ]
    by_time: dict[float, list[float]] = defaultdict(list)
    for at, rtt in times:
        by_time[at].append(rtt)
    series["Ping (ms) ICMP"] = [(at, sum(all_) / len(all_)) for at, all_ in sorted(by_time.items())]
    for number, key in enumerate(of_tcp, 1):
        series[f"TCP upload::{number}::tcp_rtt"] = _series(samples[key], "rtt", 1e3)
        series[f"TCP upload::{number}::tcp_cwnd"] = _series(samples[key], "window", 1.0)
    for (flow, copy, receiver), values in others.items():
        series[f"{flow}::{copy}::{receiver}"] = values
    x_values = sorted({at for values in series.values() for at, _ in values})
    total: dict[float, float] = defaultdict(float)
    for number in range(1, len(of_tcp) + 1):
        for at, value in series[f"TCP upload::{number}"]:
            total[at] += value
    results: dict[str, list[float | None]] = {name: [dict(values).get(at) for at in x_values] for name, values in series.items()}
    if of_tcp:
        results["TCP upload sum"] = [total.get(at) for at in x_values]
        results["TCP upload avg"] = [total[at] / len(of_tcp) if at in total else None for at in x_values]
    labels = {f"TCP upload::{number}": f"{flow} {copy} {receiver}" for number, (flow, copy, receiver) in enumerate(of_tcp, 1)}
    step = x_values[1] - x_values[0] if len(x_values) > 1 else 1.0
    content = {
        "version": 4,
        "metadata": {
            "NAME": "tcp_nup",
            "TITLE": result.scenario.title,
            "NOTE": f"simulated by faircast {VERSION}, point {point}, seed {seed}",
            "HOST": "simulated",
            "HOSTS": ["simulated"],
            "LOCAL_HOST": "simulator",
            "IP_VERSION": 4,
            "TIME": "1970-01-01T00:00:00.000000Z",
            "T0": "1970-01-01T00:00:00.000000Z",
            "LENGTH": round(max(x_values, default=0.0)),
            "TOTAL_LENGTH": round(max(x_values, default=0.0)),
            "STEP_SIZE": step,
            "DATA_FILENAME": Path(path).name,
            "TEST_PARAMETERS": {"upload_streams": str(len(of_tcp))},
            "SERIES_META": {name: {"UNITS": "ms" if name.startswith("Ping") else "Mbits/s", "FLOW": labels.get(name, name)} for name in results},
        },
        "x_values": x_values,
        "results": results,
        "raw_values": {name: [{"t": at, "val": value} for at, value in values] for name, values in series.items()},
    }
    # A fixed time in the header of gzip: equal results give equal bytes.
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.write(json.dumps(content).encode())


class EventFile:
    """Writes events as a JSON text sequence (RFC 7464) in the form of qlog (draft-ietf-quic-qlog-main-schema), for qvis and scripts.

    The events of a session or of a simulation have the same form: `{"time": MS, "name": "faircast:EVENT", "data": {..}}`.

    Parameters
    ----------
    path : path
        The file; `.sqlog` is the usual extension.
    title : str
        The title.
    vantage_point : str
        `"server"` for a source, `"client"` for a receiver, `"network"` for a simulation.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with EventFile(Path(directory, "lab.sqlog"), "lab", "server") as file:
    ...         file.write({"event": "joined", "host": "pc1"}, seconds=0.25)
    ...     [record["name"] for record in read_events(file.path)]
    ['faircast:joined']
    """

    def __init__(self, path: str | os.PathLike[str], title: str, vantage_point: str = "network") -> None:
        self.path = Path(path)
        self._began = time.monotonic()
        self._file = open(self.path, "wb")
        self._put({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": title,
            "trace": {
                "common_fields": {"time_format": "relative_to_epoch", "reference_time": {"clock_type": "monotonic", "epoch": "unknown"}},
                "vantage_point": {"type": vantage_point},
                "event_schemas": ["urn:faircast:events"],
            },
        })

    def write(self, event: Mapping[str, Any], seconds: float | None = None) -> None:
        """Append an event: a dictionary with the name in `event`. `seconds` is its time [default: the time since the start]."""
        if seconds is None:
            seconds = time.monotonic() - self._began
        data = {key: value for key, value in event.items() if key != "event" and value is not None}
        self._put({"time": round(1e3 * seconds, 6), "name": f"faircast:{event['event']}", "data": data})

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> EventFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _put(self, record: Mapping[str, Any]) -> None:
        self._file.write(_RECORD + json.dumps(record).encode() + b"\n")


def read_events(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the events of a file. A record that is cut off, because its writer was killed, is left out (RFC 7464, 2.3)."""
    records = []
    for text in Path(path).read_bytes().split(_RECORD):
        try:
            records.append(json.loads(text))
        except ValueError:
            continue
    return [record for record in records if "name" in record]


def write_events(result: Result, path: str | os.PathLike[str], point: int = 0, seed: int | None = None) -> None:
    """Write the events of a run; see `Result.to_events`."""
    point, seed = result._point(point), result._seed(seed)
    if "events" not in result.table_names:
        raise ValueError('the runs have recorded no events; set "probe.events" to "on"')
    with EventFile(path, result.scenario.title) as file:
        for row in _rows(result, "events", point, seed):
            data = {key: value for key, value in row.items() if value not in ("", None) and value == value}
            file.write(data, seconds=data.pop("time"))


_Key = tuple[str, int, str]


def _rows(result: Result, table: str, point: int, seed: int) -> list[dict[str, Any]]:
    columns = result.table(table).to_dict()
    names = [name for name in columns if name not in ("point", "seed")]
    places = [at for at, (p, s) in enumerate(zip(columns["point"], columns["seed"])) if p == point and s == seed]
    return [{name: columns[name][at] for name in names} for at in places]


def _of_run(result: Result, table: str, point: int, seed: int) -> dict[_Key, list[dict[str, Any]]]:
    """Return the rows of each flow; the samples of a flow belong to its only receiver."""
    groups: dict[_Key, list[dict[str, Any]]] = defaultdict(list)
    rows = _rows(result, table, point, seed) if table in result.table_names else []
    receivers = {} if table == "rates" else {
        (row["flow"], row["copy"]): row["receiver"] for row in _rows(result, "rates", point, seed) if row["receiver"] != "all"
    }
    for row in rows:
        receiver = row["receiver"] if table == "rates" else receivers.get((row["flow"], row["copy"]), "")
        groups[(row["flow"], row["copy"], receiver)].append(row)
    return groups


def _has_window(rows: list[dict[str, Any]]) -> bool:
    return any(row["window"] == row["window"] and row["window"] > 0 for row in rows)


def _series(rows: list[dict[str, Any]], column: str, factor: float) -> list[tuple[float, float]]:
    return [(row["time"], factor * row[column]) for row in rows if row[column] == row[column]]

