"""Statistics that a reviewer accepts: intervals, paired differences, warm-up and trends.

Runs with different seeds are independent, so the mean over runs has an interval by Student's t or by the bootstrap. Values within
one run are not independent: do not compute an interval from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from . import _native

__all__ = ["Interval", "interval", "paired", "trend", "warmup"]


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval.

    Attributes
    ----------
    mean : float
        The mean.
    low, high : float
        The ends of the interval.
    confidence : float
        Probability with which such an interval contains the true mean.
    runs : int
        Number of values.
    """

    mean: float
    low: float
    high: float
    confidence: float
    runs: int

    @property
    def half_width(self) -> float:
        """Half of the width of the interval."""
        return (self.high - self.low) / 2

    def verdict(self, low: float | None = None, high: float | None = None) -> str:
        """Judge a claim that the true mean is from `low` to `high`.

        Returns
        -------
        str
            `"holds"` if the whole interval is in this range, `"fails"` if it is outside, and `"undecided"` if it crosses a limit.

        Examples
        --------
        >>> Interval(1.0, 0.9, 1.1, 0.95, 10).verdict(low=0.95)
        'undecided'
        """
        least = float("-inf") if low is None else low
        most = float("inf") if high is None else high
        if least > most:
            raise ValueError(f"the lowest value {least} exceeds the highest value {most}")
        if least <= self.low and self.high <= most:
            return "holds"
        return "fails" if self.high < least or self.low > most else "undecided"

    def __str__(self) -> str:
        return f"{self.mean:.6g} ({self.low:.6g} to {self.high:.6g})"


def interval(values: Sequence[float], *, confidence: float = 0.95, method: str = "t", resamples: int = 2000, seed: int = 1) -> Interval:
    """Return the mean of independent values with its confidence interval.

    Parameters
    ----------
    values : sequence of float
        The values, one for each run; at least two.
    confidence : float
        Level of confidence, between 0 and 1.
    method : {"t", "bootstrap"}
        Student's t, or the bootstrap with bias correction and acceleration (BCa), which does not assume a normal distribution but
        needs about 20 values.
    resamples : int
        Number of resamples of the bootstrap.
    seed : int
        Seed of the bootstrap; the same seed gives the same interval.

    Examples
    --------
    >>> print(interval([1.0, 2.0, 3.0]))
    2 (-0.484138 to 4.48414)
    """
    numbers = [float(value) for value in values]
    if method == "t":
        mean, low, high = _native.student(numbers, confidence)
    elif method == "bootstrap":
        mean, low, high = _native.bootstrap(numbers, confidence, resamples, seed)
    else:
        raise ValueError(f'the method is "t" or "bootstrap", not {method!r}')
    return Interval(mean, low, high, confidence, len(numbers))


def paired(first: Sequence[float], second: Sequence[float], *, confidence: float = 0.95, method: str = "t") -> Interval:
    """Return the mean of the differences second minus first of values with common random numbers.

    Examples
    --------
    >>> paired([1.0, 5.0, 9.0], [2.0, 6.1, 9.9]).verdict(low=0)
    'holds'
    """
    if len(first) != len(second):
        raise ValueError(f"paired values have equal numbers, not {len(first)} and {len(second)}")
    return interval([b - a for a, b in zip(first, second)], confidence=confidence, method=method)


def warmup(values: Sequence[float]) -> int | None:
    """Return the number of values at the beginning of a series that belong to the warm-up, by MSER-5.

    Returns
    -------
    int or None
        None for a series of fewer than 50 values, or without a stationary part.
    """
    return _native.mser5([float(value) for value in values])


def trend(values: Sequence[float]) -> float | None:
    """Return the probability that a series without trend has a trend at least as strong as this one (Mann and Kendall, on 20 means).

    A probability below 0.01 is a warning that the series is not stationary. None for fewer than 20 values.
    """
    return _native.trend([float(value) for value in values])
