"""Metrics relative to those of another program, and whether they meet targets. Pure functions."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pagewise.analysis.program import MetricRow
from pagewise.analysis.quantities import values_by_round
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.series import RecordsOfCells, by_cell
from pagewise.analysis.statistics import larger_floor, quotients, ratio
from pagewise.analysis.verdict import Comparison, judge_all
from pagewise.core.record import Record
from pagewise.core.result import Result

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

    @property
    def ratio(self) -> Ratio | None:
        """What was measured."""
        return ratio(self.ratios, self.seed)


@dataclass(frozen=True)
class TargetRow:
    """A metric of a program, relative to that of the program `reference` under the same policy.

    least, most: the target, None: no limit. theirs: that metric, None without a valid value. goal: None
    unless both have positive values.
    """

    ours: MetricRow
    reference: str
    least: float | None
    most: float | None
    theirs: MetricRow | None
    goal: Goal | None
    answer: Answer = "inconclusive"


@dataclass(frozen=True)
class _Claim:
    """A ratio is lower or higher (`change`) than `end`: `outside` the range, or inside up to the noise."""

    end: float
    change: Literal["lower", "higher"]
    outside: bool


def target_rows(result: Result, metrics: Sequence[MetricRow]) -> list[TargetRow]:
    """Each metric with a target, of each ranked configuration; all are judged together."""
    programs = result.manifest.programs.items()
    relations = {key: described["relative_to"] for key, described in programs if "relative_to" in described}
    if not relations:
        return []
    records = by_cell(result.records)
    by_place = {_place(row): row for row in metrics}
    rows = []
    for (key, *others), row in by_place.items():
        relation = relations.get(key)
        if relation is not None and row.metric.field in relation["targets"]:
            theirs = by_place.get((relation["program"], *others))
            least, most = relation["targets"][row.metric.field]
            seed = zlib.crc32(f"{result.manifest.seed}/{key}/{others}".encode())
            goal = None if theirs is None else _goal(row, theirs, records, (least, most), seed)
            rows.append(TargetRow(row, relation["program"], least, most, theirs, goal))
    goals = {place: row.goal for place, row in enumerate(rows) if row.goal is not None}
    found = dict(zip(goals, answers(list(goals.values())), strict=True))
    return [replace(row, answer=found.get(place, row.answer)) for place, row in enumerate(rows)]


def _place(row: MetricRow) -> tuple[str, ...]:
    """What identifies a metric: program of the session, policy, placement, options, and its field."""
    cell = row.cell
    key, _, policy = cell.measured.module.rpartition("/")
    return key, policy, cell.placement or "", cell.options or "", row.metric.field


def _goal(
    ours: MetricRow,
    theirs: MetricRow,
    records: RecordsOfCells,
    ends: tuple[float | None, float | None],
    seed: int,
) -> Goal | None:
    """What is judged, None if a value is not above zero."""

    def value(record: Record) -> float | None:
        return record.figures.get(ours.metric.field)

    runs, others = (values_by_round(row.kernel.name, row.cell, records, value) for row in (ours, theirs))
    if any(number <= 0.0 for run in (*runs, *others) for number in run.values()):
        return None
    least, most = ends
    floor = larger_floor([ours.floor, theirs.floor])
    return Goal(quotients(runs, others), floor, least or 0.0, math.inf if most is None else most, seed)


def answers(goals: Sequence[Goal]) -> list[Answer]:
    """Which targets are met; all are judged together.

    `not met`: the ratio lies outside the range by more than the noise floor. `met`: its median lies inside,
    and it lies outside by no more than the noise, of which at most 5 % count.
    """
    claims = {(place, claim): goal for place, goal in enumerate(goals) for claim in _claims(goal)}
    verdicts = judge_all({key: _comparison(goal, key[1]) for key, goal in claims.items()})
    holds: list[dict[_Claim, bool]] = [{} for _ in goals]
    for (place, claim), verdict in verdicts.items():
        holds[place][claim] = verdict.change == claim.change
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


def _comparison(goal: Goal, claim: _Claim) -> Comparison:
    floor = goal.floor if claim.outside or goal.floor is None else 0.0
    scaled = [[value / claim.end for value in values] for values in goal.ratios]
    return Comparison(ratio(scaled, goal.seed), floor)


def _answer(holds: Mapping[_Claim, bool]) -> Answer:
    if any(claim.outside and is_true for claim, is_true in holds.items()):
        return "not met"
    within = holds and all(is_true and not claim.outside for claim, is_true in holds.items())
    return "met" if within else "inconclusive"
