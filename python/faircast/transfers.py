"""Transfers to many receivers at once.

Send an array to the processes of a group, and receive it::

    fc.send({"weights": array}, expect=8)          # in one process
    fc.receive_into({"weights": array})            # in the eight others
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any, AsyncIterator, Iterator, Mapping, MutableMapping, Sequence, Union

from . import _native

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class _Options(TypedDict, total=False):
        group: str | None
        interface: str | None
        key: str | None
        join_timeout: float | None
        idle_timeout: float | None
        host: str | None

    class SenderOptions(_Options, total=False):
        """The keyword arguments of `Sender`."""

        port: int | None
        ttl: int | None
        scheme: str | None
        min_rate: float | None
        max_rate: float | None
        sign_key: str | None

    class ReceiverOptions(_Options, total=False):
        """The keyword arguments of `Receiver`."""

        parent: str | None
        source: str | None
        verify_key: str | None
        overwrite: bool

    class BufferOptions(ReceiverOptions, total=False):
        """The keyword arguments of `receive_into`."""

        memory: int

__all__ = ["Receiver", "Sender", "TransferError", "generate_key", "receive", "receive_into", "send"]

TransferError = _native.TransferError
Content = Union[str, "os.PathLike[str]", bytes, Sequence[Union[str, "os.PathLike[str]"]], Mapping[str, Any]]

#: Interval at which Ctrl-C is looked for during a wait, in seconds.
_LOOK_EVERY = 0.2

#: Maximum time in which a stopped session notifies its peers, in seconds.
_GOODBYE = 2.0


class _Session:
    """A running session: an iterator over its events, a context manager, and an awaitable, whose cancellation stops the session."""

    def __init__(self, native: _native.Session) -> None:
        self._native = native
        self._report: dict[str, Any] | None = None
        self._failure: BaseException | None = None
        self._lock = threading.Lock()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Stop the session if the block has raised an exception; in any case wait for its end."""
        if kind is None:
            self.wait()
            return
        self.stop()
        until = time.monotonic() + _GOODBYE
        while not self._native.is_finished() and time.monotonic() < until:
            time.sleep(0.01)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the events. Each is a dictionary with the name of the event in `event`."""
        while True:
            event = self._native.next_event(_LOOK_EVERY)
            if event is not None:
                yield json.loads(event)
            elif self._native.is_finished():
                yield from self._queued()
                return

    def _queued(self) -> Iterator[dict[str, Any]]:
        while (event := self._native.next_event(0.0)) is not None:
            yield json.loads(event)

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        """Iterate over the events without blocking the event loop."""
        while True:
            event = await asyncio.to_thread(self._native.next_event, _LOOK_EVERY)
            if event is not None:
                yield json.loads(event)
            elif self._native.is_finished():
                for queued in self._queued():
                    yield queued
                return

    def __await__(self) -> Any:
        return self._finished().__await__()

    async def _finished(self) -> dict[str, Any]:
        try:
            while not self._native.is_finished():
                await asyncio.sleep(0.02)
        except asyncio.CancelledError:  # as after the time of `asyncio.wait_for`
            self.stop()
            raise
        return self.wait()

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        """End as a `with` block does, without blocking the event loop."""
        if kind is None:
            await self._finished()
            return
        self.stop()
        until = time.monotonic() + _GOODBYE
        while not self._native.is_finished() and time.monotonic() < until:
            await asyncio.sleep(0.01)

    def wait(self) -> dict[str, Any]:
        """Wait for the end of the session, and return its report. It may be called again.

        Raises
        ------
        TransferError
            If the session failed.
        """
        for _ in self:
            pass
        with self._lock:
            if self._report is None and self._failure is None:
                try:
                    self._report = json.loads(self._native.join())
                except TransferError as failure:
                    self._failure = failure
            if self._failure is not None:
                raise self._failure
            assert self._report is not None
            return self._report

    def stop(self) -> None:
        """End the session early. Its peers are notified."""
        self._native.stop()

    @property
    def is_finished(self) -> bool:
        """Whether the session has ended."""
        return self._native.is_finished()


class Sender(_Session):
    """A source of files or data in memory. It begins at once and runs in a thread of its own.

    Parameters
    ----------
    content : path, list of paths, bytes or dict
        Files and directories; or names and their data: `{"weights.bin": bytes_or_array}`. Bytes without a name are sent as `data`.
    expect : int
        Number of receivers to wait for; 0 starts with the first one.
    group : str, optional
        Multicast group and port, as in `"239.255.77.1:5777"`.
    interface : str, optional
        Name or address of the interface.
    port, ttl : int, optional
        The source's own port; the number of routers that packets may cross.
    scheme : str, optional
        Congestion control, as in `"ormcc,beta=0.7"`.
    min_rate, max_rate : float, optional
        Limits of the rate in bit/s.
    key, sign_key : str, optional
        The lines of a group key and of a signing key (`generate_key`), not their paths.
    join_timeout, idle_timeout : float, optional
        Times to wait for receivers, and for an answer of a receiver, in seconds.
    host : str, optional
        Name of this host in reports.

    Examples
    --------
    ::

        with fc.Sender(["model/"], expect=8, max_rate=1e9) as sender:
            for event in sender:
                print(event)
        print(sender.wait()["goodput_bps"])
    """

    def __init__(self, content: Content, *, expect: int = 0, **options: Unpack[SenderOptions]) -> None:
        paths, files = _divided(content)
        super().__init__(_native.send(paths, files, expect=expect, **options))

    def __enter__(self) -> Sender:
        return self

    async def __aenter__(self) -> Sender:
        return self

    def start_now(self) -> None:
        """Start with the receivers that have joined."""
        self._native.start_now()


class Receiver(_Session):
    """A receiver of one session, into a directory or into memory. It begins at once and runs in a thread of its own.

    Parameters
    ----------
    directory : path, optional
        The directory for files; without it, `files` has them after the end.
    memory : int
        Maximum size of content that is received into memory, in bytes.
    group, interface, key, join_timeout, idle_timeout, host
        As in `Sender`.
    parent : str, optional
        Address of a source or relay to attach to, in networks without multicast.
    source : str, optional
        Address of the only accepted source.
    verify_key : str, optional
        Lines of verification keys. Only content signed by one of them is accepted.
    overwrite : bool
        Whether content of another source may be replaced.
    """

    def __init__(
        self, directory: str | os.PathLike[str] | None = None, *, memory: int = 1 << 30, **options: Unpack[ReceiverOptions]
    ) -> None:
        where = None if directory is None else os.fspath(directory)
        if where is not None and os.path.exists(where) and not os.path.isdir(where):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), where)
        super().__init__(_native.receive(where, memory, **options))
        self._files: dict[str, bytes] | None = None

    def __enter__(self) -> Receiver:
        return self

    async def __aenter__(self) -> Receiver:
        return self

    @property
    def files(self) -> dict[str, bytes]:
        """The files that were received into memory, by their names."""
        self.wait()
        if self._files is None:
            self._files = dict(self._native.take_files())
        return self._files


def send(content: Content, *, expect: int = 0, **options: Unpack[SenderOptions]) -> dict[str, Any]:
    """Send content until every receiver has verified it, and return the report. The parameters are those of `Sender`."""
    with Sender(content, expect=expect, **options) as sender:
        return sender.wait()


def receive(directory: str | os.PathLike[str], **options: Unpack[ReceiverOptions]) -> dict[str, Any]:
    """Receive one session into a directory, and return the report. The parameters are those of `Receiver`."""
    with Receiver(directory, **options) as receiver:
        return receiver.wait()


def receive_into(arrays: MutableMapping[str, Any], **options: Unpack[BufferOptions]) -> dict[str, Any]:
    """Receive one session, and copy each of its files into the writable buffer of the same name. Return the report.

    Parameters
    ----------
    arrays : dict
        Writable contiguous buffers, as arrays of NumPy, by the names that the source uses.
    **options
        The parameters of `Receiver`. The limit of memory follows from the buffers.

    Raises
    ------
    ValueError
        If the names or the sizes of the content and the buffers differ. Then no buffer is changed.
    TransferError
        If the content is larger than all buffers together.
    """
    views = {name: _flat(name, array) for name, array in arrays.items()}
    readonly = [name for name, view in views.items() if view.readonly]
    if readonly:
        raise ValueError(f"the buffer {readonly[0]!r} is read-only")
    options.setdefault("memory", max(1, sum(view.nbytes for view in views.values())))
    with Receiver(**options) as receiver:
        report, files = receiver.wait(), receiver.files
    if set(files) != set(views):
        raise ValueError(f"the content has {sorted(files)}, but there are buffers for {sorted(views)}")
    for name, view in views.items():
        if len(files[name]) != view.nbytes:
            raise ValueError(f"{name!r} has {len(files[name])} bytes, but its buffer has {view.nbytes}")
    for name, view in views.items():
        view[:] = files[name]
    return report


def generate_key(*, signing: bool = False) -> tuple[str, str | None]:
    """Create a group key, or a signing key with its verification key.

    Returns
    -------
    tuple of str and (str or None)
        The line of the key, and that of the verification key. Keep the first one secret.
    """
    return _native.generate_key(signing)


def _flat(name: str, data: Any) -> memoryview:
    """Return the bytes of a buffer."""
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"{name!r} is bytes or an array, not {type(data).__name__}") from None
    if not view.c_contiguous:
        raise ValueError(f"the elements of {name!r} are not in the order of C; numpy.ascontiguousarray makes such a copy")
    return view.cast("B") if view.nbytes else memoryview(bytearray())


def _divided(content: Content) -> tuple[list[str], list[tuple[str, bytes]]]:
    """Return the paths, or the names and data, of content."""
    if isinstance(content, (str, os.PathLike)):
        return [os.fspath(content)], []
    if isinstance(content, (bytes, bytearray, memoryview)):
        return [], [("data", bytes(content))]
    if isinstance(content, Mapping):
        if not content:
            raise ValueError("there is nothing to send")
        return [], [(name, _flat(name, data).tobytes()) for name, data in content.items()]
    paths = [os.fspath(path) for path in content]
    if not paths:
        raise ValueError("there is nothing to send")
    return paths, []
