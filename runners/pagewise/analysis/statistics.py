"""Numbers to numbers: paired ratios, their estimate and interval, and the noise floor.

docs/explanation/statistics.md explains the choices and gives the error rates measured on recorded noise.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from pagewise.analysis.ratio import Ratio

#: Values by round: of the compared runs, then of a baseline's second runs, third runs, ... of a round (A/A).
Runs = Sequence[Mapping[int, float]]
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


def common_rounds(*runs: Mapping[int, float]) -> list[int]:
    """The rounds that all have."""
    return sorted(set.intersection(*map(set, runs))) if runs else []


def _pairs(runs: Runs, others: Runs) -> tuple[list[int], list[tuple[Mapping[int, float], ...]]]:
    """The pairs that are compared and the rounds that all of them have.

    A single run per round is compared with each of the others, several are compared one by one.
    """
    pairs: list[tuple[Mapping[int, float], ...]] = (
        [(runs[0], other) for other in others] if len(runs) == 1 else list(zip(runs, others, strict=False))
    )
    return common_rounds(*(run for pair in pairs for run in pair)), pairs


def quotients(
    runs: Runs, others: Runs, compare: Callable[[float, float], float] = operator.truediv
) -> list[list[float]]:
    """Ratios over the rounds that all have: a list for each pair. compare: what replaces division."""
    rounds, pairs = _pairs(runs, others)
    return [[compare(ours[number], theirs[number]) for number in rounds] for ours, theirs in pairs]


def estimate(
    logs: NDArray[np.float64], seed: int, resamples: int = RESAMPLES
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Centre, half the width of the 95 % interval, and p, of log ratios (..., b, n) with n of at least 3.

    b counts the runs of the baseline in a round, n the rounds. The centre is the mean over b of the trimmed
    means. (The trimmed mean over the rounds' means would be biased where noise is skewed: the mean of two
    runs is less skewed than one run.) Its standard error is that of the Winsorised values, and Student's t
    has one degree of freedom less than values are left (Tukey and McLaughlin, Sankhya A 25, 1963; Yuen,
    Biometrika 61, 1974). This interval is slightly too narrow at 7 values and for bimodal noise. The 95 %
    point is therefore also computed by a studentised bootstrap, and the larger one is used. The wild
    bootstrap flips the signs of a round's centred log ratios. They are symmetric where both programs are
    alike, because the order within a round is random (Liu, Ann. Stat. 16, 1988; Davidson and Flachaire, J.
    Econometrics 146, 2008). Drawing with replacement gives ties instead, and at n = 7 intervals that are too
    narrow (percentiles) or useless. p follows Student's t, scaled: p is 0.05 where the interval ends at 0.
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
    """Summarises paired ratios, or several lists of them as `quotients` makes them; None without any.

    The interval always holds the median.
    """
    return _summary(np.log(np.atleast_2d(np.asarray(ratios, dtype=float))), seed, is_difference=False)


def _summary(values: NDArray[np.float64], seed: int, *, is_difference: bool) -> Ratio | None:
    count = values.shape[-1]
    if values.size == 0:
        return None
    back: Callable[[float], float] = float if is_difference else math.exp
    median = float(np.median(values, axis=-1).mean())
    if count < FEWEST_ROUNDS:
        return Ratio(count, back(median), None, None, is_difference=is_difference)
    centre, half, p = (float(value) for value in estimate(values, seed))
    low, high = back(min(centre - half, median)), back(max(centre + half, median))
    return Ratio(count, back(median), low, high, p, back(centre), is_difference=is_difference)


def geometric_mean(ratios: Sequence[Ratio]) -> Ratio | None:
    """The geometric mean of the medians of several independent comparisons; None without any.

    It describes these comparisons alone: half the width of its interval, in log, is the root of the sum of
    squares of theirs, over their number. It has no interval unless each of them has one.
    """
    if not ratios:
        return None
    mean = math.exp(float(np.mean([math.log(item.median) for item in ratios])))
    pairs = min(item.pairs for item in ratios)
    widths = [math.log(item.high / item.low) for item in ratios if item.low and item.high]
    if len(widths) < len(ratios):
        return Ratio(pairs, mean, None, None)
    half = math.hypot(*widths) / 2.0 / len(ratios)
    return Ratio(pairs, mean, mean * math.exp(-half), mean * math.exp(half))


def noise_floor(*repeated: Ratio | None) -> float | None:
    """How far from 1 a ratio may lie without meaning anything, as a share (0.02: from 1/1.02 to 1.02).

    `repeated` are ratios of a configuration to itself (A/A). The floor is the larger of their largest
    deviation from 1 and the median half width of their intervals. None when no A/A has an interval.
    Of differences it is in their unit: how far from 0 one may lie.
    """
    known = [item for item in repeated if item and item.low is not None and item.high is not None]
    if not known:
        return None
    is_difference = known[0].is_difference
    scaled = np.array([(item.median, item.low, item.high) for item in known], dtype=float)
    medians, low, high = (scaled if is_difference else np.log(scaled)).T
    floor = max(float(np.abs(medians).max()), float(np.median(high - low)) / 2.0)
    return floor if is_difference else math.exp(floor) - 1.0


def larger_floor(floors: Sequence[float | None]) -> float | None:
    """The larger noise floor of two compilers; None if one is unknown."""
    known = [floor for floor in floors if floor is not None]
    return max(known) if len(known) == len(floors) else None


def repeated_ratios(baseline: Runs, seed: int, *, by_difference: bool = False) -> list[Ratio]:
    """The ratios, or differences, of a baseline's further runs to its first ones (A/A)."""
    ratios = (paired_ratio([run], baseline[:1], seed, by_difference=by_difference) for run in baseline[1:])
    return [item for item in ratios if item is not None]


def paired_ratio(runs: Runs, others: Runs, seed: int, *, by_difference: bool = False) -> Ratio | None:
    """The ratio of runs to others, or their difference, paired by round; None without a common round."""
    if not runs or not others:
        return None
    if by_difference:
        values = np.asarray(quotients(runs, others, operator.sub), dtype=float)
        return _summary(values, seed, is_difference=True)
    return ratio(quotients(runs, others), seed)


def ratios_by_round(runs: Runs, others: Runs) -> dict[int, float]:
    """The ratios by round; of several runs in a round their geometric mean."""
    means = (
        math.exp(fmean(map(math.log, several))) for several in zip(*quotients(runs, others), strict=True)
    )
    return dict(zip(_pairs(runs, others)[0], means, strict=True))


def studentised(logs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Trimmed mean over the last axis, the mean of those of the last but one, and its standard error."""
    count = logs.shape[-1]
    drop = trim_count(count)
    ordered = np.sort(logs, axis=-1)
    centre = ordered[..., drop : count - drop].mean(axis=(-2, -1))
    # A dropped value counts as the nearest one that is kept.
    winsorised = np.clip(logs, ordered[..., drop, None], ordered[..., count - 1 - drop, None]).mean(axis=-2)
    return centre, winsorised.std(axis=-1, ddof=1) / math.sqrt(count) / (1.0 - 2.0 * drop / count)


@lru_cache(maxsize=64)
def _signs(count: int, seed: int, resamples: int) -> NDArray[np.float64]:
    """Patterns of signs, random ones from 12 values on; a pattern and its negative count as one."""
    if count <= _MOST_TO_ENUMERATE:
        bits = np.arange(2 ** (count - 1))[:, None] >> np.arange(count)[None, :] & 1
        return np.asarray(1.0 - 2.0 * bits, dtype=np.float64)
    random: NDArray[np.float64] = np.random.default_rng(seed).choice((-1.0, 1.0), size=(resamples, count))
    return random
