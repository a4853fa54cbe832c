"""Whether speed-ups meet their targets, and how times in two modes are paired. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import ratio
from pagewise.analysis.verdict import Comparison, judge_all

# A gap of this ratio separates two modes of the machine.
_GAP = 1.25
_FEWEST_IN_A_MODE = 2
_MOST_NOISE = 0.05
TargetAnswer = Literal["met", "not met", "inconclusive"]


@dataclass(frozen=True)
class Aim:
    """Speed-ups paired by round, their noise floor, and the target range of their median."""

    speedups: tuple[float, ...]
    floor: float | None
    least: float
    most: float
    seed: int

    @property
    def speedup(self) -> Ratio | None:
        """What was measured."""
        return ratio(self.speedups, self.seed)


@dataclass(frozen=True)
class _Claim:
    """A speed-up is lower or higher (`change`) than `end`: `outside` the range, or inside up to the noise."""

    end: float
    change: Literal["lower", "higher"]
    outside: bool


def answers(aims: Sequence[Aim]) -> list[TargetAnswer]:
    """Which targets are met; all are judged together.

    `not met`: the speed-up lies outside the range by more than the noise floor. `met`: its median lies
    inside, and it lies outside by no more than the noise, of which at most 5 % count.
    """
    claims = {(place, claim): aim for place, aim in enumerate(aims) for claim in _claims(aim)}
    verdicts = judge_all({key: _comparison(aim, key[1]) for key, aim in claims.items()})
    holds: list[dict[_Claim, bool]] = [{} for _ in aims]
    for (place, claim), verdict in verdicts.items():
        holds[place][claim] = verdict.change == claim.change
    return [_answer(claims_of_aim) for claims_of_aim in holds]


def _claims(aim: Aim) -> list[_Claim]:
    """For each end of the range the claim that the median suggests."""
    if aim.speedup is None:
        return []
    median, slack = aim.speedup.median, 1.0 + min(aim.floor or 0.0, _MOST_NOISE)
    below, above = median < aim.least, median > aim.most
    low = _Claim(aim.least if below else aim.least / slack, "lower" if below else "higher", below)
    high = _Claim(aim.most if above else aim.most * slack, "higher" if above else "lower", above)
    return [claim for claim in (low, high) if math.isfinite(claim.end)]


def _comparison(aim: Aim, claim: _Claim) -> Comparison:
    floor = aim.floor if claim.outside or aim.floor is None else 0.0
    return Comparison(ratio([speedup / claim.end for speedup in aim.speedups], aim.seed), floor)


def _answer(holds: Mapping[_Claim, bool]) -> TargetAnswer:
    if any(claim.outside and is_true for claim, is_true in holds.items()):
        return "not met"
    within = holds and all(is_true and not claim.outside for claim, is_true in holds.items())
    return "met" if within else "inconclusive"


def split(values: Iterable[float]) -> float | None:
    """The value that separates two modes, None if there is one mode: in the widest gap, if wide enough."""
    ordered = sorted(values)
    gaps = [
        (high / low, math.sqrt(low * high))
        for number, (low, high) in enumerate(pairwise(ordered), start=1)
        if _FEWEST_IN_A_MODE <= number <= len(ordered) - _FEWEST_IN_A_MODE
    ]
    widest = max(gaps, default=(1.0, 0.0))
    return widest[1] if widest[0] >= _GAP else None


def same_mode(first: Mapping[int, float], second: Mapping[int, float], border: float | None) -> list[int]:
    """The rounds in which both ran in the same mode; all common rounds without a `border`."""
    common = sorted(first.keys() & second.keys())
    return [n for n in common if border is None or (first[n] > border) == (second[n] > border)]
