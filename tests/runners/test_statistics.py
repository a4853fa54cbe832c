"""Numbers to numbers, against hand-worked cases and independent computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pagewise.compare.statistics import (
    Ratio,
    noise_floor,
    paired_ratios,
    ratio,
    trimmed_mean,
    verdict,
)


def test_trimmed_mean_of_seven_drops_the_fastest_and_the_slowest():
    assert trimmed_mean([9.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0]) == pytest.approx((3 + 4 + 5 + 6 + 9) / 5)
    assert trimmed_mean([7.0, 1.0, 3.0, 2.0, 4.0, 6.0, 5.0]) == pytest.approx(4.0)


@pytest.mark.parametrize("count", [7, 14, 21])
def test_trimmed_mean_agrees_with_scipy(count):
    values = np.random.default_rng(3).lognormal(size=count)
    assert trimmed_mean(list(values)) == pytest.approx(stats.trim_mean(values, 1 / 7))


def test_trimmed_mean_of_few_is_the_mean():
    assert trimmed_mean([1.0, 2.0, 6.0]) == pytest.approx(3.0)
    with pytest.raises(ValueError, match="nothing"):
        trimmed_mean([])


def test_ratios_are_paired_by_round():
    assert paired_ratios({1: 2.0, 2: 6.0, 4: 9.0}, {1: 4.0, 2: 3.0, 3: 1.0}) == [
        0.5,
        2.0,
    ]


def test_interval_of_the_plain_mean_is_students():
    """Below five values nothing is trimmed: the bootstrap's error is that of the mean, as t has it."""
    ratios = [0.90, 0.94, 0.91, 0.95]
    logs = np.log(ratios)
    low, high = stats.t.interval(0.95, 3, logs.mean(), stats.sem(logs))
    found = ratio(ratios, seed=1)
    assert found is not None
    assert found.median == pytest.approx(math.sqrt(0.91 * 0.94))
    # 2000 resamples give the standard error within about 5 %.
    assert math.log(found.low) == pytest.approx(low, abs=0.08 * (high - low))
    assert math.log(found.high) == pytest.approx(high, abs=0.08 * (high - low))


def test_error_of_the_trimmed_mean_agrees_with_scipys_bootstrap():
    ratios = np.random.default_rng(5).lognormal(0.1, 0.05, size=7)
    logs = np.log(ratios)
    independent = stats.bootstrap(
        (logs,),
        lambda x, axis: stats.trim_mean(x, 1 / 7, axis=axis),
        n_resamples=5000,
        random_state=2,
    ).standard_error
    half = stats.t.ppf(0.975, 4) * independent * math.sqrt(7 / 6)
    found = ratio(list(ratios), seed=9)
    assert found is not None
    assert math.log(found.high / found.low) / 2 == pytest.approx(half, rel=0.08)


def test_same_seed_same_interval():
    ratios = [1.0, 1.1, 1.05, 0.99, 1.02, 1.2, 1.0]
    assert ratio(ratios, 4) == ratio(ratios, 4)
    assert ratio(ratios, 4) != ratio(ratios, 5)


def test_too_few_rounds_have_no_interval_and_no_verdict():
    assert ratio([], 1) is None
    found = ratio([0.5, 0.5], 1)
    assert found == Ratio(2, 0.5, None, None)
    assert verdict(found, 0.0) == "cannot tell"
    assert noise_floor(found) is None


def test_interval_covers_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(11)
    draws = generator.normal(0.0, 0.03, size=(400, 7))
    held = sum(one.low <= 1.0 <= one.high for row in draws if (one := ratio(list(np.exp(row)), 1)))
    assert 0.92 <= held / 400 <= 1.0


@pytest.mark.parametrize(
    ("median", "low", "high", "floor", "expected"),
    [
        (0.90, 0.88, 0.92, 0.02, "faster"),
        (1.10, 1.08, 1.12, 0.02, "slower"),
        (0.90, 0.88, 1.01, 0.02, "cannot tell"),
        (0.99, 0.985, 0.995, 0.02, "cannot tell"),
        (1.01, 1.005, 1.015, 0.02, "cannot tell"),
        (0.90, 0.88, 0.92, None, "cannot tell"),
        (0.90, None, None, 0.02, "cannot tell"),
    ],
)
def test_verdict_needs_both_the_interval_and_the_floor(median, low, high, floor, expected):
    assert verdict(Ratio(7, median, low, high), floor) == expected


def test_noise_floor_is_the_far_end_of_the_interval():
    assert noise_floor(Ratio(7, 1.0, 0.98, 1.01)) == pytest.approx(1 / 0.98 - 1)
    assert noise_floor(Ratio(7, 1.0, 0.99, 1.03)) == pytest.approx(0.03)


@pytest.mark.parametrize("noise", ["even", "spikes", "drift"])
def test_equal_programs_get_few_false_verdicts(noise):
    """A/A over 7 rounds with 2 % noise, with spikes, and with a drift that pairing must take out."""
    generator = np.random.default_rng(17)
    false = 0
    for _ in range(300):
        times = np.exp(generator.normal(0.0, 0.02, size=(3, 7)))
        if noise == "spikes":
            times *= np.where(generator.random((3, 7)) < 0.1, 1.5, 1.0)
        if noise == "drift":
            times *= np.linspace(1.0, 1.5, 7)
        first, again, other = (dict(enumerate(row)) for row in times)
        floor = noise_floor(ratio(paired_ratios(again, first), 1))
        false += verdict(ratio(paired_ratios(other, first), 2), floor) != "cannot tell"
    assert false / 300 <= 0.05


def test_a_clear_difference_is_seen():
    generator = np.random.default_rng(23)
    seen = 0
    for _ in range(100):
        times = np.exp(generator.normal(0.0, 0.01, size=(3, 7)))
        first, again, other = (dict(enumerate(row)) for row in times)
        faster = {number: 0.93 * seconds for number, seconds in other.items()}
        floor = noise_floor(ratio(paired_ratios(again, first), 1))
        seen += verdict(ratio(paired_ratios(faster, first), 2), floor) == "faster"
    assert seen >= 95
