"""The one judge: which of the differences that were measured together are real."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.stats import false_discovery_control

from pagewise.analysis.drift import Drift
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import CONFIDENCE

Outcome = Literal["faster", "slower", "inconclusive"]
Reason = Literal["too few rounds", "interval", "floor", "correction", "bimodal", "drift"]


@dataclass(frozen=True)
class Comparison:
    """A ratio to judge, and the noise floor that it must exceed, as a share.

    `ratio` or `floor` is None where there are too few rounds for it. `bimodal`: the times of either side are.
    `drift` is that of the ratio.
    """

    ratio: Ratio | None
    floor: float | None
    bimodal: bool = False
    drift: Drift | None = None


@dataclass(frozen=True)
class Verdict:
    """What a comparison shows: `faster` is a ratio below 1, `slower` one above.

    `reason` says why it is inconclusive, None where it is not. `p` is corrected for all comparisons that were
    judged together.
    """

    outcome: Outcome
    reason: Reason | None
    ratio: Ratio | None
    floor: float | None
    p: float | None

    @property
    def change(self) -> Literal["lower", "higher", "inconclusive"]:
        """The outcome of what is no time: counts and rates."""
        if self.outcome == "inconclusive":
            return "inconclusive"
        return "lower" if self.outcome == "faster" else "higher"


def judge(comparisons: Sequence[Comparison]) -> list[Verdict]:
    """The verdicts of all comparisons that are reported together.

    A difference is real only if the interval excludes 1, the median lies outside the noise floor, and p is at
    most 0.05 after the correction for all of them (docs/statistics.md).
    """
    ps = [one.ratio.p for one in comparisons if one.ratio is not None and one.ratio.p is not None]
    of_all = dict(zip(ps, corrected(ps), strict=True))
    return [_judged(one, of_all) for one in comparisons]


def corrected(ps: Sequence[float]) -> list[float]:
    """The p of each comparison among all of them, after Benjamini and Hochberg (J. R. Stat. Soc. B 57, 1995).

    Of the differences with p of at most 0.05, at most 5 % are false on average. Where nothing differs, the
    chance of any is 5 %. To hold that chance also where much differs (Holm, Scand. J. Stat. 6, 1979) costs up
    to half of the true differences (docs/statistics.md).
    """
    return [float(p) for p in false_discovery_control(ps, method="bh")] if ps else []


def _judged(compared: Comparison, of_all: dict[float, float]) -> Verdict:
    ratio = compared.ratio
    p = None if ratio is None or ratio.p is None else of_all[ratio.p]
    reason = _reason(compared, p)
    outcome: Outcome = "inconclusive"
    if ratio is not None and reason is None:
        outcome = "faster" if ratio.median < 1.0 else "slower"
    return Verdict(outcome, reason, ratio, compared.floor, p)


def _reason(compared: Comparison, p: float | None) -> Reason | None:
    """Why a comparison is inconclusive, None where it is not."""
    ratio, floor, drift = compared.ratio, compared.floor, compared.drift
    if ratio is None or floor is None or ratio.low is None:
        return "too few rounds"
    within_noise: Reason | None = None
    if not ratio.excludes_one:
        within_noise = "interval"
    elif abs(math.log(ratio.median)) <= math.log1p(floor):
        within_noise = "floor"
    if within_noise is not None:
        # What made the noise says more than where it showed.
        return "bimodal" if compared.bimodal else within_noise if drift is None else "drift"
    if p is not None and p > 1.0 - CONFIDENCE:
        return "correction"
    return "drift" if drift is not None and drift.crosses_one else None
