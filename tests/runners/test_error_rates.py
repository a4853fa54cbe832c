"""Error rates of the statistics, with noise recorded on real machines and with noise of known distributions.

docs/reports/statistics.md contains these rates. The seeds are fixed, so that a change of the
statistics shows.
"""

from __future__ import annotations

import numpy as np
import pytest

from pagewise.analysis.comparison import Judged, judge
from pagewise.analysis.statistics import bimodal, estimate, noise_floor, quotients, ratio
from recorded import comparisons, judged, series, until

pytestmark = pytest.mark.long

ROUNDS, WIDTH = 7, 0.03
# Long enough, and steady: not bimodal, nothing else on the machine.
STEADY = ("alone/2/schoenauer_triad/thp/1/interleaved", "alone/3/schoenauer_triad/none/2/blocks")


def slow_waves(rng: np.random.Generator, count: int, labels: int, rounds: int) -> np.ndarray:
    """Autocorrelated noise (AR(1), 0.9 from run to run), with programs in randomised order per round."""
    runs = np.empty((count, rounds * labels))
    runs[:, 0] = rng.normal(0.0, 0.05, count)
    for place in range(1, runs.shape[1]):
        runs[:, place] = 0.9 * runs[:, place - 1] + rng.normal(0.0, 0.05 * np.sqrt(1 - 0.81), count)
    return np.swapaxes(rng.permuted(runs.reshape(count, rounds, labels), axis=2), 1, 2)


def noise(kind: str, count: int, labels: int, rounds: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    shape = (count, labels, rounds)
    even = rng.normal(0.0, 0.02, shape)
    if kind == "waves":
        return slow_waves(rng, count, labels, rounds)
    added = {
        "even": 0.0,
        "spikes": 0.4 * (rng.random(shape) < 0.1),
        "skewed": rng.exponential(0.05, shape),
        "drift": np.linspace(0.0, 0.5, rounds),
        "two speeds, a fifth slow": 0.5 * (rng.random(shape) < 0.2),
        "two speeds, half slow": 0.5 * (rng.random(shape) < 0.5),
        "two speeds over time": 0.5 * (np.arange(rounds) >= rounds // 2),
    }
    return even + added[kind]


ONE_SPEED = ("even", "spikes", "skewed", "drift", "waves")
KINDS = (*ONE_SPEED, "two speeds, a fifth slow", "two speeds, half slow", "two speeds over time")


def test_the_simulation_judges_as_the_runner_does():
    times = np.random.default_rng(1).normal(0.0, 0.02, (60, 3, ROUNDS))
    times[:, 2] -= 0.04
    differs, middle, width, _ = judged(times)
    assert 0 < differs.sum() < 60
    columns = (np.exp(times), differs[:, 0], middle[:, 0], width[:, 1])
    for row, expected, median, wide in zip(*columns, strict=True):
        first, again, other = (dict(enumerate(run)) for run in row)
        floor = noise_floor(ratio(quotients([again], [first]), 3))
        measured = ratio(quotients([other], [first, again]), 4)
        assert (judge([Judged(ratio=measured, floor=floor)])[0].reason is None) == expected
        assert measured.median == pytest.approx(np.exp(median)) and measured.width == pytest.approx(wide)


@pytest.mark.parametrize(("variants", "mean", "fewest"), [(1, 0.02, 30), (4, 0.05, 12)])
def test_recorded_noise_gives_few_false_verdicts(variants, mean, fewest):
    """With the fewest rounds, per recorded series: the share of comparisons with any false verdict."""
    labels = 2 + variants
    long = [logs for logs in series().values() if len(logs) >= labels * ROUNDS]
    dealt = (comparisons(logs, labels, ROUNDS, 200, 1) for logs in long)
    false = [judged(times)[0].any(axis=1).mean() for times in dealt]
    assert len(false) >= fewest and max(false) <= 0.05 and np.mean(false) <= mean


@pytest.mark.parametrize("rounds", [ROUNDS, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_noise_of_any_shape_gives_few_false_verdicts(kind, rounds):
    assert judged(noise(kind, 500, 3, rounds), 100)[0].mean() <= 0.05


@pytest.mark.parametrize("kind", ONE_SPEED)
@pytest.mark.parametrize("rounds", [7, 14, 28])
def test_intervals_contain_the_truth(kind, rounds):
    """Intervals of ratios to two runs of the baseline; the coverage of 600 samples is uncertain by 2 %."""
    times = noise(kind, 600, 3, rounds)
    logs = np.stack([times[:, 2] - times[:, 0], times[:, 2] - times[:, 1]], axis=-2)
    centre, half, _ = estimate(logs, 1, 150)
    assert (np.abs(centre) <= half).mean() >= 0.93


@pytest.mark.parametrize("variants", [1, 6])
def test_a_difference_of_three_percent_is_detected_with_noise_of_two_percent(variants):
    """With the default and a noise of 2 % per run; half of six variants differ."""
    times = np.random.default_rng(3).normal(0.0, 0.02, (300 // variants, 2 + variants, 40))
    differ = slice(2, 2 + (variants + 1) // 2)
    times[:, differ] += np.log(0.97)
    differs, middle, rounds = until(times, WIDTH)
    detected = (differs & (middle < 0))[:, : (variants + 1) // 2]
    assert detected.mean() >= 0.95
    assert 10 <= rounds.mean() <= 25


@pytest.mark.parametrize("kind", KINDS)
def test_adding_rounds_gives_few_false_verdicts(kind):
    differs, _, rounds = until(noise(kind, 150, 3, 30), WIDTH)
    assert differs.mean() <= 0.05 and rounds.max() > 3


def test_a_large_difference_is_clear_in_few_rounds():
    times = np.random.default_rng(5).normal(0.0, 0.05, (300, 3, 40))
    times[:, 2] += np.log(0.7)
    differs, middle, rounds = until(times, WIDTH)
    assert (differs & (middle < 0)).mean() >= 0.99 and rounds.mean() <= 8


def test_interleaving_beats_blocks_on_recorded_noise():
    """The same runs in rounds or in blocks: how far the ratio of equal programs is from 1."""
    beaten = []
    for logs in series().values():
        dealt = [comparisons(logs, 3, ROUNDS, 300, 6, blocks=blocks) for blocks in (False, True)]
        interleaved, blocks = (np.sqrt((judged(times)[1] ** 2).mean()) for times in dealt)
        beaten.append(blocks / interleaved)
    assert np.exp(np.mean(np.log(beaten))) >= 2.0


def test_bimodal_times_are_recognised():
    """Recorded bimodal times of memory, and mixtures of known shares with the fewest rounds (14 runs)."""
    groups = bimodal(np.exp(series()["alone/3/schoenauer_triad/thp/2/blocks"]))
    assert groups is not None
    assert groups.apart == pytest.approx(1.68, abs=0.05)
    assert groups.slow_share == pytest.approx(0.46, abs=0.05)
    rng = np.random.default_rng(9)
    for share, least in ((0.5, 0.95), (0.3, 0.75)):
        slow = 0.5 * (rng.random((200, 14)) < share)
        logs = rng.normal(0.0, 0.03, (200, 14)) + slow
        assert np.mean([bimodal(np.exp(row)) is not None for row in logs]) >= least


@pytest.mark.parametrize("count", [7, 14, 40])
@pytest.mark.parametrize("kind", ["normal", "heavy", "uniform", "exponential", "drift"])
def test_other_distributions_are_not_bimodal(kind, count):
    rng = np.random.default_rng(11)
    shape = (400, count)
    logs = {
        "normal": rng.normal(0.0, 0.03, shape),
        "heavy": 0.02 * rng.standard_t(3, shape),
        "uniform": rng.uniform(0.0, 0.3, shape),
        "exponential": rng.exponential(0.05, shape),
        "drift": np.linspace(0.0, 0.3, count) + rng.normal(0.0, 0.01, shape),
    }[kind]
    assert np.mean([bimodal(np.exp(row)) is not None for row in logs]) <= 0.05
    assert [bimodal(np.exp(series()[name])) for name in STEADY] == [None, None]
