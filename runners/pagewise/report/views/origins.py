"""Measured, simulated and published values of the tests of a publication, in the same form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from pagewise.analysis.counted import Compared, KernelCounts, count
from pagewise.analysis.counter_runs import TIME, rates
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.result import excluding
from pagewise.core.configuration import STRUCTURES
from pagewise.core.kernel import Kernel
from pagewise.core.plan import Cell
from pagewise.core.record import Record
from pagewise.core.result import Result
from pagewise.report.views import counters, simulation
from pagewise.report.views.wording import label
from pagewise.stack.events import EventFile
from pagewise.workloads.counters.published import Column, Layout, Published, over_base, over_first
from pagewise.workloads.simulation import figures

Kind = Literal["measured", "simulated", "published"]
#: The time of the whole run, as the studies' timers, where only a region is counted.
WHOLE_TIME = "whole_time"


@dataclass(frozen=True)
class Side:
    """Values by quantity: of a compiler and page policy, or ratios. `decided`: those with a verdict."""

    who: str
    policy: str
    values: Mapping[str, float | Ratio]
    decided: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Origin:
    """What one origin has of a test, by one program; `notes` report what is missing."""

    kind: Kind
    test: str
    program: str
    columns: tuple[Side, ...]
    by_pages: tuple[Side, ...]
    by_compiler: tuple[Side, ...]
    notes: tuple[str, ...] = ()


def _single(kind: Kind, names: tuple[str, str], columns: Sequence[Column], bases: Sequence[str]) -> Origin:
    """An origin of a test and program with one value of each quantity, whose ratios are quotients."""
    parts = (columns, over_base(columns, bases), over_first(columns))
    values, pages, compilers = (tuple(Side(c.who, c.policy, c.values) for c in part) for part in parts)
    return Origin(kind, *names, values, pages, compilers)


def published(publication: Published, events: EventFile) -> Iterator[Origin]:
    """The publication's own values."""
    for test in publication.tests:
        yield _single("published", (test, "FLASH"), publication.columns(test, events), ("none",))


def measured(counted: counters.Counted, publication: Published, events: EventFile) -> Iterator[Origin]:
    """The counts of a result of counting, by kernel and the options of its runs."""
    kernels = [each for each in counted.kernels if each.kernel.published_test in publication.tests]
    whole = _whole(counted) if kernels else {}
    for counts in kernels:
        test = counts.kernel.published_test
        assert test is not None
        names = _names(counted.file, events)
        for options in dict.fromkeys(counted_cell.cell.options for counted_cell in counts.cells):
            reading = _Reading(counts, whole.get(counts.kernel.name), names, options)
            yield Origin(
                "measured",
                test,
                _program(counts.kernel.name, options),
                tuple(reading.columns()),
                tuple(map(reading.ratios, reading.pairs(counts.by_pages))),
                tuple(map(reading.ratios, reading.pairs(counts.by_compiler))),
                (*counters.regions(counted, counts), *counters.kernel_notes(counts)),
            )


def _program(name: str, options: str | None) -> str:
    """A program with the options that select its data structures."""
    return " ".join(filter(None, (name, options)))


def _given_options(kernel: Kernel) -> str:
    """The options that a simulated program was given: `scheme=flash,layout=soa`."""
    given = dict(pairwise(kernel.arguments))
    return ",".join(f"{name}={given[f'--{name}']}" for name in STRUCTURES if f"--{name}" in given)


def simulated(results: Iterable[Result], publication: Published, events: EventFile) -> Iterator[Origin]:
    """The counts of simulations, by test, program and its options; each result has one compiler."""
    together: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        (subject,) = result.subjects
        if (test := subject.kernel.published_test) in publication.tests:
            program = _program(subject.kernel.name, _given_options(subject.kernel))
            together.setdefault((str(test), program), []).append(result)
    for (test, program), several in together.items():
        columns: list[Column] = []
        bases: list[str] = []
        notes: list[str] = []
        for result in several:
            (subject,) = result.subjects
            bases += [cell.measured.hugepages for cell in subject.cells if cell.is_baseline]
            records, missing = simulation.by_policy(result)
            for policy, record in records.items():
                values = _simulated_values(subject.kernel, record, publication.layout, events)
                columns.append(Column(subject.cells[0].compiler, policy, values))
            notes += _simulated_notes(result, subject.kernel, records.values())
            notes += [
                f"{program}, {policy}: not simulated: {why['reason']}" for policy, why in missing.items()
            ]
        base = publication.layout.base_compiler
        columns.sort(key=lambda column: column.who.partition("-")[0] != base)
        yield replace(_single("simulated", (test, program), columns, bases), notes=tuple(notes))


def _simulated_notes(result: Result, kernel: Kernel, records: Iterable[Record]) -> Iterator[str]:
    """On which machine it was simulated, and where."""
    about, region = result.manifest.simulation, kernel.published_region
    assert about is not None
    where = f"simulated on {about.geometry['title']}"
    if region is not None and all(region in figures.regions_of([record]) for record in records):
        yield f"{kernel.name}: {where}, in the region {region} only."
    else:
        yield f"{kernel.name}: {where}, as a whole; the published counts are of the region {region or '?'}."


def _simulated_values(
    kernel: Kernel, record: Record, layout: Layout, events: EventFile
) -> Mapping[str, float]:
    """The counts by the names of the events, per pass, in the published region, and the rates of them."""
    region = kernel.published_region
    counts = figures.counts_per_pass(record, region if region in figures.regions_of([record]) else None)
    names = ((name, layout.simulated.get(name, name)) for name in events.events)
    values = {name: counts[ours] for name, ours in names if ours in counts}
    return {**values, **rates(events, values, None)}


def _names(file: EventFile, events: EventFile) -> Mapping[str, str]:
    """The quantities that a file for another CPU has under another name: cycles and instructions."""
    names = {file.cycles: events.cycles}
    if file.instructions is not None and events.instructions is not None:
        names[file.instructions] = events.instructions
    return names


def _whole(counted: counters.Counted) -> dict[str, KernelCounts]:
    """The same runs without regions, for the time of the whole."""
    result = counted.result
    kernels = count(
        result.subjects,
        result.records,
        counted.file,
        counted.request.groups,
        region_of=lambda _: None,
        seed=result.manifest.seed,
        excluding=excluding(result),
    )
    return {each.kernel.name: each for each in kernels}


@dataclass(frozen=True)
class _Reading:
    """Reads the counts of a kernel with these options of its runs.

    `whole` are those of whole runs, `names` other names of quantities.
    """

    counts: KernelCounts
    whole: KernelCounts | None
    names: Mapping[str, str]
    options: str | None

    def columns(self) -> Iterator[Side]:
        """The values of each counted configuration."""
        times = {c.cell.key: c.value(TIME) for c in self.whole.cells} if self.whole else {}
        for cell in self.counts.cells:
            if not cell.rounds or cell.cell.options != self.options:
                continue
            found = {q.name: cell.value(q.name) for q in self.counts.quantities}
            found[WHOLE_TIME] = times.get(cell.cell.key)
            values = {name: value for name, value in found.items() if value is not None}
            yield Side(cell.cell.compiler, self._policy(cell.cell), self._named(values))

    def pairs(self, compared: Iterable[Compared]) -> list[Compared]:
        """Those of the pairs that have the options."""
        return [pair for pair in compared if pair.cell.options == self.options]

    def _policy(self, cell: Cell) -> str:
        """The configuration in words, without the options."""
        return label(self.counts.kernel, replace(cell.measured, **dict.fromkeys(STRUCTURES, "")))

    def ratios(self, compared: Compared) -> Side:
        """The ratios of a pair, with the verdicts that are not inconclusive."""
        verdicts = dict(compared.verdicts)
        for other in self.whole.compared if self.whole else ():
            if (other.cell.key, other.other.key) == (compared.cell.key, compared.other.key):
                verdicts |= {WHOLE_TIME: other.verdicts[TIME]} if TIME in other.verdicts else {}
        values = {name: v.ratio for name, v in verdicts.items() if v.ratio is not None}
        decided = {name for name, verdict in verdicts.items() if verdict.reason is None}
        who = compared.cell.compiler + (f" : {compared.other.compiler}" if compared.by_compiler else "")
        names = frozenset(self.names.get(name, name) for name in decided)
        return Side(who, self._policy(compared.cell), self._named(values), names)

    def _named(self, values: Mapping[str, float | Ratio]) -> Mapping[str, float | Ratio]:
        return {self.names.get(name, name): value for name, value in values.items()}
