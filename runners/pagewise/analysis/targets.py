"""Whether ratios of metrics to those of another program meet their targets. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pagewise.analysis.comparison import Direction, Judged, judge
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import ratio

# A target is not missed by noise; but noise beyond this share does not make it met.
_MOST_NOISE = 0.05
Answer = Literal["met", "not met", "inconclusive"]


@dataclass(frozen=True)
class Goal:
    """Ratios paired by round, as `quotients` makes them, their noise floor, and the range of their median."""

    ratios: Sequence[Sequence[float]]
    floor: float | None
    least: float
    most: float
    seed: int

    @classmethod
    def of(
        cls,
        ratios: Sequence[Sequence[float]],
        floor: float | None,
        limits: tuple[float | None, float | None],
        seed: int,
    ) -> Goal:
        """The goal of a range, whose ends are None if there is no limit."""
        least, most = limits
        return cls(ratios, floor, least or 0.0, math.inf if most is None else most, seed)

    @property
    def ratio(self) -> Ratio | None:
        """What was measured."""
        return ratio(self.ratios, self.seed)


@dataclass(frozen=True)
class _Claim:
    """A ratio is lower or higher than `end`: `outside` the range, or inside up to the noise."""

    end: float
    direction: Direction
    outside: bool


def answers(goals: Sequence[Goal]) -> list[Answer]:
    """Which targets are met; all are judged together.

    `not met`: the ratio lies outside the range by more than the noise floor. `met`: its median lies inside,
    and it lies outside by no more than the noise, of which at most 5 % count.
    """
    claims = [(place, claim) for place, goal in enumerate(goals) for claim in _claims(goal)]
    verdicts = judge([_ratio_to_end(goals[place], claim) for place, claim in claims])
    holds: list[dict[_Claim, bool]] = [{} for _ in goals]
    for (place, claim), verdict in zip(claims, verdicts, strict=True):
        holds[place][claim] = verdict.direction == claim.direction
    return [_answer(claims_of_goal) for claims_of_goal in holds]


def _claims(goal: Goal) -> list[_Claim]:
    """For each end of the range the claim that the median suggests."""
    if goal.ratio is None:
        return []
    median, slack = goal.ratio.median, 1.0 + min(goal.floor or 0.0, _MOST_NOISE)
    below, above = median < goal.least, median > goal.most
    low = _Claim(goal.least if below else goal.least / slack, "lower" if below else "higher", below)
    high = _Claim(goal.most if above else goal.most * slack, "higher" if above else "lower", above)
    return [claim for claim in (low, high) if 0.0 < claim.end < math.inf]


def _ratio_to_end(goal: Goal, claim: _Claim) -> Judged:
    floor = goal.floor if claim.outside or goal.floor is None else 0.0
    scaled = [[value / claim.end for value in values] for values in goal.ratios]
    return Judged(ratio=ratio(scaled, goal.seed), floor=floor)


def _answer(holds: Mapping[_Claim, bool]) -> Answer:
    if any(claim.outside and is_true for claim, is_true in holds.items()):
        return "not met"
    within = holds and all(is_true and not claim.outside for claim, is_true in holds.items())
    return "met" if within else "inconclusive"
