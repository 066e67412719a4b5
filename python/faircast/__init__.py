"""Simulations of multicast and unicast congestion control, and transfers to many receivers.

A first figure in four lines::

    import faircast as fc

    result = fc.run(fc.Scenario.template("dumbbell"), seeds=range(10))
    result.plot.rates()

==================  ==================================================================
`Scenario`          a network with its flows, from a file, a text or a dictionary
`run`               runs a scenario with several seeds, on all processors
`Result`            tables of the runs as Arrow, pandas, Polars or Parquet, and plots
`campaign`          the runs of a sweep on Dask, Ray, SLURM or any executor
`register`          your own `Policy`, `Queue`, or `Source` and `SchemeReceiver`, in scenarios `own:NAME`
`Sender`            sends files or arrays to many receivers; also `send`
`Receiver`          receives one session; also `receive` and `receive_into`
`repro`             the figures and tables of the papers, with judged claims
`formats`           Flent's data files, and events in the form of qlog
`stats`             confidence intervals, warm-up, paired comparisons
==================  ==================================================================
"""

from . import formats, repro, stats
from ._native import VERSION as __version__
from ._native import Decision, Report, Representative, RunError, ScenarioError
from .campaigns import Campaign, campaign
from .own import Policy, Queue, SchemeReceiver, Source, register
from .result import Result
from .running import run
from .scenario import Scenario
from .table import Table
from .transfers import Receiver, Sender, TransferError, generate_key, receive, receive_into, send

__all__ = [
    "Campaign",
    "Decision",
    "Policy",
    "Queue",
    "Receiver",
    "Report",
    "Representative",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "SchemeReceiver",
    "Sender",
    "Source",
    "Table",
    "TransferError",
    "campaign",
    "formats",
    "generate_key",
    "receive",
    "receive_into",
    "register",
    "repro",
    "run",
    "send",
    "stats",
]
