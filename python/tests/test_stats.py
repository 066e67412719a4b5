"""Intervals, warm-up and trends."""

from __future__ import annotations

import math
import random
import statistics
from typing import Callable

import pytest

from faircast import stats

VALUES = [4.1, 5.0, 4.7, 6.2, 5.5, 4.9, 5.1, 5.8]


def test_student_interval_equals_the_published_formula() -> None:
    interval, quantile = stats.interval(VALUES), 2.364624  # t for 97.5 % and 7 degrees of freedom
    half = quantile * statistics.stdev(VALUES) / len(VALUES) ** 0.5
    assert (interval.mean, interval.half_width) == pytest.approx((statistics.mean(VALUES), half), rel=1e-6)


def test_bootstrap_is_near_student_for_normal_values() -> None:
    draw = random.Random(3)
    values = [draw.gauss(10, 2) for _ in range(60)]
    t, boot = stats.interval(values), stats.interval(values, method="bootstrap")
    assert abs(boot.low - t.low) < 0.1 and abs(boot.high - t.high) < 0.1
    assert boot == stats.interval(values, method="bootstrap")


@pytest.mark.parametrize("values, options", [([1.0], {}), ([1, float("nan")], {}), (VALUES, {"confidence": 1.0}), (VALUES, {"method": "z"})])
def test_wrong_arguments_are_errors(values: list, options: dict) -> None:
    with pytest.raises(ValueError):
        stats.interval(values, **options)


def test_verdicts() -> None:
    interval = stats.interval(VALUES)
    assert interval.verdict(low=4.5) == "holds"
    assert interval.verdict(high=4.5) == "fails"
    assert interval.verdict(low=5.0) == "undecided"


def test_paired_values_have_equal_numbers() -> None:
    with pytest.raises(ValueError, match="8 and 1"):
        stats.paired(VALUES, [1.0])


def test_warmup_and_trend() -> None:
    draw = random.Random(5)
    series = [draw.random() + max(0.0, 5 - step / 40) for step in range(1000)]
    assert 150 <= stats.warmup(series) <= 260
    assert stats.trend(series[:250]) < 0.01 and stats.trend(series[300:]) > 0.01
    assert stats.warmup(series[:40]) is None and stats.trend(series[:10]) is None
    assert stats.trend([1.0] * 100) == 1.0


@pytest.mark.parametrize("function", [stats.trend, stats.warmup])
def test_series_are_finite(function: Callable[[list[float]], object]) -> None:
    with pytest.raises(ValueError, match="value 50 .from 0. is NaN"):
        function([1.0] * 50 + [math.nan] + [1.0] * 50)
