"""Transfers over the loopback interface."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import numpy
import pytest

import faircast as fc

LOOPBACK = {"interface": "lo", "group": f"239.255.{os.getpid() % 250}.7:{20000 + os.getpid() % 20000}"}


def test_arrays_reach_all_receivers() -> None:
    sent = numpy.random.default_rng(1).standard_normal((300, 400))
    received = [numpy.empty_like(sent) for _ in range(3)]
    threads = [threading.Thread(target=fc.receive_into, args=({"weights": array},), kwargs=LOOPBACK) for array in received]
    for thread in threads:
        thread.start()
    report = fc.send({"weights": sent}, expect=3, join_timeout=30, **LOOPBACK)
    for thread in threads:
        thread.join()
    assert report["ok"] and report["verified"] == 3
    assert all(numpy.array_equal(array, sent) for array in received)


def test_directories_are_sent_sealed_and_signed(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "part1.safetensors").write_bytes(os.urandom(100_000))
    key, _ = fc.generate_key()
    sign, verify = fc.generate_key(signing=True)
    with fc.Receiver(tmp_path / "out", key=key, verify_key=verify, **LOOPBACK) as receiver:
        events = list(fc.Sender(tmp_path / "model", key=key, sign_key=sign, expect=1, join_timeout=30, **LOOPBACK))
    assert {"joined", "progress"} & {event["event"] for event in events}
    assert receiver.wait()["files"] == 1
    name = Path("model", "part1.safetensors")
    assert (tmp_path / "out" / name).read_bytes() == (tmp_path / name).read_bytes()


def test_sessions_can_be_awaited() -> None:
    async def both() -> tuple[dict, list[dict]]:
        receiver = fc.Receiver(**LOOPBACK)
        sender = fc.Sender(b"x" * 50_000, expect=1, join_timeout=30, **LOOPBACK)
        events = [event async for event in receiver]
        report = await sender
        assert (await receiver)["ok"] and receiver.files == {"data": b"x" * 50_000}
        return report, events

    report, events = asyncio.run(both())
    assert report["verified"] == 1 and events[0]["event"] == "opened"


def test_failures_are_exceptions_with_their_kind(tmp_path: Path) -> None:
    with pytest.raises(fc.TransferError) as caught:
        fc.send(b"x", join_timeout=0.5, **LOOPBACK)
    assert caught.value.kind == "transfer"
    sender = fc.Sender(b"x", join_timeout=0.5, **LOOPBACK)
    for _ in range(2):
        with pytest.raises(fc.TransferError):
            sender.wait()
    with pytest.raises(ValueError, match="order of C"):
        fc.send({"x": numpy.asfortranarray(numpy.ones((2, 3)))}, **LOOPBACK)
    with pytest.raises(fc.TransferError) as caught:
        fc.send(tmp_path / "none", **LOOPBACK)
    assert "none" in str(caught.value)
    with pytest.raises(ValueError, match="scheme: .*ormc"):
        fc.Sender(b"x", scheme="ormc", **LOOPBACK)
    with pytest.raises(ValueError, match="nothing"):
        fc.Sender({}, **LOOPBACK)
    with pytest.raises(ValueError, match="read-only"):
        fc.receive_into({"x": b"1234"}, **LOOPBACK)


def test_a_stopped_session_ends() -> None:
    receiver = fc.Receiver(**LOOPBACK)
    with pytest.raises(LookupError):
        with receiver:
            raise LookupError
    assert receiver.wait()["stopped"]


def test_wrong_sizes_change_no_buffer() -> None:
    array = numpy.zeros(10)
    failures = []

    def receive() -> None:
        try:
            fc.receive_into({"weights": array}, memory=1000, **LOOPBACK)
        except ValueError as error:
            failures.append(str(error))

    thread = threading.Thread(target=receive)
    thread.start()
    fc.send({"weights": numpy.ones(9)}, expect=1, join_timeout=30, **LOOPBACK)
    thread.join()
    assert failures == ["'weights' has 72 bytes, but its buffer has 80"] and not array.any()


def test_cancelled_wait_stops_the_session() -> None:
    async def cancelled() -> fc.Receiver:
        async with fc.Receiver(**LOOPBACK) as receiver:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(receiver, 0.2)
        return receiver

    assert asyncio.run(cancelled()).wait()["stopped"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rate": -1}, "max_rate is a positive rate in bit/s, not -1"),
        ({"min_rate": float("nan")}, "not NaN"),
        ({"join_timeout": -1}, "join_timeout is a duration in seconds, not -1"),
        ({"group": "1.2.3.4:5"}, "1.2.3.4 is not a multicast address"),
        ({"group": "239.1.1.1"}, "an address and a port, as in 239.255.77.1:5777"),
    ],
)
def test_wrong_options_are_errors(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fc.Sender(b"x", **{**LOOPBACK, **options})


def test_wrong_content_is_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="'w' is bytes or an array, not list"):
        fc.Sender({"w": [1, 2]}, **LOOPBACK)
    (tmp_path / "afile").write_text("")
    with pytest.raises(NotADirectoryError, match="afile"):
        fc.Receiver(tmp_path / "afile", **LOOPBACK)
    fc.register("p", type("P", (fc.Policy,), {}))
    with pytest.raises(fc.TransferError, match="policy=own:p runs only in simulations"):
        fc.send(b"x", scheme="ormcc,policy=own:p", **LOOPBACK)
