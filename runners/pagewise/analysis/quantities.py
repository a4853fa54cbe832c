"""Quantities other than time: energy, metrics of programs and their targets, counts. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Literal

from pagewise.analysis.comparison import (
    ENERGY,
    TIME,
    Comparison,
    Direction,
    Judged,
    Measured,
    Quantity,
    compare,
    judge,
    over_baseline,
)
from pagewise.analysis.series import by_cell, run_seconds
from pagewise.analysis.statistics import largest, quotients, ratio
from pagewise.core.benchmark import Benchmark
from pagewise.core.plan import Cell
from pagewise.core.record import Record
from pagewise.core.record_parts import POWER
from pagewise.core.result import Result

ValueOfRecord = Callable[[Record], float | None]


def joules(record: Record) -> float | None:
    """The energy of a pass: the run's mean power times the seconds of a pass.

    A kernel chooses its passes by the clock, so that the energy of whole runs shows their power only.
    """
    power = record.figures.get(POWER)
    return power * run_seconds(record) if power else None


def over_all(result: Result, ranked: Mapping[str, Sequence[Cell]]) -> list[Comparison]:
    """Energy where it was measured, and the metrics and targets of programs, of the ranked cells by kernel.

    All energies are judged together, all metrics, and all targets.
    """
    cells, seed = by_cell(result.records), result.manifest.seed
    measured = [
        (Measured(subject.benchmark, cells), ranked[subject.benchmark.name]) for subject in result.subjects
    ]
    energies: list[Comparison] = []
    metrics: list[Comparison] = []
    for of_kernel, ranked_cells in measured:
        for _, several in groupby(ranked_cells, lambda cell: cell.compiler):
            energies += over_baseline(of_kernel, "energy", ENERGY, several, value=joules, seed=seed)
        for metric in of_kernel.benchmark.judged_metrics:
            quantity = Quantity(metric.field, metric.label, metric.unit, metric.better)
            value = partial(_figure, metric.field)
            metrics += over_baseline(of_kernel, "metric", quantity, ranked_cells, value=value, seed=seed)
    metrics = judge(metrics)
    return [*judge(energies), *metrics, *_targets(result, measured, metrics)]


def _figure(name: str, record: Record) -> float | None:
    return record.figures.get(name)


def _targets(
    result: Result, measured: Iterable[tuple[Measured, object]], metrics: Sequence[Comparison]
) -> list[Comparison]:
    """Each metric that has a target relative to that of another program under the same policy."""
    programs = result.manifest.programs.items()
    relations = {key: described["relative_to"] for key, described in programs if "relative_to" in described}
    of_kernel = {each.benchmark.name: each for each, _ in measured}
    by_place = {_place(row): row for row in metrics}
    rows, goals, seed = [], [], result.manifest.seed
    for (key, *others), own in by_place.items():
        relation = relations.get(key)
        if relation is None or own.quantity.name not in relation["targets"]:
            continue
        least, most = relation["targets"][own.quantity.name]
        row = Comparison(
            kind="target",
            quantity=own.quantity,
            benchmark=own.benchmark,
            cell=own.cell,
            reference_kernel=relation["program"],
            value=own.value,
            least=least,
            most=most,
        )
        reference, ratios = by_place.get((relation["program"], *others)), [list[float]()]
        if reference is not None:
            value, floor = partial(_figure, own.quantity.name), largest([own.floor, reference.floor])
            runs, other = (of_kernel[each.benchmark.name].runs(each.cell, value) for each in (own, reference))
            if all(number > 0.0 for run in (*runs, *other) for number in run.values()):
                ratios = quotients(runs, other)
                row = replace(compare(row, runs, other, seed), value=own.value, floor=floor)
            row = replace(row, reference=reference.cell, reference_value=reference.value)
        rows.append(row)
        goals.append(Goal(ratios, row.floor, least or 0.0, math.inf if most is None else most, seed))
    return [replace(row, answer=answer) for row, answer in zip(rows, answers(goals), strict=True)]


def _place(row: Comparison) -> tuple[str, ...]:
    """What identifies a metric: program of the session, policy, placement, options, and its field."""
    key, _, policy = row.cell.measured.module.rpartition("/")
    return key, policy, row.cell.placement or "", row.cell.options or "", row.quantity.name


def page_quantities(kernel: Benchmark, valid: Iterable[Record]) -> Iterator[tuple[Quantity, ValueOfRecord]]:
    """What is compared by pages: time, bandwidth, TLB misses where they were counted, and page faults.

    These are the quantities of Calder, Feldman et al., PEARC 2023, figures 1 and 2.
    """
    bandwidth = next((item for item in kernel.metrics if item.unit == "GB/s" and item.convention), None)
    yield TIME, run_seconds
    if bandwidth is not None:
        estimated = ", estimated" if bandwidth.estimated else ""
        name = f"bandwidth, {bandwidth.convention}{estimated}"
        yield Quantity(name, name, "GB/s", "higher"), partial(_figure, bandwidth.field)
    for name in dict.fromkeys(name for record in valid for name in record.counts if "TLB" in name.upper()):
        yield Quantity(name, name, "count per pass"), partial(_count, name)
    yield Quantity("page faults", "page faults", "count per run"), _faults


def _count(name: str, record: Record) -> float | None:
    # Over all of the computing, whose passes a kernel chooses by the clock: the count of one pass.
    count = record.counts.get(name)
    return None if count is None else count / (len(record.repetitions) * record.passes)


def _faults(record: Record) -> float | None:
    return None if record.page_faults is None else record.page_faults.total


# A target is not missed by noise; but noise beyond this share does not make it met.
_MOST_NOISE = 0.05
TargetAnswer = Literal["met", "not met", "inconclusive"]


@dataclass(frozen=True)
class Goal:
    """Ratios paired by round, as `quotients` makes them, their noise floor, and the range of their median."""

    ratios: Sequence[Sequence[float]]
    floor: float | None
    least: float
    most: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class _Claim(Judged):
    """The ratio of a goal over an end of its range, `expected` to be lower or higher than 1.

    The end is that of the range, if the median is `outside`, else the farthest one that the noise allows.
    """

    goal: int
    expected: Direction
    outside: bool


def answers(goals: Sequence[Goal]) -> list[TargetAnswer]:
    """Which targets are met; all are judged together.

    `not met`: the ratio lies outside the range by more than the noise floor. `met`: its median lies inside,
    and it lies outside by no more than the noise, of which at most 5 % count.
    """
    claims = judge([claim for number, goal in enumerate(goals) for claim in _claims(number, goal)])
    return [_answer([claim for claim in claims if claim.goal == number]) for number in range(len(goals))]


def _claims(number: int, goal: Goal) -> Iterator[_Claim]:
    """For each end of the range the claim that the median suggests."""
    measured, slack = ratio(goal.ratios, goal.seed), 1.0 + min(goal.floor or 0.0, _MOST_NOISE)
    if measured is None:
        return
    for end, is_least in ((goal.least, True), (goal.most, False)):
        outside = measured.median < end if is_least else measured.median > end
        reached = end if outside else end / slack if is_least else end * slack
        if 0.0 < reached < math.inf:
            scaled = [[value / reached for value in values] for values in goal.ratios]
            yield _Claim(
                ratio=ratio(scaled, goal.seed),
                floor=goal.floor if outside or goal.floor is None else 0.0,
                goal=number,
                expected="lower" if outside == is_least else "higher",
                outside=outside,
            )


def _answer(claims: Sequence[_Claim]) -> TargetAnswer:
    holds = [claim for claim in claims if claim.direction == claim.expected]
    if any(claim.outside for claim in holds):
        return "not met"
    return "met" if holds and len(holds) == len(claims) else "inconclusive"
