import os
from typing import Any, Callable, final

__all__ = [
    "CODE",
    "Data",
    "Decision",
    "Operating",
    "Packet",
    "Report",
    "Representative",
    "Results",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sent",
    "Session",
    "Stop",
    "TABLES",
    "Table",
    "TransferError",
    "VERSION",
    "bootstrap",
    "entries",
    "generate_key",
    "mser5",
    "receive",
    "register",
    "reproduce",
    "run",
    "run_into",
    "run_until",
    "schema",
    "send",
    "stack_runs",
    "student",
    "summary",
    "tables_of_runs",
    "template",
    "templates",
    "trend",
    "write_parquet",
]

VERSION: str
CODE: str
TABLES: list[str]

_Path = str | os.PathLike[str]
_Progress = Callable[[int, int, float, float | None], None]

class ScenarioError(ValueError):
    faults: list[dict[str, Any]]

class RunError(RuntimeError): ...

@final
class Table:
    @property
    def name(self) -> str: ...
    @property
    def column_names(self) -> list[str]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    @staticmethod
    def restored(name: str, columns: list[tuple[str, str, list[Any]]]) -> Table: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

@final
class Scenario:
    @staticmethod
    def parse(text: str, file: str, memory: int | None = None) -> Scenario: ...
    @staticmethod
    def load(text: str, file: str, memory: int | None, read: Callable[[str], str]) -> Scenario: ...
    def changed(self, settings: list[tuple[str, str]]) -> Scenario: ...
    @property
    def memory(self) -> int: ...
    @property
    def title(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def points(self) -> list[dict[str, float | str]]: ...
    @property
    def groups(self) -> list[str]: ...
    @property
    def claims(self) -> int: ...
    @property
    def warnings(self) -> list[dict[str, Any]]: ...
    def duration(self, point: int) -> float: ...
    def fingerprint(self, point: int) -> str: ...
    def metric_names(self, point: int) -> list[str]: ...

@final
class Stop:
    def adopt(self) -> None: ...
    def set(self) -> None: ...

@final
class Results:
    @property
    def table_names(self) -> list[str]: ...
    @property
    def digest(self) -> str: ...
    def table(self, name: str) -> Table: ...
    def claims(self) -> Table: ...
    def write(self, directory: _Path) -> list[os.PathLike[str]]: ...

def schema() -> str: ...
def templates() -> list[str]: ...
def template(name: str) -> str: ...
def run(
    scenario: Scenario,
    seeds: list[int],
    point: int | None = None,
    threads: int = 0,
    memory: int | None = None,
    kept: _Path | None = None,
    progress: _Progress | None = None,
) -> Results: ...
def run_until(
    scenario: Scenario,
    seeds: list[int],
    until: list[tuple[str, float]],
    most_runs: int,
    threads: int = 0,
    memory: int | None = None,
    kept: _Path | None = None,
    progress: _Progress | None = None,
) -> tuple[Results, list[int], bool]: ...
def run_into(scenario: Scenario, point: int, seed: int, name: str, path: _Path, memory: int | None = None) -> None: ...
def tables_of_runs(paths: list[str]) -> list[str]: ...
def stack_runs(scenario: Scenario, name: str, runs: list[tuple[int, int, str]]) -> Table: ...
def write_parquet(tables: list[tuple[str, Table]], directory: _Path) -> list[os.PathLike[str]]: ...
def entries() -> list[tuple[str, str, str]]: ...
def reproduce(
    id: str,
    seeds: list[int] | None = None,
    quick: bool = False,
    threads: int = 0,
    alternatives: int = 0,
    kept: _Path | None = None,
    progress: _Progress | None = None,
) -> tuple[Table, list[tuple[str, str]]]: ...
def student(values: list[float], confidence: float) -> tuple[float, float, float]: ...
def bootstrap(values: list[float], confidence: float, resamples: int, seed: int) -> tuple[float, float, float]: ...
def mser5(values: list[float]) -> int | None: ...
def trend(values: list[float]) -> float | None: ...
def summary(metrics: Table, confidence: float) -> Table: ...

class TransferError(RuntimeError):
    kind: str

@final
class Session:
    def next_event(self, within: float) -> str | None: ...
    def is_finished(self) -> bool: ...
    def stop(self) -> None: ...
    def start_now(self) -> None: ...
    def join(self) -> str: ...
    def take_files(self) -> list[tuple[str, bytes]]: ...

def send(
    paths: list[str],
    files: list[tuple[str, bytes]],
    *,
    group: str | None = None,
    interface: str | None = None,
    port: int | None = None,
    ttl: int | None = None,
    scheme: str | None = None,
    min_rate: float | None = None,
    max_rate: float | None = None,
    key: str | None = None,
    sign_key: str | None = None,
    expect: int = 0,
    join_timeout: float | None = None,
    idle_timeout: float | None = None,
    host: str | None = None,
) -> Session: ...
def receive(
    directory: str | None,
    memory: int,
    *,
    group: str | None = None,
    interface: str | None = None,
    parent: str | None = None,
    source: str | None = None,
    key: str | None = None,
    verify_key: str | None = None,
    join_timeout: float | None = None,
    idle_timeout: float | None = None,
    host: str | None = None,
    overwrite: bool = False,
) -> Session: ...
def generate_key(signing: bool) -> tuple[str, str | None]: ...

@final
class Decision:
    ACCEPT: Decision
    MARK: Decision
    DROP: Decision
    OVERFLOW: Decision

@final
class Operating:
    @property
    def rate(self) -> float: ...
    @property
    def rtt(self) -> float: ...
    @property
    def full_rtt(self) -> float: ...
    @property
    def deviation(self) -> float: ...
    @property
    def packet_size(self) -> int: ...

@final
class Packet:
    @property
    def now(self) -> float: ...
    @property
    def size(self) -> int: ...
    @property
    def flow(self) -> int: ...
    @property
    def ecn(self) -> str: ...
    @property
    def waiting(self) -> int: ...
    @property
    def waiting_bytes(self) -> int: ...
    @property
    def idle_since(self) -> float | None: ...

@final
class Sent:
    @property
    def now(self) -> float: ...
    @property
    def size(self) -> int: ...
    @property
    def flow(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def waiting_bytes(self) -> int: ...

@final
class Data:
    @property
    def seq(self) -> int: ...
    @property
    def sent_at(self) -> float: ...
    @property
    def rate(self) -> float: ...
    @property
    def size(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def marked(self) -> bool: ...
    @property
    def late(self) -> bool: ...
    @property
    def mark(self) -> Representative | None: ...

@final
class Report:
    def __new__(
        cls,
        kind: str,
        *,
        level: float = 0.0,
        mean: float = 0.0,
        loss: float = 0.0,
        count: int = 1,
        receiver: int = 0,
        rtt: float | None = None,
    ) -> Report: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]: ...
    @property
    def kind(self) -> str: ...
    @property
    def level(self) -> float: ...
    @property
    def mean(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def count(self) -> int: ...
    @property
    def receiver(self) -> int: ...
    @property
    def rtt(self) -> float | None: ...

@final
class Representative:
    def __new__(cls, receiver: int | None, mean: float = 0.0, deviation: float = 0.0, rtt_max: float = 0.0) -> Representative: ...
    @property
    def receiver(self) -> int | None: ...
    @property
    def mean(self) -> float: ...
    @property
    def deviation(self) -> float: ...
    @property
    def rtt_max(self) -> float: ...

def register(
    kind: str,
    name: str,
    classes: list[type],
    arguments: Callable[[list[type], str], list[dict[str, Any]]],
    version: str,
) -> None: ...
