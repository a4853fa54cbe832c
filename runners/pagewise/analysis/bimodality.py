"""Whether times are bimodal, as those of the memory of a virtual machine may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FEWEST = 7
# Small against what such modes differ by, and against what page sizes do.
_NEAREST = 1.05
# A fewer share of the runs, or less than two, are outliers and no second mode.
_SMALLEST_SHARE = 0.15
# Two normal components must lie this many standard deviations apart, with no more than this share of the
# values in the middle third between them, and be the better model by so much of the Bayesian information
# criterion (10 is "very strong": Raftery, Sociological Methodology 25, 1995).
_APART = 5.0
_MOST_BETWEEN = 0.05
_BETTER = 10.0
# A time is never known better than this share, however alike some are.
_SHARPEST = 1e-3


@dataclass(frozen=True)
class Bimodal:
    """Times in two groups: the medians of the fast and of the slow ones, and the share of slow runs."""

    fast: float
    slow: float
    slow_share: float

    @property
    def apart(self) -> float:
        """How many times as long the slow ones take."""
        return self.slow / self.fast


def bimodal(seconds: Sequence[float]) -> Bimodal | None:
    """The two groups of these times, None where there is one or too few times to decide.

    A mixture of two normal distributions of one width, in log time, against a single one by the Bayesian
    information criterion. The two lie so far apart that the best split of the sorted values is the mixture's
    most likely one, so no iteration is needed. Groups must lie well apart: normal components that overlap
    are as likely a skewed tail (Ashman, Bird and Zepf, AJ 108, 1994, ask for 2 standard deviations).
    """
    count = len(seconds)
    if count < FEWEST:
        return None
    logs = np.sort(np.log(np.asarray(seconds, dtype=float)))
    fewest = max(2, math.ceil(_SMALLEST_SHARE * count))
    sizes = np.arange(fewest, count - fewest + 1)
    sums, squares = np.cumsum(logs), np.cumsum(logs * logs)
    left = squares[sizes - 1] - sums[sizes - 1] ** 2 / sizes
    right = squares[-1] - squares[sizes - 1] - (sums[-1] - sums[sizes - 1]) ** 2 / (count - sizes)
    cut = int(sizes[np.argmin(left + right)])
    fast, slow = logs[:cut], logs[cut:]
    within = max(math.sqrt(max(float((left + right).min()), 0.0) / count), _SHARPEST)
    overall = max(float(logs.std()), _SHARPEST)
    share = cut / count
    entropy = -share * math.log(share) - (1.0 - share) * math.log1p(-share)
    # Twice the gain of log likelihood, less two more parameters.
    better = 2.0 * count * (math.log(overall / within) - entropy) - 2.0 * math.log(count)
    apart = float(np.median(slow) - np.median(fast))
    between = np.abs(logs - (np.median(slow) + np.median(fast)) / 2.0) < apart / 6.0
    clear = apart >= max(_APART * within, math.log(_NEAREST)) and between.mean() <= _MOST_BETWEEN
    if better < _BETTER or not clear:
        return None
    return Bimodal(math.exp(float(np.median(fast))), math.exp(float(np.median(slow))), 1.0 - share)
