"""What disturbs times: two groups of times, outliers, and drift over the rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
