"""The one judge: which of the differences that were measured together are real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pagewise.analysis.noise import Drift
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import CONFIDENCE

_Key = TypeVar("_Key")
Outcome = Literal["faster", "slower", "inconclusive"]
Reason = Literal["too few rounds", "interval", "floor", "correction", "bimodal", "drift"]


@dataclass(frozen=True)
class Comparison:
    """A ratio to judge, and the noise floor that it must exceed (see Ratio.exceeds).

    `ratio` or `floor` is None if there are too few rounds for it. `bimodal`: the times of one side are
    bimodal. `drift` is the drift of the ratio.
    """

    ratio: Ratio | None
    floor: float | None
    bimodal: bool = False
    drift: Drift | None = None


@dataclass(frozen=True)
class Verdict:
    """What a comparison shows: `faster` is a ratio below 1, `slower` one above.

    `reason` is why it is inconclusive, else None. `p` is corrected for all comparisons that were judged
    together.
    """

    outcome: Outcome
    reason: Reason | None
    ratio: Ratio | None
    floor: float | None
    p: float | None

    @property
    def change(self) -> Literal["lower", "higher", "inconclusive"]:
        """The outcome for other quantities than times: counts and rates."""
        if self.outcome == "inconclusive":
            return "inconclusive"
        return "lower" if self.outcome == "faster" else "higher"


def judge(comparisons: Sequence[Comparison]) -> list[Verdict]:
    """The verdicts of all comparisons that are reported together.

    A difference is real only if the interval excludes 1 (a difference: 0), the median lies outside the noise
    floor, and p is at most 0.05 after the correction for all of them (docs/explanation/statistics.md).
    """
    ps = [item.ratio.p for item in comparisons if item.ratio is not None and item.ratio.p is not None]
    corrected_ps = dict(zip(ps, corrected(ps), strict=True))
    return [_verdict(item, corrected_ps) for item in comparisons]


def judge_all(comparisons: Mapping[_Key, Comparison]) -> dict[_Key, Verdict]:
    """The verdicts of comparisons that are reported together, by the same keys."""
    return dict(zip(comparisons, judge(list(comparisons.values())), strict=True))


def corrected(ps: Sequence[float]) -> list[float]:
    """The p of each comparison among all of them, after Benjamini and Hochberg (J. R. Stat. Soc. B 57, 1995).

    Of the differences with p of at most 0.05, at most 5 % are false on average. If nothing differs, the
    chance of any is 5 %. To limit that chance also where much differs (Holm, Scand. J. Stat. 6, 1979) would
    lose up to half of the true differences (docs/explanation/statistics.md).
    """
    if not ps:
        return []
    # Importing scipy.stats takes a second, which commands that judge nothing need not wait.
    from scipy.stats import false_discovery_control

    return [float(p) for p in false_discovery_control(ps, method="bh")]


def _verdict(comparison: Comparison, corrected_ps: Mapping[float, float]) -> Verdict:
    ratio = comparison.ratio
    p = None if ratio is None or ratio.p is None else corrected_ps[ratio.p]
    reason = _reason(comparison, p)
    outcome: Outcome = "inconclusive"
    if ratio is not None and reason is None:
        outcome = "faster" if ratio.median < ratio.unchanged else "slower"
    return Verdict(outcome, reason, ratio, comparison.floor, p)


def _reason(comparison: Comparison, p: float | None) -> Reason | None:
    """Why a comparison is inconclusive, None if it is not."""
    ratio, floor, drift = comparison.ratio, comparison.floor, comparison.drift
    if ratio is None or floor is None or ratio.low is None:
        return "too few rounds"
    if not ratio.excludes_equality or not ratio.exceeds(floor):
        # The cause of the noise is more informative than where it showed.
        if comparison.bimodal:
            return "bimodal"
        return "drift" if drift is not None else "floor" if ratio.excludes_equality else "interval"
    if p is not None and p > 1.0 - CONFIDENCE:
        return "correction"
    return "drift" if drift is not None and drift.crosses_one else None
