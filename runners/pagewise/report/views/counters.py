"""Counts of events: with : without huge pages, compiler : compiler, and all values, as in the studies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pagewise.analysis.counted import Compared, Counts, KernelCounts, count
from pagewise.analysis.counter_runs import TIME
from pagewise.analysis.result import excluding
from pagewise.core.dimensions import values_of
from pagewise.core.kernel import Kernel
from pagewise.core.result import MANIFEST, Result
from pagewise.core.units import percent_text
from pagewise.report.model import (
    Block,
    Cell,
    Column,
    Report,
    Section,
    Table,
    Text,
    Value,
    Values,
    data_table,
    quotient_text,
    value_of,
)
from pagewise.report.views import session
from pagewise.report.views.data import verdict_fields
from pagewise.report.views.wording import label
from pagewise.stack.events import EventFile
from pagewise.workloads.counters.published import Column as PublishedColumn
from pagewise.workloads.counters.published import Published, read_published

_VERDICT = verdict_fields("verdict.change")
_READING = (
    Text(
        "A configuration runs once for each group of events; values are per pass through the work, medians "
        "over the rounds.",
        "Values",
    ),
    Text("paired by round; bold ones differ from 1 after correction, beyond the noise floor.", "Ratios"),
    Text("not counted, or nothing to divide by.", "An empty cell"),
)


@dataclass(frozen=True)
class Counted:
    """A result of counting with all that its report needs."""

    result: Result
    file: EventFile
    kernels: list[KernelCounts]
    published: list[tuple[Published, EventFile]]

    def of(self, kind: str, kernel: Kernel) -> list[PublishedColumn]:
        """The published columns of a kernel: `columns`, `by_pages`, `by_compiler`."""
        return [
            column for theirs, file in self.published for column in getattr(theirs, kind)(kernel.title, file)
        ]


def view(result: Result) -> Report:
    """The report of a result of counting. Raises FormatError when its event file is not valid."""
    found = counted(result)
    notes = _notes(found)
    values, ratios = _union(_value_rows(found)), _union(_ratio_rows(found))
    return Report(
        session.title(result.manifest),
        _headline(found),
        (*map(_section, _tables(found)), _events(found), *session.sections(result.manifest)),
        (),
        tuple(session.facts(result.manifest)),
        tuple(notes),
        _READING,
        {"counts.csv": _union(_raw_rows(found)), "counters.csv": values, "ratios.csv": ratios},
        {
            "schema": "pagewise.counts/1",
            **session.data(result),
            "events": found.file.name,
            "groups": result.manifest["counters"]["groups"],
            "notes": notes,
            "values": values,
            "ratios": ratios,
            "not_counted": [
                {**_who(one.kernel, cell), "code": cell.code, "reason": cell.invalid, "remedy": cell.remedy}
                for one in found.kernels
                for cell in one.cells
                if cell.invalid
            ],
        },
        any(cell.is_fault for one in found.kernels for cell in one.cells),
    )


def counted(result: Result) -> Counted:
    """Analyses a result of counting. Raises FormatError when its event file is not valid."""
    manifest = result.manifest
    wanted = manifest["counters"]
    file = EventFile.from_dict(wanted["events"], result.folder / MANIFEST)
    kernels = count(
        result.subjects,
        result.records,
        file,
        wanted["groups"],
        region=wanted["region"],
        seed=manifest["seed"],
        excluding=excluding(result),
    )
    published = []
    if "published_events" in wanted:
        theirs = EventFile.from_dict(wanted["published_events"], result.folder / MANIFEST)
        published = [(one, theirs) for one in read_published() if one.events == theirs.name]
    return Counted(result, file, kernels, published)


def _headline(found: Counted) -> str:
    """The count that huge pages lower most, of those with a verdict, and what the time does."""
    lowest: tuple[float, str] | None = None
    for one in found.kernels:
        counts = {quantity.name: quantity.title for quantity in one.quantities if quantity.kind == "count"}
        for column in one.by_pages:
            for name, verdict in column.verdicts.items():
                ratio = verdict.ratio
                if name not in counts or ratio is None or verdict.change != "lower":
                    continue
                time = column.ratios.get(TIME)
                text = (
                    f"Huge pages lower {counts[name]} most, to {quotient_text(ratio)} of the count without"
                    + ("" if time is None else f"; time ratio {quotient_text(time)}")
                    + f" ({one.kernel.title}, {column.cell.compiler}, {column.cell.measured.hugepages})."
                )
                lowest = min(filter(None, (lowest, (ratio.median, text))))
    return "Huge pages lower no count of events significantly." if lowest is None else lowest[1]


def _notes(found: Counted) -> list[str]:
    """Which events were counted and why, what is missing, how well the runs agree."""
    wanted = found.result.manifest["counters"]
    lines = [f"No counts: {found.result.altered}."] if found.result.altered else []
    lines.append(f"Counted: {found.file.title}; {wanted['reason']}.")
    if wanted["remedy"]:
        lines.append(f"For more events: {wanted['remedy']}.")
    if found.file.is_software:
        lines.append(
            "These are events of the kernel; TLB and cache misses need hardware counters. pagewise doctor "
            "lists what is available."
        )
    if wanted["region"]:
        lines.append(f"Counted in the region {wanted['region']} only.")
    if wanted["multiplexed"]:
        lines.append("Multiplexed: each count is estimated from its share of the time.")
    lines += session.notes(found.result)
    for one in found.kernels:
        lines += _kernel_notes(one)
    titles = {one.kernel.title for one in found.kernels}
    for publication, _ in found.published:
        for test in sorted(titles & publication.tests.keys()):
            lines.append(f"{test}, published: {publication.title}. {publication.source}")
    return lines


def _kernel_notes(one: KernelCounts) -> Iterator[str]:
    """What is missing, once for all configurations that miss it."""
    together: dict[str, list[str]] = {}
    for cell in one.cells:
        name = f"{cell.cell.compiler} {label(one.kernel, cell.cell.measured)}"
        if cell.invalid:
            remedy = f" (remedy: {cell.remedy})" if cell.remedy else ""
            together.setdefault(f"not counted: {cell.invalid}{remedy}", []).append(name)
        for note in cell.notes:
            together.setdefault(note, []).append(name)
    for note, names in together.items():
        who = "all configurations" if len(names) == len(one.cells) > 1 else ", ".join(names)
        yield f"{one.kernel.title}, {who}: {note}"
    spreads = [cell.spread for cell in one.cells if cell.spread is not None]
    if spreads:
        yield f"{one.kernel.title}: the runs of a round agree in cycles within {percent_text(max(spreads))}."


def _section(pair: tuple[KernelCounts, list[tuple[Table, bool]]]) -> Section:
    """A kernel's tables; those of published values alone are for the files."""
    one, tables = pair
    blocks: list[Block] = [Text(one.kernel.summary, style="dim")]
    blocks += [table for table, published in tables if not published]
    theirs = tuple(table for table, published in tables if published)
    if theirs:
        blocks.append(Section(f"{one.kernel.title}: published values", theirs, only="files", folded=True))
    if not tables:
        blocks.append(Text("Nothing was counted.", style="note"))
    return Section(one.kernel.title, tuple(blocks), f"kernel-{one.kernel.name}")


def _tables(found: Counted) -> Iterator[tuple[KernelCounts, list[tuple[Table, bool]]]]:
    """The tables of each kernel, and whether all of their values are published ones."""
    for one in found.kernels:
        ratios = [
            _ratios(one, _by_pages_title(one), one.by_pages, found.of("by_pages", one.kernel)),
            _ratios(
                one, "Compiler : compiler, by pages", one.by_compiler, found.of("by_compiler", one.kernel)
            ),
        ]
        yield one, [(table, False) for table in ratios if table is not None] + list(_values(found, one))


def _by_pages_title(one: KernelCounts) -> str:
    """Not every policy of a program is about huge pages."""
    return "Page policy : none" if one.kernel.data.get("program") else "With : without huge pages"


def _ratios(
    one: KernelCounts, title: str, compared: Sequence[Compared], published: Sequence[PublishedColumn]
) -> Table | None:
    if not compared:
        return None
    heads = [Column("quantity", wrap=True)]
    for column in compared:
        above = column.cell.compiler + (f" : {column.other.compiler}" if column.by_compiler else "")
        heads.append(_head(above, label(one.kernel, column.cell.measured)))
    heads += [_head(f"{column.who}, published", column.policy) for column in published]
    rows: list[Values] = []
    for quantity in one.quantities:
        verdicts = [column.verdicts.get(quantity.name) for column in compared]
        if any(one is not None and one.ratio is not None for one in verdicts):
            ours = (
                Cell(None if one is None else one.ratio, "strong" if one and one.reason is None else "")
                for one in verdicts
            )
            theirs = (Cell(column.values.get(quantity.name), "reference") for column in published)
            rows.append((quantity.title, *ours, *theirs))
    return Table(title, tuple(heads), tuple(rows))


def _values(found: Counted, one: KernelCounts) -> Iterator[tuple[Table, bool]]:
    """Counts and rates, a table for each compiler, then the published ones."""
    cells = [cell for cell in one.cells if cell.rounds]
    columns: dict[tuple[str, bool], list[tuple[str, Mapping[str, float | None]]]] = {}
    for cell in cells:
        values = {quantity.name: cell.value(quantity.name) for quantity in one.quantities}
        name = label(one.kernel, cell.cell.measured)
        columns.setdefault((cell.cell.compiler, False), []).append((name, values))
    for column in found.of("columns", one.kernel) if cells else ():
        columns.setdefault((f"{column.who}, published", True), []).append((column.policy, column.values))
    for (who, published), several in columns.items():
        heads = (
            Column("quantity", wrap=True),
            Column("unit"),
            *(_head("", name, "count") for name, _ in several),
        )
        rows = tuple(
            (quantity.title, quantity.unit, *(values.get(quantity.name) for _, values in several))
            for quantity in one.quantities
        )
        yield Table(f"Counts and rates per pass, {who}", heads, rows), published


def _head(above: str, name: str, kind: str = "quotient") -> Column:
    return Column(f"{above} {name}".strip(), name, kind, above=above)  # type: ignore[arg-type]


def _events(found: Counted) -> Section:
    wanted = found.result.manifest["counters"]
    events = tuple(
        (group.title, event.name, event.native, event.unit, event.description, event.source)
        for group in found.file.groups
        if wanted["multiplexed"] or group.name in wanted["groups"]
        for event in group.events
    )
    rates = tuple((one.title, one.formula.text, one.unit, one.source) for one in found.file.metrics)
    columns = (
        Column("group", merged=True),
        Column("event"),
        Column("native", "PAPI name", "code"),
        Column("unit"),
        Column("description", wrap=True),
        Column("source", wrap=True),
    )
    formulas = (Column("rate"), Column("formula", kind="code"), Column("unit"), Column("source", wrap=True))
    return Section(
        "Events",
        (
            Text(f"{found.file.title}. {found.file.source}"),
            Section("Events counted together", (Table("Events by group", columns, events),), folded=True),
            Section("Formulas of rates", (Table("Rates", formulas, rates),), folded=True),
        ),
        only="page",
    )


def _union(rows: Iterator[Mapping[str, Value]]) -> Table:
    """A table with all names of its rows."""
    several = list(rows)
    return data_table(list(dict.fromkeys(name for row in several for name in row)), several)


def _who(kernel: Kernel, cell: Counts) -> dict[str, Value]:
    return {"kernel": kernel.name, **values_of(cell.cell.measured)}


def _raw_rows(found: Counted) -> Iterator[dict[str, Value]]:
    """A row for each count of each run: `count` is of the whole run, of `passes` passes."""
    for one in found.kernels:
        for cell in one.cells:
            for run in cell.runs:
                for name, raw in run.raw.items():
                    event = found.file.events[name]
                    yield {
                        **_who(one.kernel, cell),
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


def _value_rows(found: Counted) -> Iterator[dict[str, Value]]:
    """A row for each quantity and configuration, per pass; published ones among them."""
    for one in found.kernels:
        for quantity in one.quantities:
            names = {"quantity": quantity.name, "kind": quantity.kind, "unit": quantity.unit}
            for cell in (cell for cell in one.cells if cell.rounds):
                yield {
                    **_who(one.kernel, cell),
                    **names,
                    "value": cell.value(quantity.name),
                    "rounds": len(cell.by_round(quantity.name)),
                    "source": quantity.source,
                }
            for theirs, file in found.published:
                for column in theirs.columns(one.kernel.title, file):
                    yield {
                        "kernel": one.kernel.name,
                        "compiler": f"{column.who} (published)",
                        "hugepages": column.policy,
                        **names,
                        "value": column.values.get(quantity.name),
                        "source": theirs.source,
                    }


def _ratio_rows(found: Counted) -> Iterator[dict[str, Value]]:
    """A row for each ratio: of pages with : without, or of two compilers; published ones among them."""
    for one in found.kernels:
        for column in one.compared:
            other = column.other.measured
            for name, verdict in column.verdicts.items():
                yield {
                    "kernel": one.kernel.name,
                    "table": "compilers" if column.by_compiler else "pages",
                    **values_of(column.cell.measured),
                    "reference": other.compiler if column.by_compiler else other.hugepages,
                    "quantity": name,
                    **{name: value_of({"verdict": verdict}, get) for name, get in _VERDICT.items()},
                }
        known = {quantity.name for quantity in one.quantities}
        for table, kind in (("pages", "by_pages"), ("compilers", "by_compiler")):
            for published in found.of(kind, one.kernel):
                for name in (name for name in published.values if name in known):
                    yield {
                        "kernel": one.kernel.name,
                        "table": table,
                        "compiler": f"{published.who} (published)",
                        "hugepages": published.policy,
                        "quantity": name,
                        "ratio": published.values[name],
                    }
