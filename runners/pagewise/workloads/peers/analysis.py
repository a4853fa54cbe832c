"""From samples to rows: medians, speedup with interval, noise floor, and whether the target is met. Pure."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Literal

from pagewise.analysis.statistics import Ratio, noise_floor, ratio
from pagewise.workloads.peers.plan import Match, Target
from pagewise.workloads.peers.sample import Candidate, Sample

# Carried on from the trial round, of each side (of ours: of each compiler): so many, none this far behind the
# best.
CARRIED, FAR_BEHIND = 4, 1.25
# Two groups of figures are two modes of the machine when a gap of this ratio parts them.
_GAP = 1.25
_FEWEST_IN_A_MODE = 2
_MOST_NOISE = 0.05
Answer = Literal["met", "not met", "inconclusive"]


@dataclass(frozen=True)
class Best:
    """The candidate with the best median of its figures, which are by round."""

    candidate: Candidate
    median: float
    values: Mapping[int, float]


@dataclass(frozen=True)
class Row:
    """A line of the table: ours over theirs (`speedup`, above 1: ours is better) against a target.

    scope: `all`, or the compiler whose best it is. `missing` says why there is no speedup. `note` tells of
    modes and of candidates that were left out.
    """

    match: Match
    scope: str
    target: Target
    ours: Best | None
    theirs: Best | None
    speedup: Ratio | None = None
    floor: float | None = None
    answer: Answer = "inconclusive"
    missing: str | None = None
    notes: tuple[str, ...] = ()


def carried_on(samples: Sequence[Sample], match: Match) -> set[Candidate]:
    """The candidates that the trial round showed to be the best of their side, or not far behind."""
    groups: dict[tuple[str, str | None], list[Sample]] = {}
    for sample in samples:
        if sample.value is not None:
            side = sample.candidate.side
            key = (side, sample.candidate.compiler if side == "ours" else None)
            groups.setdefault(key, []).append(sample)
    kept = set()
    for group in groups.values():
        ranked = sorted(group, key=lambda s: s.value or 0.0, reverse=match.better == "higher")
        for sample in ranked[:CARRIED]:
            if _speedup(ranked[0].value or 1.0, sample.value or 1.0, match) <= FAR_BEHIND:
                kept.add(sample.candidate)
    return kept


def best(samples: Sequence[Sample], match: Match) -> Best | None:
    """The candidate with the best median over the rounds that count.

    One wrong result or crash spoils a candidate, wrong pages spoil the run.
    """
    found: dict[Candidate, dict[int, float]] = {}
    spoilt = {s.candidate for s in samples if s.reason and not s.reason.startswith("wrong pages")}
    for sample in samples:
        if sample.series == "compare" and sample.value is not None and sample.candidate not in spoilt:
            found.setdefault(sample.candidate, {})[sample.round] = sample.value
    ranked = [Best(candidate, median(values.values()), values) for candidate, values in found.items()]
    if not ranked:
        return None
    return (max if match.better == "higher" else min)(ranked, key=lambda one: one.median)


def rows(match: Match, samples: Sequence[Sample], missing: str | None, seed: int) -> list[Row]:
    """The lines of one match: one for each target and compiler it is meant for."""
    theirs = best([s for s in samples if s.candidate.side == "theirs"], match)
    ours = [s for s in samples if s.candidate.side == "ours"]
    floor = _floor(match, samples, seed)
    found = []
    for target in match.targets:
        if target.scope == "all":
            scopes: list[tuple[str, list[Sample]]] = [("all", ours)]
        else:
            named = {s.candidate.compiler for s in ours if s.candidate.compiler}
            names: list[str | None] = [*sorted(named)] or [match.compiler]
            scopes = [(name or "each", [s for s in ours if s.candidate.compiler == name]) for name in names]
        for scope, those in scopes:
            notes = (*((match.remark,) if match.remark else ()), *_left_out(samples))
            row = Row(match, scope, target, best(those, match), theirs, floor=floor, notes=notes)
            found.append(_compared(row, missing, seed))
    return found


def answer(speedup: Ratio | None, floor: float | None, target: Target) -> Answer:
    """`met` when the median reaches the target and no end of its interval misses it by more than the noise.

    `not met` when the whole interval misses it, and the median by more than the noise floor. Else `cannot
    tell`: so it is where the noise is larger than what a target may hang on.
    """
    if speedup is None or speedup.low is None or speedup.high is None or floor is None:
        return "inconclusive"
    noise, slack = 1 + floor, 1 + min(floor, _MOST_NOISE)
    inside = target.least <= speedup.median <= target.most
    if inside and speedup.low >= target.least / slack and speedup.high <= target.most * slack:
        return "met"
    below = speedup.high < target.least and speedup.median < target.least / noise
    above = speedup.low > target.most and speedup.median > target.most * noise
    return "not met" if below or above else "inconclusive"


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


def _compared(row: Row, missing: str | None, seed: int) -> Row:
    """The row with its speedup and answer, from the rounds that both sides have."""
    match, ours, theirs = row.match, row.ours, row.theirs
    if ours is None or theirs is None:
        sides = (("ours has no figure", ours), ("theirs has no figure", theirs))
        return replace(row, missing=missing or " and ".join(text for text, side in sides if side is None))
    shared = sorted(ours.values.keys() & theirs.values.keys())
    notes = row.notes
    border = split([*ours.values.values(), *theirs.values.values()]) if match.threads > 1 else None
    if border is not None:
        same = [n for n in shared if (ours.values[n] > border) == (theirs.values[n] > border)]
        notes = (
            *notes,
            f"two modes of the machine, parted at {border:.3g}: compared are the {len(same)} of "
            f"{len(shared)} rounds that had both sides in the same one",
        )
        shared = same
    pairs = [_speedup(ours.values[number], theirs.values[number], match) for number in shared]
    measured = ratio(pairs, _seed(seed, match, row.scope))
    return replace(row, speedup=measured, answer=answer(measured, row.floor, row.target), notes=notes)


def _floor(match: Match, samples: Sequence[Sample], seed: int) -> float | None:
    """From the runs of ours that were made twice a round; with several threads those in the same mode."""
    again = {s.round: s for s in samples if s.series == "aa"}
    first = {
        s.round: s
        for s in samples
        if s.series == "compare" and s.round in again and s.candidate == again[s.round].candidate
    }
    values = [(again[number].value, first[number].value) for number in sorted(first)]
    pairs = [(one, two) for one, two in values if one is not None and two is not None]
    border = split(value for pair in pairs for value in pair) if match.threads > 1 else None
    if border is not None:
        pairs = [(one, two) for one, two in pairs if (one > border) == (two > border)]
    ratios = [_speedup(one, two, match) for one, two in pairs]
    return noise_floor(ratio(ratios, _seed(seed, match, "aa")))


def _left_out(samples: Sequence[Sample]) -> tuple[str, ...]:
    reasons: dict[str, list[str]] = {}
    for sample in samples:
        if sample.value is None and sample.reason:
            labels = reasons.setdefault(sample.reason, [])
            if sample.candidate.label not in labels:
                labels.append(sample.candidate.label)
    return tuple(f"left out: {', '.join(labels)}: {reason}" for reason, labels in reasons.items())


def _speedup(ours: float, theirs: float, match: Match) -> float:
    return ours / theirs if match.better == "higher" else theirs / ours


def _seed(seed: int, match: Match, scope: str) -> int:
    return zlib.crc32(f"{seed}/{match.name}/{scope}".encode())
