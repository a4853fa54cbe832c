"""Numbers to numbers: paired ratios, their estimate and interval, and the noise floor.

docs/statistics.md explains the choices and gives the error rates measured on recorded noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from pagewise.analysis.ratio import Ratio

CONFIDENCE = 0.95
RESAMPLES = 2000
FEWEST_ROUNDS = 3
# From this many rounds on there are enough patterns of signs (2^6) for a 95 % point.
_FEWEST_TO_RESAMPLE = 7
# Up to this many rounds all patterns of signs are taken, and no random ones.
_MOST_TO_ENUMERATE = 11


def trim_count(count: int) -> int:
    """How many values are dropped at each end: of 7, 1, as in the FLASH studies; of 14, 2; below 5, none."""
    return 0 if count < 5 else max(1, count // 7)


def trimmed_mean(values: Sequence[float]) -> float:
    """The mean without the smallest and the largest values (see trim_count). Raises ValueError when empty."""
    if not values:
        raise ValueError("the trimmed mean of nothing")
    drop = trim_count(len(values))
    return float(np.mean(np.sort(values)[drop : len(values) - drop]))


def paired_ratios(variant: Mapping[int, float], baseline: Mapping[int, float]) -> list[float]:
    """variant / baseline for each round that has both, in the order of rounds."""
    return [variant[number] / baseline[number] for number in sorted(variant.keys() & baseline.keys())]


def against(variant: Mapping[int, float], baselines: Sequence[Mapping[int, float]]) -> list[list[float]]:
    """variant / baseline, a list for each run of the baseline in a round, over the rounds that have all."""
    common = [number for number in sorted(variant) if all(number in one for one in baselines)]
    return [[variant[number] / one[number] for number in common] for one in baselines]


def estimate(
    logs: NDArray[np.float64], seed: int, resamples: int = RESAMPLES
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Centre, half the width of the 95 % interval, and p, of log ratios (..., b, n), n of at least 3.

    b are the runs of the baseline in a round, n the rounds. Centre is the trimmed mean, the mean of those of
    all b. (The trimmed mean over the rounds' means would be off where noise is skewed: the mean of two runs
    is less skewed than one run.) Its standard error is that of the Winsorised values, and Student's t has as
    many degrees of freedom as values are left, less one (Tukey and McLaughlin, Sankhya A 25, 1963; Yuen,
    Biometrika 61, 1974). That is a little too narrow at 7 values and for two-peaked noise, so the 95 % point
    is also taken from a studentised bootstrap, and the larger of both counts. The bootstrap is the wild one:
    it turns the signs of the centred log ratios of a round, which are symmetric where both programs are
    alike, because the order within a round is drawn (Liu, Ann. Stat. 16, 1988; Davidson and Flachaire, J.
    Econometrics 146, 2008). Drawing with replacement instead gives ties, and at n = 7 intervals too narrow
    (percentiles) or useless. p follows Student's t, scaled so that p is 0.05 where the interval ends at 0.
    """
    count = logs.shape[-1]
    centre, error = studentised(logs)
    freedom = count - 2 * trim_count(count) - 1
    student = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2))
    factor = np.full(centre.shape, student)
    if count >= _FEWEST_TO_RESAMPLE:
        signs = _signs(count, seed, resamples)[:, None, :]
        means, errors = studentised((logs - centre[..., None, None])[..., None, :, :] * signs)
        # Where all values are alike there is nothing to resample.
        far = np.divide(np.abs(means), errors, out=np.zeros_like(means), where=errors > 0.0)
        factor = np.maximum(factor, np.quantile(far, CONFIDENCE, axis=-1))
    half = factor * error
    scaled = np.divide(student * np.abs(centre), half, out=np.full_like(half, np.inf), where=half > 0.0)
    p = np.where(centre == 0.0, 1.0, 2.0 * stdtr(freedom, -scaled))
    return centre, half, p


def ratio(ratios: Sequence[float] | Sequence[Sequence[float]], seed: int) -> Ratio | None:
    """Sums up paired ratios, or several lists of them as `against` makes them; None without any.

    The interval always holds the median.
    """
    logs = np.log(np.atleast_2d(np.asarray(ratios, dtype=float)))
    count = logs.shape[-1]
    if logs.size == 0:
        return None
    median = float(np.median(logs, axis=-1).mean())
    if count < FEWEST_ROUNDS:
        return Ratio(count, math.exp(median), None, None)
    centre, half, p = (float(value) for value in estimate(logs, seed))
    low, high = math.exp(min(centre - half, median)), math.exp(max(centre + half, median))
    return Ratio(count, math.exp(median), low, high, p, math.exp(centre))


def geometric_mean(ratios: Sequence[Ratio]) -> Ratio | None:
    """The geometric mean of several comparisons' medians, as independent of each other; None without any.

    It speaks of these comparisons alone: half the width of its interval, in log, is the root of the sum of
    squares of theirs, over their number. Without an interval of each it has none.
    """
    if not ratios:
        return None
    middle = math.exp(float(np.mean([math.log(one.median) for one in ratios])))
    pairs = min(one.pairs for one in ratios)
    if any(one.low is None or one.high is None for one in ratios):
        return Ratio(pairs, middle, None, None)
    halves = [math.log(one.high / one.low) / 2.0 for one in ratios if one.low and one.high]
    half = math.sqrt(sum(one**2 for one in halves)) / len(ratios)
    return Ratio(pairs, middle, middle * math.exp(-half), middle * math.exp(half))


def noise_floor(*repeated: Ratio | None) -> float | None:
    """How far from 1 a ratio may lie without meaning anything, as a share (0.02: from 1/1.02 to 1.02).

    `repeated` are ratios of a configuration to itself (A/A). The floor is the larger of what they differed
    by (the farthest of them) and half the width of their intervals (the middle one). None when no A/A has
    an interval.
    """
    told = [one for one in repeated if one is not None and one.low is not None and one.high is not None]
    if not told:
        return None
    differed = max(abs(math.log(one.median)) for one in told)
    halves = [math.log(one.high / one.low) / 2.0 for one in told if one.low and one.high]
    return math.exp(max(differed, float(np.median(halves)))) - 1.0


def studentised(logs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Trimmed mean over the last axis, the mean of those of the last but one, and its standard error."""
    count = logs.shape[-1]
    drop = trim_count(count)
    ordered = np.sort(logs, axis=-1)
    centre = ordered[..., drop : count - drop].mean(axis=(-2, -1))
    # Winsorised: what is dropped counts as the nearest value that is kept.
    told = np.clip(logs, ordered[..., drop, None], ordered[..., count - 1 - drop, None]).mean(axis=-2)
    return centre, told.std(axis=-1, ddof=1) / math.sqrt(count) / (1.0 - 2.0 * drop / count)


@lru_cache(maxsize=64)
def _signs(count: int, seed: int, resamples: int) -> NDArray[np.float64]:
    """Patterns of signs: all that differ (but for turning all of them) up to 11 values, else drawn ones."""
    if count <= _MOST_TO_ENUMERATE:
        bits = np.arange(2 ** (count - 1))[:, None] >> np.arange(count)[None, :] & 1
        return np.asarray(1.0 - 2.0 * bits, dtype=np.float64)
    drawn: NDArray[np.float64] = np.random.default_rng(seed).choice((-1.0, 1.0), size=(resamples, count))
    return drawn
