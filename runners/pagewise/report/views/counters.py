"""Counts of events: with : without huge pages, compiler : compiler, and all values, as in the studies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pagewise.analysis.counted import CellCounts, Compared, KernelCounts, count
from pagewise.analysis.counter_runs import TIME
from pagewise.analysis.result import excluding
from pagewise.core.benchmark import Benchmark
from pagewise.core.dimensions import values_of
from pagewise.core.manifest_parts import CountersPart
from pagewise.core.result import MANIFEST, Result
from pagewise.core.units import percent_text
from pagewise.report.model import (
    Block,
    Cell,
    Column,
    Kind,
    Report,
    Section,
    Table,
    Text,
    Value,
    quotient_text,
    record_of,
)
from pagewise.report.views import session
from pagewise.report.views.data import verdict_fields
from pagewise.report.views.wording import label
from pagewise.stack.events import EventFile

_VERDICT = verdict_fields("verdict.change")


@dataclass(frozen=True)
class Counted:
    """A result of counting with everything its report needs."""

    result: Result
    request: CountersPart
    file: EventFile
    kernels: list[KernelCounts]


def view(result: Result) -> Report:
    """The report of a result of counting. Raises FormatError when its event file is not valid."""
    counted = _analyse(result)
    notes, sections = _notes(counted), [_section(counts) for counts in counted.kernels]
    rows = {"counts.csv": _raw_rows, "counters.csv": _value_rows, "ratios.csv": _ratio_rows}
    tables = {name: Table.of_records(list(get(counted))) for name, get in rows.items()}
    return Report(
        session.title(result.manifest),
        _headline(counted),
        (*sections, _events(counted), *session.sections(result)),
        (),
        tuple(session.facts(result)),
        tuple(notes),
        "counters",
        tables,
        {
            "schema": "pagewise.counts/1",
            **session.data(result),
            "events": counted.file.name,
            "groups": counted.request.groups,
            "notes": notes,
            "values": tables["counters.csv"],
            "ratios": tables["ratios.csv"],
            "not_counted": [
                {
                    **_who(counts.kernel, cell),
                    "code": cell.code,
                    "reason": cell.invalid,
                    "remedy": cell.remedy,
                }
                for counts in counted.kernels
                for cell in counts.cells
                if cell.invalid
            ],
        },
        any(cell.is_fault for counts in counted.kernels for cell in counts.cells),
    )


def _analyse(result: Result) -> Counted:
    """Analyses a result of counting. Raises FormatError when its event file is not valid."""
    manifest = result.manifest
    request = manifest.counters
    assert request is not None
    file = EventFile.from_dict(dict(request.events), result.folder / MANIFEST)
    kernels = count(
        result.subjects,
        result.records,
        file,
        request.groups,
        region=request.region,
        seed=manifest.seed,
        excluding=excluding(result),
    )
    return Counted(result, request, file, kernels)


def _headline(counted: Counted) -> str:
    """Of the significantly lower counts, the count that huge pages lower most, with its time ratio."""
    lowered = []
    for counts in counted.kernels:
        titles = {quantity.name: quantity.title for quantity in counts.quantities if quantity.kind == "count"}
        for column in counts.by_pages:
            where = f"{counts.kernel.title}, {column.cell.compiler}, {column.cell.measured.hugepages}"
            time = column.ratios.get(TIME)
            of_time = "" if time is None else f"; time ratio {quotient_text(time)}"
            for name, ratio in column.ratios.items():
                if name in titles and column.verdicts[name].change == "lower":
                    text = f"{titles[name]} most, to {quotient_text(ratio)} of the count without"
                    lowered.append((ratio.median, f"Huge pages lower {text}{of_time} ({where})."))
    return min(lowered)[1] if lowered else "Huge pages lower no count of events significantly."


def _notes(counted: Counted) -> list[str]:
    """Which events were counted and why, what is missing, and how well the runs agree."""
    request = counted.request
    lines = [f"No counts: {counted.result.altered}."] if counted.result.altered else []
    lines.append(f"Counted: {counted.file.title}; {request.reason}.")
    if request.remedy:
        lines.append(f"For more events: {request.remedy}.")
    if counted.file.is_software:
        lines.append(
            "These are events of the kernel; TLB and cache misses need hardware counters. pagewise doctor "
            "lists what is available."
        )
    if counted.request.region:
        lines.append(f"Counted in the region {counted.request.region} only.")
    lines += session.notes(counted.result)
    for counts in counted.kernels:
        lines += _kernel_notes(counts)
    return lines


def _kernel_notes(counts: KernelCounts) -> Iterator[str]:
    """What is missing; configurations that miss the same share a line."""
    together: dict[str, list[str]] = {}
    for cell in counts.cells:
        name = f"{cell.cell.compiler} {label(counts.kernel, cell.cell.measured)}"
        if cell.invalid:
            remedy = f" (remedy: {cell.remedy})" if cell.remedy else ""
            together.setdefault(f"not counted: {cell.invalid}{remedy}", []).append(name)
        for note in cell.notes:
            together.setdefault(note, []).append(name)
    for note, names in together.items():
        who = "all configurations" if len(names) == len(counts.cells) > 1 else ", ".join(names)
        yield f"{counts.kernel.title}, {who}: {note}"
    if spreads := [cell.spread for cell in counts.cells if cell.spread is not None]:
        widest = percent_text(max(spreads))
        yield f"{counts.kernel.title}: the runs of a round agree in cycles within {widest}."


def _section(counts: KernelCounts) -> Section:
    """A kernel's tables."""
    title, kernel = counts.kernel.title, counts.kernel
    measured: dict[str, list[Column]] = {}
    cells = [cell for cell in counts.cells if cell.rounds]
    for cell in cells:
        values = {quantity.name: cell.value(quantity.name) for quantity in counts.quantities}
        column = _column("", label(kernel, cell.cell.measured), values, "count")
        measured.setdefault(cell.cell.compiler, []).append(column)
    tables = [
        *_ratios(counts, _by_pages_title(counts), counts.by_pages),
        *_ratios(counts, "Compiler : compiler, by pages", counts.by_compiler),
        *_values(counts, measured),
        *_imbalance(counts, measured),
    ]
    blocks: list[Block] = [Text(kernel.summary, style="dim"), *tables]
    if not tables:
        blocks.append(Text("Nothing was counted.", style="note"))
    return Section(title, tuple(blocks), f"kernel-{kernel.name}")


def _column(above: str, name: str, values: Mapping[str, Value | Cell], kind: Kind = "quotient") -> Column:
    """A column of a table of quantities, with values by quantity name."""
    full = f"{above} {name}".strip()
    return Column(full, name, kind, above=above, get=lambda quantity: values.get(quantity.name, Cell(None)))


def _by_pages_title(counts: KernelCounts) -> str:
    """Not every policy of a program is about huge pages."""
    return "Page policy : none" if counts.kernel.unit == "run" else "With : without huge pages"


def _ratios(counts: KernelCounts, title: str, compared: Sequence[Compared]) -> Iterator[Table]:
    columns = [Column("quantity", wrap=True, get="title")]
    for column in compared:
        above = column.cell.compiler + (f" : {column.other.compiler}" if column.by_compiler else "")
        ratios = {
            name: Cell(verdict.ratio, "strong" if verdict.reason is None else "")
            for name, verdict in column.verdicts.items()
        }
        columns.append(_column(above, label(counts.kernel, column.cell.measured), ratios))
    if compared:
        known = {name for column in compared for name in column.ratios}
        yield Table.of(title, columns, [quantity for quantity in counts.quantities if quantity.name in known])


def _values(counts: KernelCounts, by_compiler: Mapping[str, Sequence[Column]]) -> Iterator[Table]:
    """Counts and rates, a table for each compiler."""
    first = (Column("quantity", wrap=True, get="title"), Column("unit"))
    shown = [quantity for quantity in counts.quantities if quantity.kind != "imbalance"]
    for compiler, columns in by_compiler.items():
        yield Table.of(f"Counts and rates per pass, {compiler}", (*first, *columns), shown)


def _imbalance(counts: KernelCounts, by_compiler: Mapping[str, Sequence[Column]]) -> Iterator[Table]:
    """The load imbalance of each count, a table for each compiler; none with one thread."""
    shown = [quantity for quantity in counts.quantities if quantity.kind == "imbalance"]
    for compiler, columns in by_compiler.items() if shown else ():
        title = f"Load imbalance over threads, maximum : mean, {compiler}"
        yield Table.of(title, (Column("quantity", wrap=True, get="title"), *columns), shown)


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


def _events(counted: Counted) -> Section:
    request = counted.request
    file = counted.file
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
            Text(f"{counted.file.title}. {counted.file.source}"),
            Section("Events counted together", (by_group,), folded=True),
            Section("Formulas of rates", (rates,), folded=True),
        ),
        only="page",
    )


def _who(kernel: Benchmark, cell: CellCounts) -> dict[str, Value]:
    return {"kernel": kernel.name, **values_of(cell.cell.measured)}


def _raw_rows(counted: Counted) -> Iterator[dict[str, Value]]:
    """A row for each count of each run: `count` is of the whole run, of `passes` passes."""
    for counts in counted.kernels:
        for cell in counts.cells:
            for run in cell.runs:
                for name, raw in run.raw.items():
                    event = counted.file.events[name]
                    yield {
                        **_who(counts.kernel, cell),
                        "round": run.round,
                        "position": run.position,
                        "group": run.group,
                        "event": name,
                        "native": event.native,
                        "unit": event.unit,
                        "count": raw,
                        "passes": run.passes,
                        "seconds_per_pass": run.seconds,
                    }


def _value_rows(counted: Counted) -> Iterator[dict[str, Value]]:
    """A row for each quantity and configuration, per pass."""
    for counts in counted.kernels:
        for quantity in counts.quantities:
            names = {"quantity": quantity.name, "kind": quantity.kind, "unit": quantity.unit}
            for cell in (cell for cell in counts.cells if cell.rounds):
                yield {
                    **_who(counts.kernel, cell),
                    **names,
                    "value": cell.value(quantity.name),
                    "rounds": len(cell.by_round(quantity.name)),
                    "source": quantity.source,
                }


def _ratio_rows(counted: Counted) -> Iterator[dict[str, Value]]:
    """A row for each ratio: of pages with : without, or of two compilers."""
    for counts in counted.kernels:
        for column in counts.compared:
            other = column.other.measured
            for name, verdict in column.verdicts.items():
                yield {
                    "kernel": counts.kernel.name,
                    "ratio_of": "compilers" if column.by_compiler else "pages",
                    **values_of(column.cell.measured),
                    "reference": other.compiler if column.by_compiler else other.hugepages,
                    "quantity": name,
                    **record_of(_VERDICT, {"verdict": verdict}),
                }
