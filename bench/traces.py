"""Rates out of the counters' samples. A trace is a list of (monotonic seconds, bytes so far)."""

import bisect

STEP = 0.1


def column(samples, number):
    return [(sample[0], sample[number]) for sample in samples]


def at(trace, moment):
    """Bytes at a moment, between two samples by a straight line."""
    after = bisect.bisect_right(trace, (moment, float("inf")))
    if after == 0:
        return trace[0][1]
    if after == len(trace):
        return trace[-1][1]
    (t0, b0), (t1, b1) = trace[after - 1], trace[after]
    return b0 + (b1 - b0) * (moment - t0) / (t1 - t0) if t1 > t0 else b1


def mbps(trace, begin, end):
    """Mean rate between two moments, in Mbit/s."""
    return (at(trace, end) - at(trace, begin)) * 8 / max(end - begin, 1e-9) / 1e6


def first(trace, since, volume):
    """The first moment after `since` at which so many bytes more have passed; None if that was never so."""
    base = at(trace, since)
    return next((moment for moment, passed in trace if moment > since and passed - base >= volume), None)


def rates(trace, begin, end, step=STEP):
    """Mbit/s in each whole step between two moments."""
    count = int((end - begin) / step + 1e-6)
    return [mbps(trace, begin + i * step, begin + (i + 1) * step) for i in range(count)]


def windows(trace, begin, end, width):
    """(start, Mbit/s) of windows of this width between two moments, a start every 50 ms."""
    count = int((end - begin - width) / 0.05 + 1e-6) + 1
    return [(begin + i * 0.05, mbps(trace, begin + i * 0.05, begin + i * 0.05 + width)) for i in range(max(count, 0))]


def reached(trace, since, end, level, width=0.5):
    """Seconds from `since` to the beginning of the first window with at least so many Mbit/s; None if there is none."""
    return next((start - since for start, rate in windows(trace, since, end, width) if rate >= level), None)


def fell(trace, since, end, level, width=0.5):
    """Seconds from `since` to the beginning of the first window with at most so many Mbit/s; None if there is none."""
    return next((start - since for start, rate in windows(trace, since, end, width) if rate <= level), None)
