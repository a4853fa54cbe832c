"""The studies' three tables of counters: with : without huge pages, compiler : compiler, and all values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import rich.table
from rich import box
from rich.console import Console
from rich.text import Text

from pagewise.analysis.counted import Compared, Counts, KernelCounts, Quantity, count
from pagewise.analysis.result import excluding
from pagewise.analysis.verdict import Verdict
from pagewise.core.dimensions import values_of
from pagewise.core.errors import RefusedError
from pagewise.core.files import table_text, write_inside
from pagewise.core.kernel import Kernel
from pagewise.core.result import MANIFEST, Result
from pagewise.report import words
from pagewise.report.data import about
from pagewise.report.latex import escaped
from pagewise.stack.events import EventFile
from pagewise.workloads.counters.published import Column as PublishedColumn
from pagewise.workloads.counters.published import Published, read_published

COUNTS, VALUES, RATIOS, LATEX, REPORT = (
    "counts.csv",
    "counters.csv",
    "ratios.csv",
    "counters.tex",
    "report.html",
)
_FIRST_COLUMN = 24  # of a terminal, at the least
_TEX_FIRST_COLUMN = r"0.32\linewidth"
TableKind = Literal["pages", "compilers", "values"]


@dataclass(frozen=True)
class Column:
    """The head of a column in two lines, and whether it is of a publication."""

    above: str
    below: str
    published: bool = False


@dataclass(frozen=True)
class Row:
    """A quantity with a text for each column; `told` marks ratios with a verdict."""

    title: str
    unit: str
    kind: str
    cells: tuple[str, ...]
    told: tuple[bool, ...]


@dataclass(frozen=True)
class Table:
    """One of the three tables of a kernel."""

    kernel: str
    kind: TableKind
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Counted:
    """A result of counting with all that its reports need."""

    result: Result
    file: EventFile
    kernels: list[KernelCounts]
    published: list[tuple[Published, EventFile]]

    @property
    def tables(self) -> list[Table]:
        """The three tables of each kernel, those that have columns."""
        return [table for one in self.kernels for table in _tables(one, self.published) if table.columns]

    @property
    def notes(self) -> list[str]:
        """What a reader must know: which events and why, what is missing, how well the runs agree."""
        told = self.result.manifest["counters"]
        lines = [f"No counts: {self.result.altered}."] if self.result.altered else []
        lines.append(f"Counted: {self.file.title}; {told['reason']}.")
        if told["remedy"]:
            lines.append(f"For more events: {told['remedy']}.")
        if self.file.is_software:
            lines.append(
                "These are events of the kernel; TLB and cache misses need hardware counters. "
                "`pagewise doctor` tells what there is."
            )
        if told["region"]:
            lines.append(f"Of the region {told['region']} alone.")
        if told["multiplexed"]:
            lines.append(
                "Counted by turns (multiplexed): each count is estimated from its share of the time."
            )
        lines += words.notes(self.result.manifest, [], self.result.records)
        for one in self.kernels:
            lines += _kernel_notes(one)
        titles = {one.kernel.title for one in self.kernels}
        for publication, _ in self.published:
            for test in sorted(titles & publication.tests.keys()):
                lines.append(f"{test}, published: {publication.title}. {publication.source}")
        return lines


def counted(result: Result) -> Counted:
    """Analyses a result of counting. Raises FormatError when its event file is none."""
    manifest = result.manifest
    told = manifest["counters"]
    file = EventFile.from_dict(told["events"], result.folder / MANIFEST)
    kernels = count(
        result.subjects,
        result.records,
        file,
        told["groups"],
        region=told["region"],
        seed=manifest["seed"],
        excluding=excluding(result),
    )
    published = []
    if "published_events" in told:
        theirs = EventFile.from_dict(told["published_events"], result.folder / MANIFEST)
        published = [(one, theirs) for one in read_published() if one.events == theirs.name]
    return Counted(result, file, kernels, published)


def show(console: Console, result: Result) -> Counted:
    """Analyses the records, prints the tables and the notes. Raises FormatError."""
    found = counted(result)
    for table in found.tables:
        for part in _parts(table):
            if not all(column.published for column in part.columns):  # those are in the files
                console.print()
                console.print(_rich_table(part))
    console.print()
    for note in found.notes:
        console.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
    if found.result.skipped:
        lines = "; ".join(str(line) for line in found.result.skipped)
        console.print(Text(f"no valid records, left out: {lines}", style="yellow"), soft_wrap=True)
    return found


def to_dict(result: Result, found: Counted) -> dict[str, Any]:
    """Schema pagewise.counts/1: the values and ratios of the tables, and each configuration's runs."""
    return {
        "schema": "pagewise.counts/1",
        **about(result),
        "events": found.file.name,
        "groups": result.manifest["counters"]["groups"],
        "notes": found.notes,
        "values": list(_value_rows(found)),
        "ratios": list(_ratio_rows(found)),
        "not_counted": [
            {**_who(one.kernel, cell), "code": cell.code, "reason": cell.invalid, "remedy": cell.remedy}
            for one in found.kernels
            for cell in one.cells
            if cell.invalid
        ],
    }


def write_files(result: Result, found: Counted) -> Path:
    """Writes counts.csv, counters.csv, ratios.csv, counters.tex and report.html; the last one's path.

    Raises RefusedError when the disk refuses.
    """
    from pagewise.report.counters_html import html

    folder = result.folder
    try:
        write_inside(folder, COUNTS, _csv(_raw_rows(found)))
        write_inside(folder, VALUES, _csv(_value_rows(found)))
        write_inside(folder, RATIOS, _csv(_ratio_rows(found)))
        write_inside(folder, LATEX, latex(found))
        write_inside(folder, REPORT, html(found))
    except OSError as fault:
        raise RefusedError(
            f"the report cannot be written: {fault.strerror}",
            where=folder,
            remedy=f"free some space or allow writing, then: pagewise report {folder}",
        ) from fault
    return folder / REPORT


def is_faulty(found: Counted | None) -> bool:
    """Whether a run crashed, or its result or pages were wrong."""
    return any(cell.is_fault for one in (found.kernels if found else ()) for cell in one.cells)


def ratio_text(value: float | None) -> str:
    """`0.97`, small ones with the digits that they need: `0.0002`; `N/A` as in the studies."""
    if value is None:
        return "N/A"
    return f"{value:.2f}" if abs(value) >= 0.095 or value == 0 else f"{value:.1g}"


def value_text(quantity: Quantity, value: float | None) -> str:
    """Large values with all their digits, rates with three."""
    if value is None:
        return "N/A"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}"


def _tables(one: KernelCounts, published: Sequence[tuple[Published, EventFile]]) -> Iterator[Table]:
    kernel = one.kernel

    def of(kind: str) -> list[PublishedColumn]:
        return [c for theirs, file in published for c in getattr(theirs, kind)(kernel.title, file)]

    yield _ratios(one, "pages", "With : without huge pages", one.by_pages, of("by_pages"))
    yield _ratios(one, "compilers", "Compiler : compiler, by pages", one.by_compiler, of("by_compiler"))
    cells, theirs = [cell for cell in one.cells if cell.rounds], of("columns")
    columns = [Column(cell.cell.compiler, words.label(kernel, cell.cell.measured)) for cell in cells]
    columns += [Column(f"{c.who}, published", c.policy, True) for c in theirs] if cells else []
    rows = [
        Row(
            quantity.title,
            quantity.unit,
            quantity.kind,
            (
                *(value_text(quantity, cell.value(quantity.name)) for cell in cells),
                *(value_text(quantity, column.values.get(quantity.name)) for column in theirs),
            ),
            (False,) * len(columns),
        )
        for quantity in one.quantities
    ]
    yield Table(kernel.title, "values", "Counts and rates of one pass", tuple(columns), tuple(rows))


def _ratios(
    one: KernelCounts,
    kind: TableKind,
    title: str,
    compared: Sequence[Compared],
    published: Sequence[PublishedColumn],
) -> Table:
    columns = [_column(one.kernel, column) for column in compared]
    if columns:
        columns += [Column(f"{column.who}, published", column.policy, True) for column in published]
    rows = []
    for quantity in one.quantities:
        measured = [column.ratios.get(quantity.name) for column in compared]
        verdicts = [column.verdicts.get(quantity.name) for column in compared]
        texts = [ratio_text(None if ratio is None else ratio.median) for ratio in measured]
        texts += [ratio_text(column.values.get(quantity.name)) for column in published]
        told = [one is not None and one.reason is None for one in verdicts]
        if not any(ratio is not None for ratio in measured):
            continue
        rows.append(
            Row(
                quantity.title,
                quantity.unit,
                quantity.kind,
                tuple(texts),
                (*told, *(False for _ in published)),
            )
        )
    return Table(one.kernel.title, kind, title, tuple(columns), tuple(rows))


def _column(kernel: Kernel, column: Compared) -> Column:
    above = column.cell.compiler
    if column.by_compiler:
        above += f" : {column.other.compiler}"
    return Column(above, words.label(kernel, column.cell.measured))


def _kernel_notes(one: KernelCounts) -> Iterator[str]:
    """What is missing, told once for all configurations that miss it."""
    together: dict[str, list[str]] = {}
    for cell in one.cells:
        name = f"{cell.cell.compiler} {words.label(one.kernel, cell.cell.measured)}"
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
        yield f"{one.kernel.title}: the runs of a round agree in cycles within {100 * max(spreads):.1f} %."


def _parts(table: Table) -> Iterator[Table]:
    """A table in parts as wide as a terminal or a page: the values of each compiler apart."""
    if table.kind != "values":
        yield table
        return
    for above in dict.fromkeys(column.above for column in table.columns):
        here = [place for place, column in enumerate(table.columns) if column.above == above]
        rows = [
            replace(row, cells=tuple(row.cells[i] for i in here), told=tuple(row.told[i] for i in here))
            for row in table.rows
        ]
        columns = tuple(table.columns[i] for i in here)
        yield replace(table, title=f"{table.title}, {above}", columns=columns, rows=tuple(rows))


def _rich_table(table: Table) -> rich.table.Table:
    shown = rich.table.Table(
        title=Text(f"{table.kernel}: {table.title}", style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        padding=(0, 1),
    )
    shown.add_column("", overflow="fold", min_width=_FIRST_COLUMN)
    if table.kind == "values":
        shown.add_column("unit", no_wrap=True)
    for column in table.columns:
        head = column.below if table.kind == "values" else f"{column.above}\n{column.below}"
        shown.add_column(head, justify="right")
    kind = table.rows[0].kind if table.rows else ""
    for row in table.rows:
        if row.kind != kind:
            shown.add_section()
            kind = row.kind
        cells = [
            Text(text, style="dim" if column.published else "bold" if told else "")
            for text, column, told in zip(row.cells, table.columns, row.told, strict=True)
        ]
        shown.add_row(row.title, *([row.unit] if table.kind == "values" else []), *cells)
    return shown


def latex(found: Counted) -> str:
    """All tables for \\input into a document that uses booktabs and longtable: they fill more than a page."""
    lines = [
        f"% pagewise counters, {found.result.folder.name}. Needs: \\usepackage{{booktabs,longtable}}",
        *(f"% {note}" for note in found.notes),
    ]
    parts = [part for table in found.tables for part in _parts(table)]
    for number, table in enumerate(parts, start=1):
        lines += ["", *_latex_table(table, number)]
    return "\n".join(lines) + "\n"


def _latex_table(table: Table, number: int) -> Iterator[str]:
    units = table.kind == "values"
    first = 2 if units else 1
    yield r"{\small"
    yield rf"\begin{{longtable}}{{p{{{_TEX_FIRST_COLUMN}}}{'l' * units}{'r' * len(table.columns)}}}"
    yield rf"  \caption{{{escaped(table.kernel)}: {escaped(table.title)}}}\label{{tab:counters-{number}}}\\"
    head = [r"  \toprule", *_latex_head(table, first), r"  \midrule"]
    yield from (*head, r"  \endfirsthead", *head, r"  \endhead", r"  \bottomrule", r"  \endfoot")
    kind = table.rows[0].kind if table.rows else ""
    for row in table.rows:
        if row.kind != kind:
            yield r"  \addlinespace"
            kind = row.kind
        cells = [row.title, *([row.unit] if units else []), *row.cells]
        yield f"  {' & '.join(escaped(text) for text in cells)} \\\\"
    yield r"\end{longtable}}"


def _latex_head(table: Table, first: int) -> Iterator[str]:
    """The two lines of the head, a rule between; `first`: columns before those of the table."""
    above, rules, place = [], [], first + 1
    for name, width in heads(table):
        above.append(rf"\multicolumn{{{width}}}{{c}}{{{escaped(name)}}}")
        rules.append(rf"\cmidrule(lr){{{place}-{place + width - 1}}}")
        place += width
    below = " & ".join(escaped(column.below) for column in table.columns)
    yield f"  {' & ' * first}{' & '.join(above)} \\\\"
    yield f"  {' '.join(rules)}"
    yield f"  {'& Unit ' if first == 2 else ''}& {below} \\\\"


def heads(table: Table) -> list[tuple[str, int]]:
    """The upper line of the head: a name and the number of columns below it."""
    names = (column.above for column in table.columns)
    return [(name, len(list(equal))) for name, equal in groupby(names)]


def _csv(rows: Iterator[Mapping[str, Any]]) -> str:
    written = list(rows)
    names = list(dict.fromkeys(name for row in written for name in row))
    return table_text(names, ([row.get(name) for name in names] for row in written))


def _who(kernel: Kernel, cell: Counts) -> dict[str, object]:
    return {"kernel": kernel.name, **values_of(cell.cell.measured)}


def _raw_rows(found: Counted) -> Iterator[dict[str, object]]:
    """A row for each count of each run: `count` is of the whole run, of `passes` passes."""
    for one in found.kernels:
        for cell in one.cells:
            for run in cell.runs:
                told = {"round": run.round, "position": run.position, "group": run.group}
                for name, raw in run.raw.items():
                    event = found.file.events[name]
                    yield {
                        **_who(one.kernel, cell),
                        **told,
                        "event": name,
                        "native": event.native,
                        "unit": event.unit,
                        "count": raw,
                        "passes": run.passes,
                        "seconds_a_pass": run.seconds,
                    }


def _value_rows(found: Counted) -> Iterator[dict[str, object]]:
    """A row for each quantity and configuration, of one pass; those published among them."""
    for one in found.kernels:
        for quantity in one.quantities:
            told = {"quantity": quantity.name, "kind": quantity.kind, "unit": quantity.unit}
            for cell in (cell for cell in one.cells if cell.rounds):
                values = cell.by_round(quantity.name)
                yield {
                    **_who(one.kernel, cell),
                    **told,
                    "value": cell.value(quantity.name),
                    "rounds": len(values),
                    "source": quantity.source,
                }
            for theirs, file in found.published:
                for column in theirs.columns(one.kernel.title, file):
                    yield {
                        "kernel": one.kernel.name,
                        "compiler": f"{column.who} (published)",
                        "hugepages": column.policy,
                        **told,
                        "value": column.values.get(quantity.name),
                        "source": theirs.source,
                    }


def _ratio_rows(found: Counted) -> Iterator[dict[str, object]]:
    """A row for each ratio: of pages with : without, or of two compilers; those published among them."""
    for one in found.kernels:
        for column in one.compared:
            who, other = column.cell.measured, column.other.measured
            for name, verdict in column.verdicts.items():
                yield {
                    "kernel": one.kernel.name,
                    "table": "compilers" if column.by_compiler else "pages",
                    **values_of(who),
                    "reference": other.compiler if column.by_compiler else other.hugepages,
                    "quantity": name,
                    **_ratio_cells(verdict),
                }
        known = {quantity.name for quantity in one.quantities}
        for theirs, file in found.published:
            for table, columns in (
                ("pages", theirs.by_pages(one.kernel.title, file)),
                ("compilers", theirs.by_compiler(one.kernel.title, file)),
            ):
                for published in columns:
                    for name in (name for name in published.values if name in known):
                        yield {
                            "kernel": one.kernel.name,
                            "table": table,
                            "compiler": f"{published.who} (published)",
                            "hugepages": published.policy,
                            "quantity": name,
                            "ratio": published.values[name],
                        }


def _ratio_cells(verdict: Verdict) -> dict[str, object]:
    ratio = verdict.ratio
    return {
        "ratio": None if ratio is None else ratio.median,
        "low": None if ratio is None else ratio.low,
        "high": None if ratio is None else ratio.high,
        "pairs": None if ratio is None else ratio.pairs,
        "noise_floor": verdict.floor,
        "p_corrected": verdict.p,
        "verdict": verdict.change,
        "reason": verdict.reason,
    }
