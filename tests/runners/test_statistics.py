"""Statistics against manually computed cases and independent implementations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pagewise.analysis.comparison import Judged, judge
from pagewise.analysis.statistics import Drift, Ratio, estimate, noise_floor, quotients, ratio, trimmed_mean

DOWN = Drift(0.95, 0.85, 0.001)


def compared(measured: Ratio | None, floor: float | None, **changes: Any) -> Judged:
    return Judged(ratio=measured, floor=floor, **changes)


@pytest.mark.parametrize("count", [7, 14, 21])
def test_trimmed_mean_agrees_with_scipy(count):
    values = np.random.default_rng(3).lognormal(size=count)
    assert trimmed_mean(list(values)) == pytest.approx(stats.trim_mean(values, 1 / 7))


def test_interval_of_the_plain_mean_is_students():
    """With fewer than five values nothing is trimmed: the bootstrap's error is that of Student's t."""
    ratios = [0.90, 0.94, 0.91, 0.95]
    logs = np.log(ratios)
    low, high = stats.t.interval(0.95, 3, logs.mean(), stats.sem(logs))
    measured = ratio(ratios, seed=1)
    assert measured is not None
    assert measured.median == pytest.approx(math.sqrt(0.91 * 0.94))
    # 2000 resamples give the standard error within about 5 %.
    assert math.log(measured.low) == pytest.approx(low, abs=0.08 * (high - low))
    assert math.log(measured.high) == pytest.approx(high, abs=0.08 * (high - low))


@pytest.mark.parametrize("count", [7, 14, 21])
def test_the_interval_matches_the_trimmed_mean_or_wider(count):
    """Centre and standard error against scipy; never narrower than Student's t, rarely much wider."""
    logs = np.random.default_rng(5).normal(0.1, 0.05, size=(40, 1, count))
    centre, half, _ = estimate(logs, seed=9)
    limits = (1 / 7 + 1e-9, 1 / 7 + 1e-9)
    for row, middle, reach in zip(logs[:, 0], centre, half, strict=True):
        assert middle == pytest.approx(float(stats.mstats.trimmed_mean(row, limits)))
        left = count - 2 * (count // 7)
        student = stats.t.ppf(0.975, left - 1) * stats.mstats.trimmed_stde(row, limits)
        assert student * 0.999999 <= reach <= 2 * student


def test_several_runs_of_the_baseline_count_as_one_ratio():
    ratios = np.random.default_rng(7).lognormal(0.1, 0.02, size=(2, 9))
    both = ratio([list(row) for row in ratios], 1)
    centres = [ratio(list(row), 1).trimmed for row in ratios]
    assert both.trimmed == pytest.approx(math.sqrt(centres[0] * centres[1]))
    assert both.pairs == 9 and both.low < both.trimmed < both.high
    assert quotients([{1: 2.0, 2: 6.0, 3: 1.0}], [{1: 1.0, 2: 2.0}, {1: 4.0, 2: 3.0, 3: 1.0}]) == [
        [2.0, 3.0],
        [0.5, 2.0],
    ]


def test_p_matches_the_interval():
    """p is below 0.05 exactly if the interval around the trimmed mean excludes 1."""
    logs = np.random.default_rng(13).normal(0.01, 0.02, size=(300, 2, 8))
    centre, half, p = estimate(logs, seed=1)
    assert ((np.abs(centre) > half) == (p < 0.05)).all() and p.min() >= 0.0 and p.max() <= 1.0
    alike = estimate(np.full((2, 1, 9), [[[0.1]], [[0.0]]]), seed=1)
    assert alike[1].tolist() == pytest.approx([0.0, 0.0]) and alike[2].tolist() == [0.0, 1.0]


def test_same_seed_same_interval():
    ratios = [1.0, 1.5, 1.01, 1.49, 1.02, 1.51, 0.99, 1.0, 1.5, 1.01, 1.48, 1.0, 1.52, 1.5]
    assert ratio(ratios, 4) == ratio(ratios, 4)
    assert len({ratio(ratios, seed) for seed in range(10)}) > 1


def test_too_few_rounds_have_no_interval_and_no_verdict():
    assert ratio([], 1) is None
    measured = ratio([0.5, 0.5], 1)
    assert measured == Ratio(2, 0.5, None, None)
    assert judge([compared(measured, 0.0)])[0].direction is None
    assert noise_floor(measured) is None


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (compared(None, 0.02), "too few rounds"),
        (compared(Ratio(7, 0.90, None, None), 0.02), "too few rounds"),
        (compared(Ratio(7, 0.90, 0.88, 0.92), None), "too few rounds"),
        (compared(Ratio(7, 0.99, 0.96, 1.01), 0.02), "interval"),
        (compared(Ratio(7, 0.99, 0.98, 0.995, 0.2), 0.02), "floor"),
        (compared(Ratio(7, 0.90, 0.88, 0.92, 0.051), 0.02), "correction"),
        (compared(Ratio(7, 0.90, 0.88, 0.92, 0.05), 0.02), None),
        (compared(Ratio(7, 0.99, 0.96, 1.01), 0.02, bimodal=True, drift=DOWN), "bimodal"),
        (compared(Ratio(7, 0.90, 0.88, 0.92, 0.01), 0.02, bimodal=True), None),
        (compared(Ratio(7, 0.99, 0.96, 1.01), 0.02, drift=DOWN), "drift"),
        (compared(Ratio(7, 0.90, 0.88, 0.92, 0.01), 0.02, drift=DOWN), None),
        (compared(Ratio(7, 0.90, 0.88, 0.92, 0.01), 0.02, drift=Drift(1.1, 0.8, 0.001)), "drift"),
    ],
)
def test_an_inconclusive_verdict_has_its_reason(row, why):
    (verdict,) = judge([row])
    assert verdict.reason == why
    assert (verdict.direction is None) == (why is not None)


def test_the_noise_floor_is_the_observed_or_possible_difference_of_equal_programs():
    assert noise_floor(Ratio(7, 1.0, 0.98, 1.02)) == pytest.approx(math.sqrt(1.02 / 0.98) - 1)
    assert noise_floor(Ratio(7, 0.95, 0.94, 0.96)) == pytest.approx(1 / 0.95 - 1)
    assert noise_floor(Ratio(7, 1.01, 0.99, 1.03), Ratio(7, 0.96, 0.95, 1.01), None) == pytest.approx(
        1 / 0.96 - 1
    )
    assert noise_floor(None) is None
