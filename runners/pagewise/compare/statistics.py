"""Numbers to numbers: paired ratios, their estimate and interval, the noise floor and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.95
RESAMPLES = 2000
FEWEST_ROUNDS = 3
Verdict = Literal["faster", "slower", "cannot tell"]


@dataclass(frozen=True)
class Ratio:
    """Ratios of times, paired by round: `median` of them, and the confidence interval `low` to `high`.

    Without at least FEWEST_ROUNDS pairs there is no interval, and both ends are None. Below 1 is faster.
    """

    pairs: int
    median: float
    low: float | None
    high: float | None

    @property
    def excludes_one(self) -> bool:
        """Whether the interval lies wholly on one side of 1."""
        return self.low is not None and self.high is not None and (self.high < 1.0 or self.low > 1.0)


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


def ratio(ratios: Sequence[float], seed: int) -> Ratio | None:
    """Sums up paired ratios; None without any.

    The interval is that of the trimmed mean of the log ratios: Student's t with the standard error taken from
    RESAMPLES bootstrap samples, times sqrt(n / (n - 1)) because a bootstrap sample of n varies too little by
    that factor (Hesterberg, What Teachers Should Know About the Bootstrap, 2015). Degrees of
    freedom are the values that are left after trimming, less one (Yuen 1974). Plain percentiles would be too
    narrow at n = 7. The interval always holds the median.
    """
    if not ratios:
        return None
    logs = np.log(np.asarray(ratios, dtype=float))
    count, median = len(logs), float(np.median(logs))
    if count < FEWEST_ROUNDS:
        return Ratio(count, math.exp(median), None, None)
    drop = trim_count(count)
    # A generator of its own for each call: the same numbers give the same interval, in whatever order they
    # are asked.
    draws = np.random.default_rng(seed).integers(0, count, size=(RESAMPLES, count))
    resampled = np.sort(logs[draws], axis=1)[:, drop : count - drop].mean(axis=1)
    error = float(np.std(resampled, ddof=1)) * math.sqrt(count / (count - 1))
    half = float(stdtrit(count - 2 * drop - 1, 0.5 + CONFIDENCE / 2)) * error
    centre = float(np.sort(logs)[drop : count - drop].mean())
    return Ratio(
        count, math.exp(median), math.exp(min(centre - half, median)), math.exp(max(centre + half, median))
    )


def noise_floor(repeated: Ratio | None) -> float | None:
    """How far from 1 a ratio may lie without meaning anything, as a share (0.02: from 1/1.02 to 1.02).

    `repeated` is the ratio of a configuration to itself (A/A); the floor is the end of its interval that lies
    farther from 1. None when A/A has no interval.
    """
    if repeated is None or repeated.low is None or repeated.high is None:
        return None
    return math.exp(max(abs(math.log(repeated.low)), abs(math.log(repeated.high)))) - 1.0


def verdict(measured: Ratio | None, floor: float | None) -> Verdict:
    """`faster` or `slower` only if the interval excludes 1 and the median lies outside the noise floor."""
    if measured is None or floor is None or not measured.excludes_one:
        return "cannot tell"
    if abs(math.log(measured.median)) <= math.log1p(floor):
        return "cannot tell"
    return "faster" if measured.median < 1.0 else "slower"
