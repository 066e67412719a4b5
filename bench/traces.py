"""Rates, computed from the samples of counters. A trace is a list of (monotonic seconds, cumulative bytes)."""

import bisect

STEP = 0.1


def column(samples, number):
    """Returns one column of the samples as a trace."""
    return [(sample[0], sample[number]) for sample in samples]


def at(trace, moment):
    """Returns the bytes at a moment, with linear interpolation between two samples."""
    after = bisect.bisect_right(trace, (moment, float("inf")))
    if after == 0:
        return trace[0][1]
    if after == len(trace):
        return trace[-1][1]
    (t0, b0), (t1, b1) = trace[after - 1], trace[after]
    return b0 + (b1 - b0) * (moment - t0) / (t1 - t0) if t1 > t0 else b1


def mbps(trace, begin, end):
    """Returns the mean rate between two moments, in Mbit/s."""
    return (at(trace, end) - at(trace, begin)) * 8 / max(end - begin, 1e-9) / 1e6


def first(trace, since, volume):
    """Returns the first time at which `volume` bytes have passed since the moment `since`, or None."""
    base = at(trace, since)
    return next((moment for moment, passed in trace if moment > since and passed - base >= volume), None)


def rates(trace, begin, end, step=STEP):
    """Returns the rate in Mbit/s of each complete step between two moments."""
    count = int((end - begin) / step + 1e-6)
    return [mbps(trace, begin + i * step, begin + (i + 1) * step) for i in range(count)]


def windows(trace, begin, end, width):
    """Returns (start, Mbit/s) of sliding windows between two moments; windows start every 50 ms."""
    count = int((end - begin - width) / 0.05 + 1e-6) + 1
    return [(begin + i * 0.05, mbps(trace, begin + i * 0.05, begin + i * 0.05 + width)) for i in range(max(count, 0))]


def reached(trace, since, end, level, width=0.5):
    """Returns the seconds from `since` to the start of the first window with at least `level` Mbit/s, or None."""
    return next((start - since for start, rate in windows(trace, since, end, width) if rate >= level), None)


def fell(trace, since, end, level, width=0.5):
    """Returns the seconds from `since` to the start of the first window with at most `level` Mbit/s, or None."""
    return next((start - since for start, rate in windows(trace, since, end, width) if rate <= level), None)
