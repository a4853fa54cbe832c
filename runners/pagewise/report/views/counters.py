"""Counts of events: with : without huge pages, compiler : compiler, and all values, as in the studies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pagewise.analysis.counted import TIME, CellCounts, KernelCounts, count
from pagewise.analysis.validity import excluding
from pagewise.core.events import EventFile
from pagewise.core.manifest_parts import CountersPart
from pagewise.core.result import Result
from pagewise.core.units import percent_text
from pagewise.report.documents import CountRow, CountsDocument, NotCountedRow, RawCountRow
from pagewise.report.model import Block, Column, Report, Section, Table, Text, output_of, quotient_text
from pagewise.report.verdicts import ComparisonRow
from pagewise.report.views import comparisons, data, session
from pagewise.report.views.data import label


def view(result: Result) -> Report:
    """The report of a result of counting."""
    manifest = result.manifest
    request = manifest.counters
    assert request is not None
    kernels = count(
        result.subjects,
        result.records,
        request.events,
        request.groups,
        region=request.region,
        seed=manifest.seed,
        excluding=excluding(result),
    )
    notes = list(_notes(result, request, kernels))
    cells = [_item(counts, cell) for counts in kernels for cell in counts.cells]
    output = CountsDocument(
        **session.fields_of(result, notes),
        events=request.events.name,
        groups=tuple(request.groups),
        values=tuple(output_of(CountRow, item) for item in _values_of(kernels)),
        comparisons=tuple(data.comparisons(row for counts in kernels for row in counts.comparisons)),
        not_counted=tuple(output_of(NotCountedRow, item) for item in cells if item["counts"].invalid),
    )
    return Report(
        session.title(manifest),
        _headline(kernels),
        (*map(_section, kernels), _events(request), *session.sections(result)),
        tuple(session.facts(result)),
        tuple(notes),
        "counters",
        {
            "counts.csv": Table.of_outputs(RawCountRow, _raw(kernels, request.events)),
            "counters.csv": Table.of_outputs(CountRow, output.values),
            "comparisons.csv": Table.of_outputs(ComparisonRow, output.comparisons),
        },
        output,
        any(item["counts"].is_fault for item in cells),
    )


def _item(counts: KernelCounts, cell: CellCounts, **further: Any) -> dict[str, Any]:
    """A configuration with what outputs show of it: a quantity, or a run and one of its events."""
    return {"benchmark": counts.benchmark, "configuration": cell.cell.measured, "counts": cell, **further}


def _values_of(kernels: Sequence[KernelCounts]) -> Iterator[Mapping[str, Any]]:
    """Each quantity of each configuration."""
    for counts in kernels:
        for quantity in counts.quantities:
            for cell in counts.cells:
                if cell.rounds:
                    value, rounds = cell.value(quantity.name), len(cell.by_round(quantity.name)[0])
                    yield _item(counts, cell, quantity=quantity, value=value, rounds=rounds)


def _raw(kernels: Sequence[KernelCounts], file: EventFile) -> Iterator[RawCountRow]:
    """Each count of each run."""
    for counts in kernels:
        for cell in counts.cells:
            for run in cell.runs:
                for name, number in run.raw.items():
                    further = {"run": run, "name": name, "count": number, "event": file.events[name]}
                    yield output_of(RawCountRow, _item(counts, cell, **further))


def _headline(kernels: Sequence[KernelCounts]) -> str:
    """Of the significantly lower counts, the count that huge pages lower most, with its time ratio."""
    lowered = []
    for counts in kernels:
        rows = counts.of("pages")
        names = {quantity.name for quantity in counts.quantities if quantity.kind == "count"}
        times = {row.cell: row.ratio for row in rows if row.quantity.name == TIME}
        for row in rows:
            if row.quantity.name in names and row.direction == "lower" and row.ratio is not None:
                time = times.get(row.cell)
                of_time = "" if time is None else f"; time ratio {quotient_text(time)}"
                where = f"{counts.benchmark.title}, {row.cell.compiler}, {row.configuration.hugepages}"
                text = (
                    f"{row.quantity.label} most, to {quotient_text(row.ratio)} of the count without{of_time}"
                )
                lowered.append((row.ratio.median, f"Huge pages lower {text} ({where})."))
    return min(lowered)[1] if lowered else "Huge pages lower no count of events significantly."


def _notes(result: Result, request: CountersPart, kernels: Sequence[KernelCounts]) -> Iterator[str]:
    """Which events were counted and why, what is missing, and how well the runs agree."""
    if result.altered:
        yield f"No counts: {result.altered}."
    yield f"Counted: {request.events.title}; {request.reason}."
    if request.remedy:
        yield f"For more events: {request.remedy}."
    if request.events.is_software:
        yield (
            "These are events of the kernel; TLB and cache misses need hardware counters. pagewise doctor "
            "lists what is available."
        )
    if request.region:
        yield f"Counted in the region {request.region} only."
    yield from session.notes(result)
    for counts in kernels:
        yield from _kernel_notes(counts)


def _kernel_notes(counts: KernelCounts) -> Iterator[str]:
    """What is missing; configurations that miss the same share a line."""
    together: dict[str, list[str]] = {}
    for cell in counts.cells:
        name = f"{cell.cell.compiler} {label(counts.benchmark, cell.cell.measured)}"
        if cell.invalid:
            remedy = f" (remedy: {cell.remedy})" if cell.remedy else ""
            together.setdefault(f"not counted: {cell.invalid}{remedy}", []).append(name)
        for note in cell.notes:
            together.setdefault(note, []).append(name)
    for note, names in together.items():
        names_text = "all configurations" if len(names) == len(counts.cells) > 1 else ", ".join(names)
        yield f"{counts.benchmark.title}, {names_text}: {note}"
    if spreads := [cell.spread for cell in counts.cells if cell.spread is not None]:
        widest = percent_text(max(spreads))
        yield f"{counts.benchmark.title}: the runs of a round agree in cycles within {widest}."


def _section(counts: KernelCounts) -> Section:
    """A kernel's tables."""
    title, kernel = counts.benchmark.title, counts.benchmark
    measured: dict[str, list[Column]] = {}
    cells = [cell for cell in counts.cells if cell.rounds]
    for cell in cells:
        values = {quantity.name: cell.value(quantity.name) for quantity in counts.quantities}
        column = comparisons.quantity_column("", label(kernel, cell.cell.measured), values, "count")
        measured.setdefault(cell.cell.compiler, []).append(column)
    tables = [
        *comparisons.count_tables(counts.of("pages"), "Page policy : none", counts.quantities),
        *comparisons.count_tables(counts.of("compilers"), "Compiler : compiler, by pages", counts.quantities),
        *_values(counts, measured),
    ]
    blocks: list[Block] = [Text(kernel.summary, style="dim"), *tables]
    if not tables:
        blocks.append(Text("Nothing was counted.", style="note"))
    return Section(title, tuple(blocks), f"kernel-{kernel.name}")


def _values(counts: KernelCounts, by_compiler: Mapping[str, Sequence[Column]]) -> Iterator[Table]:
    """Counts and rates, then the load imbalance of counts, a table for each compiler."""
    label = Column("quantity", wrap=True, get="label")
    for title, first, is_imbalance in (
        ("Counts and rates per pass", (label, Column("unit")), False),
        ("Load imbalance over threads, maximum : mean", (label,), True),
    ):
        shown = [each for each in counts.quantities if (each.kind == "imbalance") == is_imbalance]
        for compiler, columns in by_compiler.items() if shown else ():
            yield Table.of(f"{title}, {compiler}", (*first, *columns), shown)


_EVENTS = (
    Column("group", merged=True, get=lambda row: row[0].title),
    Column("event", get=lambda row: row[1]),
    Column("native", "PAPI name", "code", get=lambda row: row[2].native),
    Column("unit", get=lambda row: row[2].unit),
    Column("description", wrap=True, get=lambda row: row[2].description),
    Column("source", wrap=True, get=lambda row: row[2].source or row[3]),
)
_RATES = (
    Column("rate", get=lambda row: row[0].title),
    Column("formula", kind="code", get=lambda row: row[0].formula),
    Column("unit", get=lambda row: row[0].unit),
    Column("source", wrap=True, get=lambda row: row[0].source or row[1]),
)


def _events(request: CountersPart) -> Section:
    file = request.events
    events = [
        (group, name, file.events[name], file.source)
        for group in file.groups
        if group.name in request.groups
        for name in group.events
    ]
    by_group = Table.of("Events by group", _EVENTS, events)
    rates = Table.of("Rates", _RATES, [(metric, file.source) for metric in file.metrics])
    return Section(
        "Events",
        (
            Text(f"{file.title}. {file.source}"),
            Section("Events counted together", (by_group,), folded=True),
            Section("Formulas of rates", (rates,), folded=True),
        ),
        only="page",
    )
