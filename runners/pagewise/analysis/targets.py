"""Whether speed-ups meet their targets, and how times in two modes are paired. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import ratio
from pagewise.analysis.verdict import Comparison, judge

# Two groups of figures are two modes of the machine when a gap of this ratio parts them.
_GAP = 1.25
_FEWEST_IN_A_MODE = 2
_MOST_NOISE = 0.05
Answer = Literal["met", "not met", "inconclusive"]


@dataclass(frozen=True)
class Aim:
    """Speed-ups paired by round, their noise floor, and the range that their median is to lie in."""

    speedups: tuple[float, ...]
    floor: float | None
    least: float
    most: float
    seed: int

    @property
    def speedup(self) -> Ratio | None:
        """What was measured."""
        return ratio(self.speedups, self.seed)


def answers(aims: Sequence[Aim]) -> list[Answer]:
    """Which targets are met; all are judged together.

    `not met`: the speed-up lies outside the range by more than the noise floor. `met`: its median lies
    inside, and it lies outside by no more than the noise, of which at most 5 % count.
    """
    claims = [(aim, claim) for aim in aims for claim in _claims(aim)]
    verdicts = judge([_comparison(aim, claim) for aim, claim in claims])
    held: dict[int, list[tuple[_Claim, bool]]] = {}
    for (aim, claim), verdict in zip(claims, verdicts, strict=True):
        held.setdefault(id(aim), []).append((claim, verdict.change == claim.change))
    return [_answer(held.get(id(aim), [])) for aim in aims]


@dataclass(frozen=True)
class _Claim:
    """That a speed-up is `change` than an end of its range: `outside`, or within it up to the noise."""

    end: float
    change: Literal["lower", "higher"]
    outside: bool


def _claims(aim: Aim) -> list[_Claim]:
    """For each end of the range the claim that the median suggests."""
    if aim.speedup is None:
        return []
    slack = 1.0 + min(aim.floor or 0.0, _MOST_NOISE)
    middle = aim.speedup.median
    low = (
        _Claim(aim.least, "lower", True) if middle < aim.least else _Claim(aim.least / slack, "higher", False)
    )
    high = _Claim(aim.most, "higher", True) if middle > aim.most else _Claim(aim.most * slack, "lower", False)
    return [claim for claim in (low, high) if math.isfinite(claim.end)]


def _comparison(aim: Aim, claim: _Claim) -> Comparison:
    floor = aim.floor if claim.outside or aim.floor is None else 0.0
    return Comparison(ratio([one / claim.end for one in aim.speedups], aim.seed), floor)


def _answer(held: Sequence[tuple[_Claim, bool]]) -> Answer:
    if any(claim.outside and holds for claim, holds in held):
        return "not met"
    within = held and all(holds and not claim.outside for claim, holds in held)
    return "met" if within else "inconclusive"


def split(values: Iterable[float]) -> float | None:
    """The figure that parts two modes, None when there is one: the widest gap, if it is wide enough."""
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
