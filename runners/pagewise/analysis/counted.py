"""From the records of counting runs to counts, rates and their ratios. Pure functions.

A configuration runs once per group of events in each round; the runs of a round are combined. Counts are
those of one pass through the work, because a kernel chooses the number of passes by the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Literal, NamedTuple, TypeAlias

from pagewise.analysis.comparison import (
    Comparison,
    Kind,
    Quantity,
    by_pages,
    compare,
    judge_together,
    middle,
)
from pagewise.analysis.consistency import inconsistent
from pagewise.analysis.series import by_cell, valid_records
from pagewise.analysis.statistics import largest, noise_floor, repeated_ratios
from pagewise.analysis.validity import Code, Excluding, Exclusion, exclusion, nothing_excluded
from pagewise.core.benchmark import Benchmark
from pagewise.core.dimensions import PAGES
from pagewise.core.events import EventFile
from pagewise.core.plan import Cell, Subject
from pagewise.core.record import Record
from pagewise.core.record_parts import PageFaults
from pagewise.core.units import count_text

TIME, FAULTS = "time", "page_faults"
#: Only where a region is counted: the time inside and outside of it.
WHOLE_TIME = "whole_time"
FIRST_TOUCH, FIRST_TOUCH_FAULTS = "populate_time", "populate_page_faults"
#: By how much the cycles of the runs of a round differ, as a share.
SPREAD = "spread"
# Runs of a round whose cycles differ by more than this did not do the same.
AGREEMENT = 0.05
# Of compared runs, and of a baseline's second runs.
_SERIES = ("counters", "counters_aa")
#: Values of quantities by round.
Rounds: TypeAlias = Mapping[int, Mapping[str, float]]


@dataclass(frozen=True)
class CountedQuantity(Quantity):
    """A row of the tables: time and page faults of every run, counts, rates, load imbalance of counts."""

    kind: Literal["run", "count", "rate", "imbalance"] = "count"
    source: str = ""


@dataclass(frozen=True)
class CountedRun:
    """The counts of one valid run.

    `values` are its quantities: times, page faults and counts per pass, load imbalance (the most of a thread
    : the mean of the threads). `raw` are the counts of the whole run; `refused` is why events were not
    counted.
    """

    group: str
    round: int
    position: int
    passes: int
    values: Mapping[str, float]
    raw: Mapping[str, float]
    refused: Mapping[str, str]

    @property
    def seconds(self) -> float:
        """Its time per pass."""
        return self.values[TIME]


@dataclass(frozen=True)
class CellCounts:
    """What was counted of a cell: the runs, and their quantities by round.

    `series` are those of its runs, then those of a baseline's second runs (A/A). `invalid` is why there is
    nothing; `notes` report what is missing or doubtful.
    """

    cell: Cell
    runs: tuple[CountedRun, ...] = ()
    series: Sequence[Rounds] = ({}, {})
    invalid: str | None = None
    is_fault: bool = False
    remedy: str | None = None
    notes: tuple[str, ...] = ()
    code: Code | None = None

    @property
    def rounds(self) -> Rounds:
        """The quantities by round."""
        return self.series[0]

    @property
    def spread(self) -> float | None:
        """The largest difference in cycles between the runs of a round."""
        return max(self.by_round(SPREAD)[0].values(), default=None)

    def by_round(self, name: str) -> list[dict[int, float]]:
        """A quantity's values by round: of its runs, then of A/A."""
        return [{n: values[name] for n, values in rounds.items() if name in values} for rounds in self.series]

    def value(self, name: str) -> float | None:
        """The median over the rounds; None if it was not counted."""
        return middle(self.by_round(name)[:1])


@dataclass(frozen=True)
class KernelCounts:
    """All that was counted of a kernel: its cells, their quantities, and their comparisons."""

    benchmark: Benchmark
    cells: tuple[CellCounts, ...]
    quantities: tuple[CountedQuantity, ...]
    comparisons: tuple[Comparison, ...] = ()

    def of(self, kind: Kind) -> list[Comparison]:
        """The comparisons of `pages`, with : without huge pages, or of `compilers`."""
        return [row for row in self.comparisons if row.kind == kind]


def count(
    subjects: Sequence[Subject],
    records: Iterable[Record],
    file: EventFile,
    groups: Sequence[str],
    *,
    region: str | None,
    seed: int,
    excluding: Excluding = nothing_excluded,
) -> list[KernelCounts]:
    """Counts and ratios of each kernel. `groups` were to be counted, only in `region` if it is named.

    `excluding` gives the reason why nothing of a module may be shown, if there is one. All ratios are judged
    together.
    """
    by_series, results = by_cell(records), []
    for subject in subjects:
        name = subject.benchmark.name
        counting = _Counting(file, groups, region, excluding)
        cells = tuple(
            counting.counts(
                subject.benchmark,
                cell,
                [r for series in _SERIES for r in by_series.get((name, cell.key, series), [])],
            )
            for cell in subject.cells
        )
        known = (q for q in quantities_of(file) if any(c.value(q.name) is not None for c in cells))
        results.append(KernelCounts(subject.benchmark, cells, tuple(known)))
    judged = judge_together([list(_compare_pairs(result, seed)) for result in results])
    return [replace(result, comparisons=rows) for result, rows in zip(results, judged, strict=True)]


def quantities_of(file: EventFile) -> list[CountedQuantity]:
    """All quantities that an event file provides, in the order of the tables."""
    quantities: tuple[tuple[str, str, str, Literal["run", "count", "rate", "imbalance"], str], ...] = (
        (TIME, "Time", "s", "run", "the run's own clock"),
        (WHOLE_TIME, "Time of the whole run", "s", "run", "the run's own clock"),
        (FAULTS, "Page faults", "count", "run", "getrusage(2)"),
        (FIRST_TOUCH, "First-touch time", "s", "run", "the run's own clock, for all its memory"),
        (FIRST_TOUCH_FAULTS, "Page faults of the first touch", "count", "run", "getrusage(2)"),
        *((name, name, e.unit, "count", e.source or file.source) for name, e in file.events.items()),
        *((m.name, m.title, m.unit, "rate", m.source or file.source) for m in file.metrics),
        *(
            (imbalance_of(name), name, "maximum : mean", "imbalance", e.source or file.source)
            for name, e in file.events.items()
        ),
    )
    return [
        CountedQuantity(name, title, unit, None, kind, source)
        for name, title, unit, kind, source in quantities
    ]


class _Counting(NamedTuple):
    """What is counted, as in `count`."""

    file: EventFile
    groups: Sequence[str]
    region: str | None
    excluding: Excluding

    def counts(self, kernel: Benchmark, cell: Cell, records: Sequence[Record]) -> CellCounts:
        """The counts of a cell, or why there are none: one wrong result or lost pages exclude it."""
        faults = [(record, fault) for record in records if (fault := exclusion(record)) is not None]
        valid = valid_records(records)
        fault = self.excluding(cell.measured.module) or inconsistent(kernel, cell.measured, valid)
        fault = fault or _fatal([fault for _, fault in faults], bool(valid))
        if fault is not None:
            return CellCounts(cell, invalid=fault.reason, is_fault=True, code=fault.code)
        if valid:
            return self._valid(cell, valid, faults)
        if not faults:
            return CellCounts(cell, invalid="not measured", code="not_measured")
        record, fault = faults[0]
        remedy = None if record.failure is None else record.failure.remedy
        is_fault = record.status != "pages_unavailable"
        return CellCounts(cell, invalid=fault.reason, is_fault=is_fault, remedy=remedy, code=fault.code)

    def _valid(
        self, cell: Cell, valid: Sequence[Record], faults: Sequence[tuple[Record, Exclusion]]
    ) -> CellCounts:
        runs: dict[str | None, list[CountedRun]] = {series: [] for series in _SERIES}
        notes = [f"group {group_of(record)}: a run was excluded: {fault.reason}" for record, fault in faults]
        if migrated := sum(
            record.placement is not None and record.placement.has_migrated for record in valid
        ):
            notes.append(f"threads migrated to another CPU in {migrated} of {count_text(len(valid), 'run')}")
        for record in valid:
            run = counted_run(record, self.file, self.region)
            if isinstance(run, str):
                notes.append(run)
            else:
                runs[record.series].append(run)
        first, repeated = runs.values()
        notes += self._missing(first)
        if not first:
            return CellCounts(cell, invalid="; ".join(dict.fromkeys(notes)))
        both = [self._by_round(first), self._by_round(repeated)]
        counts = CellCounts(cell, tuple(first), both, is_fault=bool(faults))
        if counts.spread is not None and counts.spread > AGREEMENT:
            notes.append(
                f"the runs of a round differ by up to {100 * counts.spread:.0f} % in {self.file.cycles}: "
                "rates over several groups are doubtful"
            )
        return replace(counts, notes=tuple(dict.fromkeys(notes)))

    def _by_round(self, runs: Sequence[CountedRun]) -> Rounds:
        numbers = sorted({run.round for run in runs})
        return {n: counted_round(self.file, [run for run in runs if run.round == n]) for n in numbers}

    def _missing(self, runs: Sequence[CountedRun]) -> Iterator[str]:
        """Groups without a run, and events that were refused, each with the reason."""
        for group in self.groups:
            if runs and not any(run.group == group for run in runs):
                yield f"group {group} was not counted"
        names = self.file.by_native
        for run in runs:
            for native, reason in run.refused.items():
                subject = f"group {run.group}" if native == "all" else names.get(native, native)
                yield f"{subject} is not counted here: {reason}"


def _fatal(faults: Sequence[Exclusion], is_valid: bool) -> Exclusion | None:
    """The fault of single runs that excludes their configuration, if there is one."""
    for fault in faults:
        if fault.code == "wrong_result":
            return fault
    for fault in faults if is_valid else ():
        if fault.code == "pages_unavailable":
            return Exclusion("policy_not_kept", f"its pages could not be kept: {fault.reason}")
    return None


def _compare_pairs(result: KernelCounts, seed: int) -> Iterator[Comparison]:
    """Each quantity of each pair of cells: with : without huge pages, compiler : the first by pages."""
    counted = {counts.cell: counts for counts in result.cells if counts.rounds}
    baselines = {cell.compiler: counts for cell, counts in counted.items() if cell.is_baseline}
    without = [cell for cell in counted if cell.measured.hugepages == "none"]
    for pair in by_pages(result.benchmark, [*counted], without):
        for quantity in result.quantities:
            if quantity.kind == "imbalance":
                continue
            bases = [baselines.get(cell.compiler) for cell in pair[:2]]
            floors = [
                None if base is None else noise_floor(*repeated_ratios(base.by_round(quantity.name), seed))
                for base in bases
            ]
            row = Comparison(
                kind="pages" if pair.dimension == PAGES.name else "compilers",
                quantity=quantity,
                benchmark=result.benchmark,
                cell=pair.cell,
                reference=pair.reference,
                dimension=pair.dimension,
                floor=largest(floors),
            )
            own, reference = (counted[cell].by_round(quantity.name)[:1] for cell in pair[:2])
            made = compare(row, own, reference, seed)
            if made.ratio is not None:
                yield made


def imbalance_of(event: str) -> str:
    """The name of the quantity that is the load imbalance of an event."""
    return f"{event}_imbalance"


def rates(file: EventFile, counts: Mapping[str, float], seconds: float | None) -> dict[str, float]:
    """The metrics that one set of counts provides."""
    values = file.base_values(counts, seconds)
    metrics = {metric.name: metric.value(values) for metric in file.metrics}
    return {name: value for name, value in metrics.items() if value is not None}


def counted_round(file: EventFile, runs: Sequence[CountedRun]) -> dict[str, float]:
    """The quantities of one round, and the SPREAD of the runs' cycles if there are several.

    The count of an event in several groups is their mean. A rate comes from the runs that counted all of its
    events, so that it is consistent in itself, else from the counts of all runs.
    """
    means = _means([{**run.values, **rates(file, run.values, run.seconds)} for run in runs])
    cycles = [count for run in runs if (count := run.values.get(file.cycles))]
    spread = {SPREAD: max(cycles) / min(cycles) - 1.0} if len(cycles) > 1 else {}
    return {**rates(file, means, means[TIME]), **means, **spread}


def counted_run(record: Record, file: EventFile, region: str | None) -> CountedRun | str:
    """The counts of a valid record, or why it has none."""
    passes = len(record.repetitions) * record.passes
    seconds, counts = sum(record.repetitions), record.counts
    refused = dict(record.counters_refused or {})
    if (unavailable := (record.counters or {}).get("unavailable")) is not None:
        refused = {"all": str(unavailable)} | refused
    regions = record.regions or ()
    if region is None:
        values = _reported_values(record, passes)
        # Of the whole computation, the outermost region.
        parts = [part for part in regions if part.counts == record.counters][:1]
    else:
        # Regions of this name inside another one of this name are part of its time and counts.
        parts = [part for part in regions if part.path == region] or [
            part for part in regions if part.name == region and part.path.split("/").count(region) == 1
        ]
        if not parts:
            known = ", ".join(dict.fromkeys(part.path for part in regions)) or "none"
            return f"there is no region {region} in its records; there are: {known}"
        values = {WHOLE_TIME: seconds / passes}
        seconds, counts = sum(part.seconds for part in parts), {}
        for part in parts if unavailable is None else ():
            for name, n in (part.counts or {}).items():
                counts[name] = counts.get(name, 0.0) + n
    by_native = file.by_native
    raw = {by_native[native]: float(n) for native, n in counts.items() if native in by_native}
    # Several paths may have their most on several threads.
    uneven = (parts[0].imbalance or {}) if len(parts) == 1 else {}
    values |= {TIME: seconds / passes} | {name: n / passes for name, n in raw.items()}
    values |= {imbalance_of(by_native[native]): n for native, n in uneven.items() if native in by_native}
    position = 0 if record.run is None else record.run.position
    return CountedRun(group_of(record), record.round, position, passes, values, raw, refused)


def group_of(record: Record) -> str:
    """The group of events that its run was to count."""
    return (record.run and record.run.group) or "?"


def _reported_values(record: Record, passes: int) -> dict[str, float]:
    faults = record.page_faults or PageFaults()
    values = {
        FIRST_TOUCH: None if record.seconds is None else record.seconds.first_touch,
        FAULTS: None if faults.compute is None else faults.compute / passes,
        FIRST_TOUCH_FAULTS: faults.first_touch,
    }
    return {name: value for name, value in values.items() if value is not None}


def _means(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each name over those that have it."""
    names = dict.fromkeys(name for values in several for name in values)
    return {name: mean(values[name] for values in several if name in values) for name in names}
