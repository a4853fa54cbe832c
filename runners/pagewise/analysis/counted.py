"""From the records of counting runs to counts, rates and their ratios. Pure functions.

A configuration runs once a group of events in each round; the runs of a round are joined to one set. Counts
are those of one pass through the work, for a kernel chooses the number of passes by the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from pagewise.analysis.consistency import contradiction
from pagewise.analysis.counter_runs import (
    FAULTS,
    POPULATE,
    POPULATE_FAULTS,
    TIME,
    Joined,
    Taken,
    group_of,
    joined,
    taken,
)
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.result import Excluding, nothing_excluded
from pagewise.analysis.statistics import noise_floor, ratio
from pagewise.analysis.validity import Code, Exclusion, exclusion, invalid_reason
from pagewise.analysis.verdict import Comparison, Verdict, judge
from pagewise.core.dimensions import BY_NAME
from pagewise.core.kernel import Kernel
from pagewise.core.plan import Cell, CellKey, Subject, key_of
from pagewise.core.record import Record
from pagewise.stack.events import EventFile

# Runs of a round whose cycles differ by more than this did not do the same.
AGREEMENT = 0.05


@dataclass(frozen=True)
class Quantity:
    """A row of the tables: time and page faults of every run, counts, and rates derived from counts."""

    name: str
    title: str
    unit: str
    kind: Literal["run", "count", "rate"]
    source: str


@dataclass(frozen=True)
class Counts:
    """What was counted of a cell: the runs, and by round what they give together.

    `again` is the same of a baseline's second runs (A/A). `invalid` says why there is nothing; `notes` what
    is missing or doubtful.
    """

    cell: Cell
    runs: tuple[Taken, ...]
    rounds: Mapping[int, Joined]
    invalid: str | None = None
    is_fault: bool = False
    remedy: str | None = None
    notes: tuple[str, ...] = ()
    code: Code | None = None
    again: Mapping[int, Joined] = field(default_factory=dict)

    @property
    def spread(self) -> float | None:
        """The largest difference in cycles between the runs of a round."""
        return max((one.spread for one in self.rounds.values() if one.spread is not None), default=None)

    def by_round(self, name: str) -> dict[int, float]:
        """A quantity's values by round."""
        return {number: one.values[name] for number, one in self.rounds.items() if name in one.values}

    def value(self, name: str) -> float | None:
        """The median over the rounds; None where it was not counted."""
        found = self.by_round(name)
        return median(found.values()) if found else None


@dataclass(frozen=True)
class Compared:
    """A column of ratios: `cell` to `other`. `by_compiler`: two compilers, else pages with : without."""

    cell: Cell
    other: Cell
    by_compiler: bool
    verdicts: Mapping[str, Verdict]

    @property
    def ratios(self) -> dict[str, Ratio]:
        """The ratios by quantity."""
        return {name: one.ratio for name, one in self.verdicts.items() if one.ratio is not None}


@dataclass(frozen=True)
class KernelCounts:
    """All that was counted of a kernel: its cells, the quantities they have, and ratios."""

    kernel: Kernel
    cells: tuple[Counts, ...]
    quantities: tuple[Quantity, ...]
    compared: tuple[Compared, ...]

    @property
    def by_pages(self) -> list[Compared]:
        """With : without huge pages."""
        return [one for one in self.compared if not one.by_compiler]

    @property
    def by_compiler(self) -> list[Compared]:
        """Compiler : compiler."""
        return [one for one in self.compared if one.by_compiler]


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
    """Counts and ratios of each kernel. `groups` were to be counted; of `region` alone where it is named.

    `excluding` gives the reason why nothing of a module may be shown, if there is one.
    """
    sorted_records: dict[tuple[str, CellKey], list[Record]] = {}
    for record in records:
        run = record.run
        if run is not None and run.series in ("counters", "counters_aa"):
            key = (record.of_kernel, key_of(run))
            sorted_records.setdefault(key, []).append(record)
    found: list[tuple[KernelCounts, list[_Column]]] = []
    for one in subjects:
        cells = [
            _excluded(one.kernel, cell, found_of, excluding) or _counts(cell, found_of, file, groups, region)
            for cell in one.cells
            for found_of in [sorted_records.get((one.kernel.name, cell.key), [])]
        ]
        quantities = tuple(q for q in quantities_of(file) if any(c.value(q.name) is not None for c in cells))
        found.append((KernelCounts(one.kernel, tuple(cells), quantities, ()), _columns(one.kernel, cells)))
    return _judged(found, seed)


def quantities_of(file: EventFile) -> list[Quantity]:
    """All that can be told by a file, in the order of the tables."""
    told = [
        Quantity(TIME, "Time", "s", "run", "the run's own clock"),
        Quantity(FAULTS, "Page faults", "count", "run", "getrusage(2)"),
        Quantity(POPULATE, "Time to populate", "s", "run", "the run's own clock, for all of its memory"),
        Quantity(POPULATE_FAULTS, "Page faults to populate", "count", "run", "getrusage(2)"),
    ]
    told += [Quantity(e.name, e.name, e.unit, "count", e.source) for e in file.events.values()]
    return told + [Quantity(m.name, m.title, m.unit, "rate", m.source) for m in file.metrics]


def quotient(values: Mapping[int, float], others: Mapping[int, float], seed: int) -> Ratio | None:
    """The ratio paired by round; None where nothing is divided by nothing, as in the studies' N/A."""
    both = sorted(values.keys() & others.keys())
    shares = [values[number] / others[number] for number in both if others[number] != 0]
    if shares and all(share > 0 for share in shares):
        return ratio(shares, seed)
    return Ratio(len(shares), median(shares), None, None) if shares else None


def _excluded(kernel: Kernel, cell: Cell, records: Sequence[Record], excluding: Excluding) -> Counts | None:
    """The counts of a cell of which nothing may be shown: one wrong result or lost pages exclude it."""
    faults = [found for record in records if (found := exclusion(record)) is not None]
    valid = [record for record in records if exclusion(record) is None]
    lost = [one for one in faults if one.code == "pages_unavailable" and valid]
    fatal = [one for one in faults if one.code == "wrong_result"]
    found = excluding(cell.measured.module) or contradiction(kernel, cell.measured, valid)
    if lost:
        fatal.append(Exclusion("policy_not_kept", f"its pages could not be kept: {lost[0].reason}"))
    found = found or next(iter(fatal), None)
    return None if found is None else Counts(cell, (), {}, found.reason, is_fault=True, code=found.code)


def _counts(
    cell: Cell, records: Sequence[Record], file: EventFile, groups: Sequence[str], region: str | None
) -> Counts:
    faults = [(record, reason) for record in records if (reason := invalid_reason(record)) is not None]
    valid = [record for record in records if invalid_reason(record) is None]
    if not valid:
        if not faults:
            return Counts(cell, (), {}, invalid="not measured", code="not_measured")
        record, reason = faults[0]
        remedy = None if record.failure is None else record.failure.remedy
        found = exclusion(record)
        code = None if found is None else found.code
        return Counts(cell, (), {}, reason, record.status != "pages_unavailable", remedy, code=code)
    runs: list[Taken] = []
    repeated: list[Taken] = []
    notes = []
    for record, reason in faults:
        notes.append(f"group {group_of(record)}: a run was left out: {reason}")
    for record in valid:
        run = taken(record, file, region)
        if isinstance(run, str):
            notes.append(run)
        else:
            (runs if record.series == "counters" else repeated).append(run)
    rounds, again = (_by_round(of_series, file) for of_series in (runs, repeated))
    notes += _missing(runs, file, groups)
    if not runs:
        return Counts(cell, (), {}, invalid="; ".join(dict.fromkeys(notes)))
    counts = Counts(cell, tuple(runs), rounds, is_fault=bool(faults), again=again)
    if counts.spread is not None and counts.spread > AGREEMENT:
        notes.append(
            f"the runs of a round differ by up to {100 * counts.spread:.0f} % in {file.cycles}: rates over "
            "several groups are doubtful"
        )
    return replace(counts, notes=tuple(dict.fromkeys(notes)))


def _by_round(runs: Sequence[Taken], file: EventFile) -> dict[int, Joined]:
    rounds: dict[int, list[Taken]] = {}
    for run in runs:
        rounds.setdefault(run.round, []).append(run)
    return {number: joined(file, rounds[number]) for number in sorted(rounds)}


def _missing(runs: Sequence[Taken], file: EventFile, groups: Sequence[str]) -> Iterator[str]:
    """Groups without a run, and events that were refused, each with the reason."""
    for group in groups:
        if runs and not any(run.group == group for run in runs):
            yield f"group {group} was not counted"
    natives = {event.native: event.name for event in file.events.values()}
    for run in runs:
        for native, reason in run.refused.items():
            what = f"group {run.group}" if native == "all" else natives.get(native, native)
            yield f"{what} is not counted here: {reason}"


def _judged(found: Sequence[tuple[KernelCounts, list[_Column]]], seed: int) -> list[KernelCounts]:
    """The kernels' counts with their verdicts: all ratios are judged together."""
    compared = [
        (quantity.name, column, quotient(column.cell.by_round(quantity.name), others, seed))
        for one, columns in found
        for column in columns
        for quantity in one.quantities
        for others in [column.other.by_round(quantity.name)]
    ]
    known = [(name, column, ratio) for name, column, ratio in compared if ratio is not None]
    verdicts = judge([Comparison(ratio, column.floor(name, seed)) for name, column, ratio in known])
    by_column: dict[int, dict[str, Verdict]] = {}
    for (name, column, _), verdict in zip(known, verdicts, strict=True):
        by_column.setdefault(id(column), {})[name] = verdict
    return [
        replace(
            one,
            compared=tuple(
                Compared(c.cell.cell, c.other.cell, c.by_compiler, by_column.get(id(c), {})) for c in columns
            ),
        )
        for one, columns in found
    ]


@dataclass(frozen=True)
class _Column:
    """What is compared; `baselines` are those of both compilers, whose A/A gives the noise floors."""

    cell: Counts
    other: Counts
    by_compiler: bool
    baselines: tuple[Counts | None, ...]

    def floor(self, name: str, seed: int) -> float | None:
        """The noise floor of a quantity: the larger one of both compilers."""
        repeated = [None if one is None else _repeated(one, name, seed) for one in self.baselines]
        floors = [noise_floor(ratio) for ratio in repeated]
        return None if None in floors else max(floor for floor in floors if floor is not None)


def _repeated(baseline: Counts, name: str, seed: int) -> Ratio | None:
    """A quantity of a baseline's second runs over that of its first."""
    again = {number: one.values[name] for number, one in baseline.again.items() if name in one.values}
    return quotient(again, baseline.by_round(name), seed)


def _columns(kernel: Kernel, cells: Sequence[Counts]) -> list[_Column]:
    """With : without huge pages for each compiler, then each compiler : the first by pages."""
    there = [one for one in cells if one.rounds]
    baselines = {one.cell.compiler: one for one in there if one.cell.is_baseline}

    def column(one: Counts, other: Counts, by_compiler: bool) -> _Column:
        compilers = dict.fromkeys((one.cell.compiler, other.cell.compiler))
        return _Column(one, other, by_compiler, tuple(baselines.get(name) for name in compilers))

    columns = []
    for one in there if "hugepages" in kernel.sensitive_to else ():
        base = next((o for o in there if _alike(one, o, "hugepages") and _policy(o) == "none"), None)
        if base is not None and base is not one:
            columns.append(column(one, base, False))
    if "compiler" not in kernel.sensitive_to or not there:
        return columns
    reference = there[0].cell.compiler
    for one in there:
        other = next((o for o in there if _alike(one, o, "compiler") and o.cell.compiler == reference), None)
        if other is not None and one.cell.compiler != reference:
            columns.append(column(one, other, True))
    return columns


def _policy(one: Counts) -> str:
    return one.cell.measured.hugepages


def _alike(one: Counts, other: Counts, but: str) -> bool:
    """Whether two cells differ in this at most."""
    names = [name for name in BY_NAME if name != but]
    return all(getattr(one.cell.measured, name) == getattr(other.cell.measured, name) for name in names)
