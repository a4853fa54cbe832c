"""The row of a configuration: its runs together, or why it is excluded; rows of a kernel, and for SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

from pagewise.analysis.comparison import Comparison, Kind, Reason, Verdict
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.series import Curve, run_seconds, valid_records
from pagewise.analysis.statistics import Bimodal, Drift, bimodal, trimmed_mean
from pagewise.analysis.validity import Code, Excluding, Exclusion, excluding, exclusion
from pagewise.core.benchmark import Benchmark, Sweep
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import Cell, CellKey, Subject
from pagewise.core.record import Record
from pagewise.core.record_parts import PageUse
from pagewise.core.structure import to_data
from pagewise.core.units import count_text

if TYPE_CHECKING:
    from pagewise.core.result import Result


# One such run excludes its configuration; a few runs may have other pages or another placement.
_FATAL = ("failed", "wrong_result")
# How many rounds may be missing: a tenth, and one of fewer than ten.
_MISSING_ROUNDS, _FEW_ROUNDS = 0.1, 10


@dataclass(frozen=True)
class Row:
    """A cell with its measured values: seconds per pass, and `time`, its comparison with the baseline.

    `invalid` is the reason why it is excluded, None if it is ranked; `code` is the same for programs.
    `is_fault`: something is wrong (a result, pages, a crash), not just missing. `note` reports omitted runs.
    `rounds` counts those with a valid run, of the `rounds_made` for it. `outliers` are rounds and
    their ratios, included in all numbers; the baseline's are those of A/A. `drift` is that of the baseline's
    time. `pages` are those of the run farthest from the request. `migrated_runs`, `left_node_runs`: how many
    runs had a thread that changed its CPU, or its NUMA node. `differs` is what differs from the baseline;
    `change` is the comparison with the configuration from which it differs in one thing, None if there is
    none. `memory` is the ratio of a program's peak memory to the baseline's; a row that is `over_budget` is
    never advised. `method`: `turns`, `runs`, or both, with the reason for whole runs in `whole_because`.
    """

    cell: Cell
    runs: int
    seconds: float | None = None
    seconds_trimmed: float | None = None
    first_touch: float | None = None
    wall: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    pages: PageUse | None = None
    time: Comparison | None = None
    change: Comparison | None = None
    outliers: tuple[tuple[int, float], ...] = ()
    bimodal: Bimodal | None = None
    drift: Drift | None = None
    invalid: str | None = None
    is_fault: bool = False
    remedy: str | None = None
    note: str | None = None
    code: Code | None = None
    rounds: int = 0
    rounds_made: int = 0
    differs: tuple[str, ...] = ()
    migrated_runs: int = 0
    left_node_runs: int = 0
    memory: Ratio | None = None
    over_budget: bool = False
    method: str | None = None
    whole_because: str | None = None

    @property
    def share(self) -> float:
        """The share of the rounds made for it in which it has a valid run."""
        return self.rounds / self.rounds_made if self.rounds_made else 0.0

    @property
    def time_ratio(self) -> Ratio | None:
        """Its time over the baseline's; below 1 is faster."""
        return None if self.time is None else self.time.ratio

    @property
    def verdict(self) -> Verdict:
        """The verdict on its time."""
        return (self.time and self.time.verdict) or "inconclusive"

    @property
    def reason(self) -> Reason | None:
        """Why the verdict is inconclusive, None if it is not, and for a baseline."""
        if self.time is not None:
            return self.time.reason
        return None if self.cell.is_baseline or self.invalid else "no baseline"


@dataclass(frozen=True)
class Group:
    """The rows of one kernel and compiler, ranked and not, with their noise floor (a share).

    `repeated` are the baseline's ratios to itself (A/A), one for each repetition in a round.
    """

    compiler: str
    ranked: tuple[Row, ...]
    unranked: tuple[Row, ...]
    repeated: tuple[Ratio, ...]
    floor: float | None

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, the ranked ones first."""
        return (*self.ranked, *self.unranked)

    @property
    def baseline(self) -> Row | None:
        """The row that the others are compared against, None when it is missing or excluded."""
        return next((row for row in self.ranked if row.cell.is_baseline), None)


@dataclass(frozen=True)
class KernelResult:
    """The analysis of one kernel: its rows by compiler, all comparisons, and the curves of its sweeps.

    `judged` counts the comparisons of times of all kernels, for which p is corrected.
    """

    benchmark: Benchmark
    groups: tuple[Group, ...]
    curves: tuple[Curve, ...]
    comparisons: tuple[Comparison, ...] = ()
    judged: int = 0

    @property
    def ranked(self) -> list[Row]:
        """The ranked rows of all compilers."""
        return [row for group in self.groups for row in group.ranked]

    def of(self, kind: Kind) -> list[Comparison]:
        """The comparisons of a kind."""
        return [row for row in self.comparisons if row.kind == kind]

    @property
    def by_sweep(self) -> list[tuple[Sweep, list[Curve]]]:
        """The curves that have points, by what is swept."""
        pairs = [
            (sweep, [curve for curve in self.curves if curve.sweep == sweep and curve.points])
            for sweep in self.benchmark.sweeps
        ]
        return [(sweep, curves) for sweep, curves in pairs if curves]


def row_of(cell: Cell, records: Sequence[Record], made: Collection[int], known: Exclusion | None) -> Row:
    """A cell's row without comparison. `made` are the rounds for it; `known` excludes all of its runs.
    One wrong result or crash excludes it, and so do pages that became unavailable, or were wrong in more than
    a few rounds.
    """
    valid = valid_records(records)
    rounds = len({record.round for record in valid})
    bare = Row(cell, len(records), rounds=rounds, rounds_made=len(made))
    if known is not None:
        return replace(bare, invalid=known.reason, is_fault=True, code=known.code)
    if not records:
        why = "not measured: the comparison ended before its turn"
        return replace(
            bare,
            invalid=why,
            remedy="repeat the command with --resume and this result's folder",
            code="not_measured",
        )
    faults = [(record, fault) for record in records if (fault := exclusion(record)) is not None]
    fatal = [(record, fault) for record, fault in faults if fault.code in _FATAL]
    missing = len(made) - rounds
    lost = bool(valid) and any(fault.code == "pages_unavailable" for _, fault in faults)
    too_few = missing > _MISSING_ROUNDS * max(len(made), _FEW_ROUNDS) or 2 * len(valid) < len(records)
    if fatal or lost or too_few:
        return _excluded_row(bare, records, fatal or faults, missing)
    note = f"not measured in {count_text(missing, 'round')}" if missing else None
    if faults:
        note = f"{len(faults)} of {len(records)} runs excluded: {faults[0][1].reason}"
    seconds = [run_seconds(record) for record in valid]
    places = [record.placement for record in valid if record.placement is not None]
    fields = set.intersection(*(set(record.figures) for record in valid))
    return replace(
        bare,
        runs=len(valid),
        seconds=median(seconds),
        seconds_trimmed=trimmed_mean(seconds),
        first_touch=_median([record.seconds.first_touch for record in valid if record.seconds]),
        wall=_median([record.run.wall_seconds for record in valid if record.run]),
        method=", ".join(sorted({record.run.method for record in valid if record.run}, reverse=True)) or None,
        whole_because=next((run.whole_because for record in valid if (run := record.run)), None),
        metrics={name: median(record.figures[name] for record in valid) for name in sorted(fields)},
        pages=_pages(valid),
        bimodal=bimodal(seconds),
        migrated_runs=sum(place.has_migrated for place in places),
        left_node_runs=sum(place.has_left_node for place in places),
        note=note,
    )


def _median(values: Sequence[float | None]) -> float | None:
    """The median of the known values, None without any."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _excluded_row(
    bare: Row, records: Sequence[Record], faults: Sequence[tuple[Record, Exclusion]], missing: int
) -> Row:
    """A row that is excluded because of faults of its runs or missing rounds."""
    bare = replace(bare, pages=_pages(records), is_fault=True)
    if not faults:
        return replace(bare, invalid=f"{count_text(missing, 'round')} without a run of it", code="incomplete")
    record, fault = faults[0]
    reason, code = fault.reason, fault.code
    if len(faults) < len(records):
        reason = f"{len(faults)} of {len(records)} runs: {reason}"
        if code in ("pages_unavailable", "wrong_pages"):
            reason = f"its pages could not be kept from round {record.round} on: {fault.reason}"
            code = "policy_not_kept"
    remedy = None if record.failure is None else record.failure.remedy
    return replace(bare, invalid=reason, is_fault=code != "pages_unavailable", remedy=remedy, code=code)


def _pages(records: Sequence[Record]) -> PageUse | None:
    """The pages of the run that is farthest from the request, which represents all of them."""
    pages = [record.pages for record in records if record.pages is not None]
    if not pages:
        return None
    farthest = max if PagePolicy(pages[0].policy).is_base else min
    return farthest(pages, key=lambda item: item.huge_coverage)


#: The file next to the records, and its schema.
ANALYSIS, SCHEMA = "analysis.json", "pagewise.analysis/1"
#: A row of a table, for SQL and for JSON.
TableRow: TypeAlias = dict[str, Any]
_BUILD = (
    *("package", "compiler", "hugepages", "prefetch", "stores", "loop", "library", "runtime"),
    *("simd", "sector", "flags", "target", "hash"),
)


def judgement(result: Result, kernels: Sequence[KernelResult]) -> Mapping[str, object]:
    """What analysis.json has of a result; `kernels`: its analysis if it is a comparison."""
    verdicts = {
        (of_kernel.benchmark.name, row.cell.key): _verdict(row, group)
        for of_kernel in kernels
        for group in of_kernel.groups
        for row in group.rows
    }
    return {
        "schema": SCHEMA,
        "records": to_data(result.manifest.records),
        "cells": list(cell_rows(result.subjects, verdicts)),
        "excluded": list(excluded_rows(result.records, excluding(result))),
    }


def cell_rows(
    subjects: Iterable[Subject], verdicts: Mapping[tuple[str, CellKey], TableRow]
) -> Iterator[TableRow]:
    """A row for each kernel and distinct configuration, with its verdict if there is one."""
    for subject in subjects:
        for cell in subject.cells:
            yield {
                "kernel": subject.benchmark.name,
                "kernel_group": subject.benchmark.group,
                "module": cell.measured.module,
                "run_pages": cell.pages,
                "run_placement": cell.placement,
                "run_options": cell.options,
                # Configurations have an empty text instead of None.
                **{name: getattr(cell.measured, name) or None for name in _BUILD},
                "is_baseline": cell.is_baseline,
                "stands_for": len(cell.stands_for),
                **verdicts.get((subject.benchmark.name, cell.key), {}),
            }


def _verdict(row: Row, group: Group) -> TableRow:
    ratio, base = row.time_ratio, group.baseline
    return {
        "excluded": row.code,
        "excluded_reason": row.invalid,
        "runs": row.runs,
        "rounds": row.rounds,
        "seconds": row.seconds,
        "baseline_seconds": base.seconds if ratio is not None and base is not None else None,
        **{name: getattr(ratio, name, None) for name in ("low", "high", "pairs")},
        "time_ratio": ratio and ratio.median,
        "noise_floor": group.floor,
        "p_corrected": row.time and row.time.p,
        "verdict": row.verdict if ratio is not None else None,
        "reason": row.reason,
    }


def excluded_rows(records: Iterable[Record], excluded: Excluding) -> Iterator[TableRow]:
    """The runs that must not be ranked because of their fault or the module's."""
    for record in records:
        run = record.run
        fault = exclusion(record)
        if fault is None and run is not None:
            fault = excluded(run.module)
        if fault is not None:
            yield {
                "program": record.kernel,
                "started": record.started,
                "elements": record.sizes and record.sizes.elements,
                **{name: getattr(run, name, None) for name in ("module", "series", "round", "position")},
                "event_group": run and run.group,
                "code": fault.code,
                "reason": fault.reason,
            }
