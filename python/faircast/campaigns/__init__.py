"""Campaigns: many runs on many machines, each run once.

Examples
--------
On this machine, with the processes of the standard library::

    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor() as executor:
        result = fc.campaign("lab.toml", seeds=100, executor=executor, directory="runs")

On a cluster: `dask_executor`, `ray_executor` and `slurm_executor` return executors for `campaign`.
"""

from .campaign import Campaign, campaign
from .executors import dask_executor, executor_of, ray_executor, slurm_executor

__all__ = ["Campaign", "campaign", "dask_executor", "executor_of", "ray_executor", "slurm_executor"]
