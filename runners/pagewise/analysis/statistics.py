"""Numbers to numbers: paired ratios with intervals, the noise floor, and what disturbs times.

docs/explanation/statistics.md explains the choices and gives the error rates measured on recorded noise.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
# With fewer values no bimodality and no drift are detected.
_FEWEST = 7
# Small compared with the usual distance of two modes, and with what page sizes do.
_NEAREST = 1.05
# A smaller share of the runs, or fewer than two, are outliers and not a second mode.
_SMALLEST_SHARE = 0.15
# Two normal components must lie this many standard deviations apart, with no more than this share of the
# values in the middle third between them, and must improve the Bayesian information criterion by this much
# (10 is "very strong": Raftery, Sociological Methodology 25, 1995).
_APART = 5.0
_MOST_BETWEEN = 0.05
_BETTER = 10.0
# The assumed least uncertainty of a time, as a share.
_SHARPEST = 1e-3
# Iglewicz and Hoaglin, How to Detect and Handle Outliers (ASQC Basic References in Quality Control 16, 1993):
# values farther out than this are outliers; the constants make both scores those of normal values.
_FAR = 3.5
_FROM_MEDIAN_DEVIATION = 0.6745
_FROM_MEAN_DEVIATION = 1.253314
# A drift needs a p of at most this; smaller changes over all rounds are not reported.
_DRIFT_P, _LEAST_CHANGE = 0.01, 0.01


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
    """Ratios over the rounds that all have: a list for each pair. compare: what replaces division.

    A round in which something is divided by 0 does not count.
    """
    rounds, pairs = _pairs(runs, others)
    if compare is operator.truediv:
        rounds = [number for number in rounds if all(reference[number] != 0.0 for _, reference in pairs)]
    return [[compare(own[number], reference[number]) for number in rounds] for own, reference in pairs]


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
    centre, error = studentise(logs)
    freedom = count - 2 * trim_count(count) - 1
    student = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2))
    factor = np.full(centre.shape, student)
    if count >= _FEWEST_TO_RESAMPLE:
        signs = _signs(count, seed, resamples)[:, None, :]
        means, errors = studentise((logs - centre[..., None, None])[..., None, :, :] * signs)
        # Where all values are alike there is nothing to resample.
        far = np.divide(np.abs(means), errors, out=np.zeros_like(means), where=errors > 0.0)
        factor = np.maximum(factor, np.quantile(far, CONFIDENCE, axis=-1))
    half = factor * error
    scaled = np.divide(student * np.abs(centre), half, out=np.full_like(half, np.inf), where=half > 0.0)
    p = np.where(centre == 0.0, 1.0, 2.0 * stdtr(freedom, -scaled))
    return centre, half, p


def ratio(ratios: Sequence[float] | Sequence[Sequence[float]], seed: int) -> Ratio | None:
    """Summarises paired ratios, or several lists of them as `quotients` makes them; None without any.

    The interval always holds the median. Ratios of 0 have none.
    """
    values = np.atleast_2d(np.asarray(ratios, dtype=float))
    if (values <= 0.0).any():
        return Ratio(values.shape[-1], float(np.median(values, axis=-1).mean()), None, None)
    return _summary(np.log(values), seed, is_difference=False)


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
    squares of their errors, over their number. It has no interval unless each of them has one.
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


def largest(values: Sequence[float | None]) -> float | None:
    """The largest of some noise floors or widths of intervals; None if one is unknown."""
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None


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
    """The ratios by round; of several runs in a round their geometric mean. Empty if a value is 0."""
    rounds, ratios = _pairs(runs, others)[0], quotients(runs, others)
    if any(value <= 0.0 for run in (*runs, *others) for value in run.values()):
        return {}
    means = (math.exp(fmean(map(math.log, several))) for several in zip(*ratios, strict=True))
    return dict(zip(rounds, means, strict=True))


def studentise(logs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


@dataclass(frozen=True)
class Bimodal:
    """Times in two groups: the medians of the fast and of the slow ones, and the share of slow runs."""

    fast: float
    slow: float
    slow_share: float

    @property
    def apart(self) -> float:
        """slow / fast."""
        return self.slow / self.fast


@dataclass(frozen=True)
class Drift:
    """A trend in positive values over rounds: `first` and `last` on the fitted line, and its p."""

    first: float
    last: float
    p: float

    @property
    def change(self) -> float:
        """last / first - 1."""
        return self.last / self.first - 1.0

    @property
    def crosses_one(self) -> bool:
        """Whether the line starts on one side of 1 and ends on the other."""
        return (self.first - 1.0) * (self.last - 1.0) < 0.0


def bimodal(seconds: Sequence[float]) -> Bimodal | None:
    """The two groups of these times, None if there is one group or there are too few times to decide.

    A mixture of two normal distributions of equal width, in log time, is compared with a single one by the
    Bayesian information criterion. The two lie so far apart that the best split of the sorted values is the
    most likely mixture, so no iteration is needed. Groups must be well separated: overlapping normal
    components are as likely a skewed tail (Ashman, Bird and Zepf, AJ 108, 1994, require 2 standard
    deviations).
    """
    count = len(seconds)
    if count < _FEWEST:
        return None
    logs = np.sort(np.log(np.asarray(seconds, dtype=float)))
    fewest = max(2, math.ceil(_SMALLEST_SHARE * count))
    sizes = np.arange(fewest, count - fewest + 1)
    sums, squares = np.cumsum(logs), np.cumsum(logs * logs)
    left = squares[sizes - 1] - sums[sizes - 1] ** 2 / sizes
    right = squares[-1] - squares[sizes - 1] - (sums[-1] - sums[sizes - 1]) ** 2 / (count - sizes)
    cut = int(sizes[np.argmin(left + right)])
    fast, slow = float(np.median(logs[:cut])), float(np.median(logs[cut:]))
    within = max(math.sqrt(max(float((left + right).min()), 0.0) / count), _SHARPEST)
    overall = max(float(logs.std()), _SHARPEST)
    share = cut / count
    entropy = -share * math.log(share) - (1.0 - share) * math.log1p(-share)
    # Twice the gain in log likelihood, minus the penalty for two more parameters.
    better = 2.0 * count * (math.log(overall / within) - entropy) - 2.0 * math.log(count)
    between = np.abs(logs - (slow + fast) / 2.0) < (slow - fast) / 6.0
    clear = slow - fast >= max(_APART * within, math.log(_NEAREST)) and between.mean() <= _MOST_BETWEEN
    return Bimodal(math.exp(fast), math.exp(slow), 1.0 - share) if clear and better >= _BETTER else None


def modified_z(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """0.6745 (x - median) / MAD of each value.

    If more than half of the values are equal, the MAD is 0 and the mean deviation from the median replaces
    it; all scores are 0 if all values are equal.
    """
    deviations = np.asarray(values, dtype=float) - np.median(values)
    spread = float(np.median(np.abs(deviations))) / _FROM_MEDIAN_DEVIATION
    if spread == 0.0:
        spread = float(np.mean(np.abs(deviations))) * _FROM_MEAN_DEVIATION
    return deviations / spread if spread > 0.0 else np.zeros_like(deviations)


def outliers(ratios: Mapping[int, float]) -> tuple[tuple[int, float], ...]:
    """The outliers among at least 5 ratios, with their rounds. They are shown, and kept."""
    if len(ratios) < 5:
        return ()
    items = list(ratios.items())
    scores = modified_z(np.log([ratio for _, ratio in items]))
    return tuple(items[int(place)] for place in np.flatnonzero(np.abs(scores) > _FAR))


def drift(values: Mapping[int, float]) -> Drift | None:
    """The trend of positive values by round, None if there is none to report or fewer than 7 rounds.

    Its p is that of Kendall's tau between round and value (Mann, Econometrica 13, 1945; Kendall, Rank
    Correlation Methods, 1975): exact without ties, else the normal approximation. The line is that of Theil
    and Sen, in log: median of all slopes (Sen, JASA 63, 1968).
    """
    if len(values) < _FEWEST:
        return None
    # See verdict.corrected.
    from scipy.stats import kendalltau, theilslopes

    rounds = np.array(sorted(values), dtype=float)
    logs = np.log([values[int(number)] for number in rounds])
    p = float(kendalltau(rounds, logs).pvalue)
    # If all values are equal there is no tau: its p is not a number.
    if not p <= _DRIFT_P:
        return None
    line = theilslopes(logs, rounds, method="joint")
    first, last = (math.exp(line.intercept + line.slope * rounds[end]) for end in (0, -1))
    trend = Drift(first, last, p)
    return trend if abs(trend.change) >= _LEAST_CHANGE else None
