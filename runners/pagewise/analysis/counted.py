"""From the records of counting runs to counts, rates and their ratios. Pure functions.

A configuration runs once per group of events in each round; the runs of a round are combined. Counts are
those of one pass through the work, because a kernel chooses the number of passes by the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from pagewise.analysis.comparison import Comparison, Kind, Quantity, compare, judge_together
from pagewise.analysis.consistency import inconsistent
from pagewise.analysis.counter_runs import (
    FAULTS,
    POPULATE,
    POPULATE_FAULTS,
    TIME,
    WHOLE_TIME,
    CountedRound,
    CountedRun,
    counted_round,
    counted_run,
    group_of,
    imbalance_of,
)
from pagewise.analysis.series import by_cell, valid_records
from pagewise.analysis.statistics import larger_floor, noise_floor, repeated_ratios
from pagewise.analysis.validity import Code, Excluding, Exclusion, exclusion, nothing_excluded
from pagewise.core.benchmark import Benchmark
from pagewise.core.dimensions import differ_only_in
from pagewise.core.events import EventFile
from pagewise.core.plan import Cell, Subject
from pagewise.core.record import Record
from pagewise.core.units import count_text

# Runs of a round whose cycles differ by more than this did not do the same.
AGREEMENT = 0.05
# Of compared runs, and of a baseline's second runs.
_SERIES = ("counters", "counters_aa")


@dataclass(frozen=True)
class CountedQuantity(Quantity):
    """A row of the tables: time and page faults of every run, counts, rates, load imbalance of counts."""

    kind: Literal["run", "count", "rate", "imbalance"] = "count"
    source: str = ""


@dataclass(frozen=True)
class CellCounts:
    """What was counted of a cell: the runs, and their combined values by round.

    `repeated` are those of a baseline's second runs (A/A). `invalid` is why there is nothing; `notes` report
    what is missing or doubtful.
    """

    cell: Cell
    runs: tuple[CountedRun, ...] = ()
    rounds: Mapping[int, CountedRound] = field(default_factory=dict)
    invalid: str | None = None
    is_fault: bool = False
    remedy: str | None = None
    notes: tuple[str, ...] = ()
    code: Code | None = None
    repeated: Mapping[int, CountedRound] = field(default_factory=dict)

    @property
    def spread(self) -> float | None:
        """The largest difference in cycles between the runs of a round."""
        return max((r.spread for r in self.rounds.values() if r.spread is not None), default=None)

    def by_round(self, name: str) -> dict[int, float]:
        """A quantity's values by round."""
        return _values(self.rounds, name)

    def value(self, name: str) -> float | None:
        """The median over the rounds; None if it was not counted."""
        values = self.by_round(name).values()
        return median(values) if values else None

    def floor(self, name: str, seed: int) -> float | None:
        """The noise floor of a baseline's quantity: its second runs over its first ones."""
        return noise_floor(*repeated_ratios([self.by_round(name), _values(self.repeated, name)], seed))


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
    judged = judge_together([list(_compared(result, seed)) for result in results])
    return [replace(result, comparisons=rows) for result, rows in zip(results, judged, strict=True)]


def quantities_of(file: EventFile) -> list[CountedQuantity]:
    """All quantities that an event file provides, in the order of the tables."""
    quantities: tuple[tuple[str, str, str, Literal["run", "count", "rate", "imbalance"], str], ...] = (
        (TIME, "Time", "s", "run", "the run's own clock"),
        (WHOLE_TIME, "Time of the whole run", "s", "run", "the run's own clock"),
        (FAULTS, "Page faults", "count", "run", "getrusage(2)"),
        (POPULATE, "Time to populate", "s", "run", "the run's own clock, for all its memory"),
        (POPULATE_FAULTS, "Page faults to populate", "count", "run", "getrusage(2)"),
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


@dataclass(frozen=True)
class _Counting:
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
        rounds = self._by_round(first)
        counts = CellCounts(
            cell, tuple(first), rounds, is_fault=bool(faults), repeated=self._by_round(repeated)
        )
        if counts.spread is not None and counts.spread > AGREEMENT:
            notes.append(
                f"the runs of a round differ by up to {100 * counts.spread:.0f} % in {self.file.cycles}: "
                "rates over several groups are doubtful"
            )
        return replace(counts, notes=tuple(dict.fromkeys(notes)))

    def _by_round(self, runs: Sequence[CountedRun]) -> dict[int, CountedRound]:
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
                what = f"group {run.group}" if native == "all" else names.get(native, native)
                yield f"{what} is not counted here: {reason}"


def _fatal(faults: Sequence[Exclusion], is_valid: bool) -> Exclusion | None:
    """The fault of single runs that excludes their configuration, if there is one."""
    for fault in faults:
        if fault.code == "wrong_result":
            return fault
    for fault in faults if is_valid else ():
        if fault.code == "pages_unavailable":
            return Exclusion("policy_not_kept", f"its pages could not be kept: {fault.reason}")
    return None


def _values(rounds: Mapping[int, CountedRound], name: str) -> dict[int, float]:
    return {number: r.values[name] for number, r in rounds.items() if name in r.values}


def _compared(result: KernelCounts, seed: int) -> Iterator[Comparison]:
    """Each quantity of each pair of cells."""
    baselines = {c.cell.compiler: c for c in result.cells if c.rounds and c.cell.is_baseline}
    quantities = [quantity for quantity in result.quantities if quantity.kind != "imbalance"]
    for kind, counts, other in _pairs(result):
        for quantity in quantities:
            name = quantity.name
            compilers = dict.fromkeys(each.cell.compiler for each in (counts, other))
            floors = [baselines[c].floor(name, seed) if c in baselines else None for c in compilers]
            row = Comparison(
                kind=kind,
                quantity=quantity,
                benchmark=result.benchmark,
                cell=counts.cell,
                reference=other.cell,
                dimension="hugepages" if kind == "pages" else "compiler",
                floor=larger_floor(floors),
            )
            made = compare(row, [counts.by_round(name)], [other.by_round(name)], seed)
            if made.ratio is not None:
                yield made


def _pairs(result: KernelCounts) -> Iterator[tuple[Kind, CellCounts, CellCounts]]:
    """With : without huge pages for each compiler, then each compiler : the first by pages."""
    counted = [counts for counts in result.cells if counts.rounds]
    without = [counts for counts in counted if counts.cell.measured.hugepages == "none"]
    of_first = [counts for counts in counted if counts.cell.compiler == counted[0].cell.compiler]
    kinds: tuple[tuple[Kind, str, list[CellCounts]], ...] = (
        ("pages", "hugepages", without),
        ("compilers", "compiler", of_first),
    )
    for kind, dimension, bases in kinds:
        for counts in counted if dimension in result.benchmark.sensitive_to else ():
            measured = counts.cell.measured
            alike = (other for other in bases if differ_only_in(dimension, measured, other.cell.measured))
            base = next(alike, counts)
            if base is not counts and (kind == "pages" or base.cell.compiler != counts.cell.compiler):
                yield kind, counts, base
