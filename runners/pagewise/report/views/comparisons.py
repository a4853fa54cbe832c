"""The one table of comparisons, and which rows and columns each section shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from pagewise.analysis.choices import alone, versus
from pagewise.analysis.comparison import Comparison, Kind
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import KernelResult
from pagewise.core.dimensions import LOOP, PAGES, dimensions_of
from pagewise.core.manifest import EnergyPart
from pagewise.core.record_parts import POWER
from pagewise.report.model import Column, Section, Table, TableCell, Text, Value, style_of
from pagewise.report.views.data import DataRow, label, ranked_rows, reason_text, short_name

Get = Callable[[Any], Comparison | None]
KERNEL = Column("kernel", merged=True, get="benchmark.title")
COMPILER = Column("compiler", merged=True, get="cell.compiler")


def of_kind(kernels: Iterable[KernelResult], kind: Kind) -> list[Comparison]:
    """The comparisons of a kind of all kernels."""
    return [row for result in kernels for row in result.of(kind)]


def label_of(row: Comparison) -> str:
    """The compared configuration in words."""
    return label(row.benchmark, row.configuration)


CONFIGURATION = Column("configuration", get=label_of)


def _judged_cells(get: Get, item: Any) -> tuple[TableCell, TableCell]:
    """The ratio with its noise floor, and the verdict with the reason why it is inconclusive."""
    row = get(item)
    if isinstance(item, DataRow) and item.row.time is None and not item.row.cell.is_baseline:
        # Nothing was compared, because the baseline is excluded.
        return TableCell(None), TableCell("inconclusive", "inconclusive", reason_text(item.row.reason))
    if row is None or (row.reference is None and row.kind != "target"):
        return TableCell("1", "baseline"), TableCell("baseline", "baseline")
    style, note = style_of(row.verdict), reason_text(row.reason)
    if row.reason == "interval" and row.ratio is not None and row.ratio.is_difference:
        note = "the interval contains 0"
    return TableCell(row.ratio, style, floor=row.floor), TableCell(row.verdict, style, note)


def judged_columns(
    get: Get = lambda row: row, name: str = "time ratio", verdict: str = "verdict"
) -> tuple[Column, Column]:
    """The columns that every table of comparisons has: ratio with interval, and verdict with reason."""
    return (
        Column(name, unit="95 % interval", kind="ratio", get=lambda item: _judged_cells(get, item)[0]),
        Column(verdict, get=lambda item: _judged_cells(get, item)[1]),
    )


def changes(rows: Sequence[Comparison]) -> Iterator[Section]:
    """What one thing does where a configuration differs from the baseline in several."""
    columns = (COMPILER, CONFIGURATION, Column("compared with", get=_reference), *judged_columns())
    title = "Configurations that differ from the baseline in several things, with one of them changed"
    table = Table.of(title, columns, rows)
    yield from table.section("One change at a time", only="page", folded=True)


def _reference(row: Comparison) -> str:
    return "" if row.reference is None else label(row.benchmark, row.reference.measured)


def loops(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """Whether the compilers' loops reach the explicit ones: a row per kernel and compiler."""
    rows = [change for result in kernels for _, change in alone(result, LOOP, "compiler")]
    if len(rows) > 1:
        title = "Time ratio of the compiler's loop to the explicit one; below 1 is faster"
        table = Table.of(title, (KERNEL, COMPILER, *judged_columns()), rows, chart=True)
        yield Section("The compiler's loop", (table,), "loops")


def structures(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """The effect of pages in both data structures, and the ratio of these effects."""
    columns = (
        KERNEL,
        COMPILER,
        Column("pages", get="configuration.hugepages"),
        Column("data structure", get=_structures),
        Column("all else", get=_rest, wrap=True),
        Column("pages' ratio with the first", kind="ratio", get=lambda row: row.parts[0]),
        Column("with the second", kind="ratio", get=lambda row: row.parts[1]),
        *judged_columns(name="ratio of both"),
        Column("share", kind="percent"),
    )
    text = (
        "A page policy's time ratio to base pages in two data structures that differ in one option, and the "
        "ratio of these ratios, paired by round. Below 1, the policy gains more with the first. Share: how "
        "much of the larger of both effects, in log, is the data structure."
    )
    table = Table.of("Time ratios of pages by data structure", columns, of_kind(kernels, "structure"))
    yield from table.section("Data structures", text, anchor="structures")


def _structures(row: Comparison) -> str:
    """The values of the option in both data structures: `scheme flash : planes`."""
    cells = (row.cell, row.reference or row.cell)
    return f"{row.dimension} {' : '.join(cell.measured.value(row.dimension) for cell in cells)}"


def _rest(row: Comparison) -> str:
    """What both have in common in addition to pages: `layout=soa`."""
    dimensions = dimensions_of([row.benchmark])
    return short_name(row.configuration, [d for d in dimensions if d.name not in (PAGES.name, row.dimension)])


def states(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """What each page policy changes in each state of the node that was compared."""
    rows = [
        change
        for result in kernels
        for row in result.ranked
        if (change := row.change)
        and change.dimension == PAGES.name
        and change.configuration.value("node_state")
    ]
    state = Column("state of the node", get=lambda row: row.configuration.value("node_state"))
    columns = (KERNEL, COMPILER, CONFIGURATION, state, *judged_columns())
    table = Table.of("Time ratios to base pages in the same state of the node", columns, rows)
    yield from table.section("States of the node", anchor="states")


def by_pages(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """With : without huge pages, and compiler : compiler; a column per quantity."""
    tables = [
        *_pages_table(of_kind(kernels, "pages"), "With : without huge pages", PAGES.name),
        *_pages_table(of_kind(kernels, "pages"), "Compiler : compiler, by pages", "compiler"),
    ]
    if tables:
        text = (
            "Ratios paired by round with their 95 % intervals, as in the FLASH-on-A64FX study (PEARC 2023, "
            "figures 1 and 2). Below 1, huge pages (or the first compiler) need less. Prefetch and stores "
            "are those of the baseline."
        )
        yield Section("With and without huge pages", (*tables, Text(text, style="dim")), "policies")


def _pages_table(rows: Sequence[Comparison], title: str, dimension: str) -> Iterator[Table]:
    lines: dict[tuple[str, str, str], dict[str, Ratio | None]] = {}
    for row in rows:
        if row.dimension == dimension:
            compilers = versus(row) if dimension == "compiler" else row.cell.compiler
            key = row.benchmark.title, compilers, row.configuration.hugepages
            lines.setdefault(key, {})[row.quantity.label.lower()] = row.ratio
    if lines:
        quantities = dict.fromkeys(name for ratios in lines.values() for name in ratios)
        names = (Column("kernel", merged=True), Column("compiler", merged=True), Column("pages"))
        columns = (*names, *(Column(name, kind="ratio") for name in quantities))
        values = ((*key, *map(ratios.get, quantities)) for key, ratios in lines.items())
        yield Table(title, columns, tuple(values))


def energy(kernels: Sequence[KernelResult], measured: EnergyPart | None) -> Iterator[Section]:
    """The energy of each configuration with its time; none where no energy was measured."""
    if measured is None:
        return
    by_cell = {(entry.benchmark.name, entry.row.cell): entry for entry in ranked_rows(kernels)}

    def entry(row: Comparison) -> DataRow:
        return by_cell[row.benchmark.name, row.cell]

    columns = (
        KERNEL,
        COMPILER,
        CONFIGURATION,
        Column("power", unit="W, median", kind="number", get=lambda row: entry(row).row.metrics.get(POWER)),
        Column("energy", unit="J per pass, median", kind="number", get="value"),
        *judged_columns(name="energy ratio", verdict="energy verdict"),
        Column("time ratio", unit="95 % interval", kind="ratio", get=lambda row: entry(row).row.time_ratio),
    )
    text = (
        f"Measured by {measured.text}, for everything that ran on the node, idle cores included. "
        "Energy: the mean power of a run times the seconds of a pass, or of the whole run of a program. "
        "Ratios to the baseline, paired by round; noise floor and correction are those of energies."
    )
    table = Table.of("Energy by configuration", columns, of_kind(kernels, "energy"))
    yield from table.section("Energy", text)


def count_tables(rows: Sequence[Comparison], title: str, quantities: Sequence[Any]) -> Iterator[Table]:
    """Ratios of counts: a row per quantity, a column per pair of configurations; real ones are bold."""
    columns = [Column("quantity", wrap=True, get="label")]
    known: set[str] = set()
    for (cell, _), of_pair in groupby(rows, lambda row: (row.cell, row.reference)):
        several = list(of_pair)
        compilers = versus(several[0]) if several[0].kind == "compilers" else cell.compiler
        values = {
            row.quantity.name: TableCell(row.ratio, "strong" if row.is_decided else "") for row in several
        }
        columns.append(quantity_column(compilers, label_of(several[0]), values))
        known |= values.keys()
    if rows:
        yield Table.of(title, columns, [quantity for quantity in quantities if quantity.name in known])


def quantity_column(
    above: str, name: str, values: Mapping[str, Value | TableCell], kind: Any = "quotient"
) -> Column:
    """A column of a table of quantities, with values by quantity name."""
    full = f"{above} {name}".strip()
    return Column(
        full, name, kind, above=above, get=lambda quantity: values.get(quantity.name, TableCell(None))
    )
