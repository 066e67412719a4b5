"""Executors for campaigns, from engines that exist: Dask, Ray and SLURM."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Callable, Iterable, Iterator

from .. import _native


def processors() -> int:
    """Return the number of processors that this process may use, as an allocation of SLURM permits."""
    return len(os.sched_getaffinity(0))


class Threads(ThreadPoolExecutor):
    """Threads of this process; a run needs no interpreter."""

    def __init__(self) -> None:
        self._stop = _native.Stop()
        super().__init__(processors(), initializer=self._stop.adopt)

    def stop(self) -> None:
        """End all runs."""
        self._stop.set()
        self.shutdown(cancel_futures=True)


class Processes(ProcessPoolExecutor):
    """Processes of this machine."""

    def __init__(self, number: int | None = None) -> None:
        import multiprocessing

        # A forked process would inherit the threads and locks of the notebook.
        super().__init__(number or processors(), multiprocessing.get_context("spawn"))

    def stop(self) -> None:
        """End all processes."""
        processes = list((self._processes or {}).values())
        self.shutdown(wait=False, cancel_futures=True)
        # The executor would set an exception for calls that were cancelled, which fails with a traceback.
        for number, call in list((self._pending_work_items or {}).items()):
            if call.future.cancelled():
                self._pending_work_items.pop(number, None)
        for process in processes:
            process.terminate()


def executor_of(name: str) -> Executor:
    """Return the executor with this name, as on the command line.

    Parameters
    ----------
    name : str
        `"local"` or `"local:PROCESSES"`; `"dask:ADDRESS"`, as in `"dask:tcp://scheduler:8786"`; `"ray"` or `"ray:ADDRESS"`;
        `"slurm"` or `"slurm:PARTITION"`.

    Raises
    ------
    ValueError
        If there is no such executor.
    """
    kind, _, where = name.partition(":")
    if kind == "local":
        if where and not (where.isdecimal() and int(where) > 0):
            raise ValueError(f"local:PROCESSES takes a positive number of processes, not {where!r}")
        return Processes(int(where) if where else None)
    if kind == "dask":
        if where and "/" not in where and ":" not in where:
            raise ValueError(f"the address of a Dask scheduler has a port, as in dask:tcp://scheduler:8786, unlike {name!r}")
        return dask_executor(where or None)
    if kind == "ray":
        return ray_executor(where or None)
    if kind == "slurm":
        return slurm_executor(slurm_partition=where) if where else slurm_executor()
    raise ValueError(f"no executor {name!r}; there are local[:PROCESSES], dask[:ADDRESS], ray[:ADDRESS] and slurm[:PARTITION]")


@contextmanager
def opened(executor: Executor | str | None) -> Iterator[Executor]:
    """Return an executor, or the one with this name [default: `Threads`].

    An executor that was made from a name is shut down at the end. After an exception, its calls are cancelled.
    """
    if isinstance(executor, Executor):
        yield executor
        return
    if executor is None:
        made: Executor = Threads()
    elif isinstance(executor, str):
        made = executor_of(executor)
    elif hasattr(executor, "get_executor"):  # a client of Dask
        made = dask_executor(executor)
    else:
        raise TypeError(f"an executor is a concurrent.futures.Executor, a client of Dask, a name, or None, not {executor!r}")
    try:
        yield made
    except BaseException:
        if isinstance(made, (Threads, Processes)):
            made.stop()
        else:
            made.shutdown(wait=False, cancel_futures=True)
        raise
    made.shutdown()


def results(executor: Executor, take: Callable[[int], Iterable[tuple[Any, ...]]], limit: int) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Make calls on an executor, and return each call with its result, in the order of completion.

    After an exception, or at the end of the iteration, the calls that wait are cancelled.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        The executor.
    take : callable
        Returns the next calls, at most as many as its argument: a function and its arguments each. No calls are left if it returns
        none while none run.
    limit : int
        Maximum number of calls that are submitted and not completed.
    """
    running: dict[Future[Any], tuple[Any, ...]] = {}
    try:
        while True:
            for call in take(limit - len(running)):
                running[executor.submit(*call)] = call
            if not running:
                return
            for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    finally:
        for future in running:
            future.cancel()


def workers_of(executor: Executor) -> int:
    """Return the number of calls that an executor makes at the same time; an assumption if it does not state it."""
    workers = getattr(executor, "workers", None) or getattr(executor, "_max_workers", None)
    return workers if isinstance(workers, int) and workers > 0 else 16


def check_code(code: str) -> None:
    """Raise an exception if this worker has another version of the simulator, whose runs may differ.

    Raises
    ------
    RuntimeError
        If the versions differ.
    """
    if code != _native.CODE:
        raise RuntimeError(
            f"the worker has the simulator {_native.CODE[:12]}, but the campaign has {code[:12]}: install the same package on all hosts"
        )


def _needs(package: str, extra: str) -> ImportError:
    return ImportError(f"this executor needs {package}; install it with: pip install 'faircast[{extra}]'")


class DaskExecutor(Executor):
    """An executor on a Dask cluster. Dask repeats the runs of a killed worker on another one.

    Parameters
    ----------
    client : distributed.Client
        The client.
    closes : bool
        Whether `shutdown` closes the client, and a cluster that the client has started.
    **options
        Options of `Client.get_executor`.
    """

    def __init__(self, client: Any, closes: bool, **options: Any) -> None:
        self._client, self._closes = client, closes
        # Runs are kept in a data set, so Dask's own cache by arguments must not answer for a run whose directory was removed.
        self._inner: Executor = client.get_executor(**{"pure": False, **options})

    @property
    def workers(self) -> int:
        """The number of threads of all workers, now."""
        return sum(self._client.nthreads().values())

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a call, and return its future."""
        return self._inner.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the executor. Without `wait`, its calls are cancelled."""
        self._inner.shutdown(wait=wait and not cancel_futures)
        if self._closes:
            self._client.close()


def dask_executor(client: Any = None, **options: Any) -> Executor:
    """Return an executor on a Dask cluster. Dask repeats the runs of a killed worker on another one.

    Parameters
    ----------
    client : distributed.Client or str, optional
        The client, or the address of the scheduler [default: a cluster on this machine].
    **options
        Options of `Client.get_executor`, as in `resources` or `workers`.
    """
    try:
        from distributed import Client
    except ImportError:
        raise _needs("distributed", "dask") from None
    connect: Callable[..., Any] = Client
    if isinstance(client, Client):
        return DaskExecutor(client, False, **options)
    return DaskExecutor(connect(client), True, **options)


class RayExecutor(Executor):
    """An executor on a Ray cluster. Ray repeats the runs of a killed worker on another one.

    Parameters
    ----------
    **options
        Options of Ray's tasks, as in `num_cpus`.
    """

    def __init__(self, **options: Any) -> None:
        try:
            import ray
        except ImportError:
            raise _needs("ray", "ray") from None
        self._options = {"max_retries": 5, **options}
        self._remote: dict[Callable[..., Any], Any] = {}
        self._ray: Any = ray

    @property
    def workers(self) -> int:
        """The number of processors of the cluster, now."""
        return int(self._ray.cluster_resources().get("CPU", 1))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a call, and return its future."""
        if fn not in self._remote:
            self._remote[fn] = self._ray.remote(fn).options(**self._options)
        call = self._remote[fn].remote(*args, **kwargs)
        future: Future[Any] = call.future()
        future.add_done_callback(lambda done: self._ray.cancel(call) if done.cancelled() else None)
        return future


def ray_executor(address: str | None = None, **options: Any) -> Executor:
    """Return an executor on a Ray cluster.

    Parameters
    ----------
    address : str, optional
        The address of the cluster [default: a cluster on this machine].
    **options
        Options of Ray's tasks, as in `num_cpus`.
    """
    executor = RayExecutor(**options)
    if not executor._ray.is_initialized():
        executor._ray.init(address=address, log_to_driver=False)
    return executor


class SubmititExecutor(Executor):
    """An executor on SLURM, through `submitit`.

    Parameters
    ----------
    executor : submitit.Executor
        An executor of submitit, with its parameters set.
    look_every : float
        Interval at which the state of the jobs is read, in seconds.
    """

    #: Duration of a task that a campaign aims at, in seconds: the start of a job takes seconds.
    task_seconds = 60.0

    def __init__(self, executor: Any, look_every: float = 1.0) -> None:
        self._executor = executor
        self._look_every = look_every
        self._jobs: dict[Any, Future[Any]] = {}
        self._lock = threading.Lock()
        self._looker: threading.Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a job, and return its future."""
        future: Future[Any] = Future()
        with self._lock:
            self._jobs[self._executor.submit(fn, *args, **kwargs)] = future
            if self._looker is None:
                self._looker = threading.Thread(target=self._look, daemon=True)
                self._looker.start()
        return future

    def _look(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._looker = None
                    return
                jobs = list(self._jobs.items())
            for job, future in jobs:
                if not (future.cancelled() or job.done()):
                    continue
                with self._lock:
                    del self._jobs[job]
                if not future.set_running_or_notify_cancel():
                    job.cancel(check=False)
                    continue
                try:
                    future.set_result(job.result())
                except Exception as error:  # a job passes on any exception
                    future.set_exception(error)
            time.sleep(self._look_every)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the executor. Jobs that are queued or run are cancelled with `cancel_futures`."""
        with self._lock:
            jobs = list(self._jobs.items())
        for job, future in jobs:
            if cancel_futures:
                job.cancel(check=False)
            elif wait:
                future.exception()


def slurm_executor(folder: str = "faircast-jobs", *, cluster: str | None = None, **parameters: Any) -> Executor:
    """Return an executor on SLURM.

    Parameters
    ----------
    folder : str
        Directory for the logs of jobs; all nodes must see it.
    cluster : str, optional
        `"local"` for processes of this machine, for tests [default: SLURM].
    **parameters
        Parameters of submitit, as in `slurm_partition` or `timeout_min`.
    """
    try:
        import submitit
    except ImportError:
        raise _needs("submitit", "slurm") from None
    # Without a name, submitit would make the runs on this machine if it finds no SLURM.
    executor = submitit.AutoExecutor(folder, cluster=cluster or "slurm")
    executor.update_parameters(**{"name": "faircast", "timeout_min": 60, **parameters})
    return SubmititExecutor(executor, look_every=0.05 if cluster == "local" else 1.0)
