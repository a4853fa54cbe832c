"""The one table of comparisons, and which rows and columns each section shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from pagewise.analysis.choices import alone, versus
from pagewise.analysis.comparison import Comparison, Kind, Reason
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import KernelResult
from pagewise.core.dimensions import LOOP, PAGES, dimensions_of
from pagewise.core.manifest import EnergyPart
from pagewise.core.record_parts import POWER
from pagewise.report.model import Column, Section, Table, TableCell, Text, Value, style_of
from pagewise.report.views.data import DataRow, cost_text, label, named, ranked, reason_text

Get = Callable[[Any], Comparison | None]
KERNEL = Column("kernel", merged=True, get="benchmark.title")
COMPILER = Column("compiler", merged=True, get="cell.compiler")


_PROGRAM = Column("program", merged=True, get="benchmark.name")


def of_kind(kernels: Iterable[KernelResult], kind: Kind) -> list[Comparison]:
    """The comparisons of a kind of all kernels."""
    return [row for result in kernels for row in result.of(kind)]


def label_of(row: Comparison) -> str:
    """The compared configuration in words."""
    return label(row.benchmark, row.configuration)


def _itself(item: Any) -> Comparison | None:
    return item if isinstance(item, Comparison) else None


def ratio_cell(get: Get, item: Any) -> TableCell:
    """The ratio in the style of its verdict, with its noise floor; a baseline's is 1."""
    row = get(item)
    if row is None or (row.reference is None and row.kind != "target"):
        return TableCell("1", "baseline")
    return TableCell(row.ratio, style_of(row.verdict), floor=row.floor)


def verdict_cell(get: Get, item: Any) -> TableCell:
    """The verdict with the reason why it is inconclusive."""
    row = get(item)
    if row is None or (row.reference is None and row.kind != "target"):
        return TableCell("baseline", "baseline")
    is_difference = row.ratio is not None and row.ratio.is_difference
    reason: Reason | None = row.reason
    note = "the interval contains 0" if is_difference and reason == "interval" else reason_text(reason)
    return TableCell(row.verdict, style_of(row.verdict), note)


def judged_columns(
    get: Get = _itself, name: str = "time ratio", verdict: str = "verdict"
) -> tuple[Column, Column]:
    """The columns that every table of comparisons has: ratio with interval, and verdict with reason."""
    return (
        Column(name, unit="95 % interval", kind="ratio", get=partial(ratio_cell, get)),
        Column(verdict, get=partial(verdict_cell, get)),
    )


def changes(rows: Sequence[Comparison]) -> Iterator[Section]:
    """What one thing does where a configuration differs from the baseline in several."""
    if rows:
        columns = (
            COMPILER,
            Column("configuration", get=label_of),
            Column("compared with", get=_reference),
            *judged_columns(),
        )
        title = "Configurations that differ from the baseline in several things, with one of them changed"
        yield Section("One change at a time", (Table.of(title, columns, rows),), only="page", folded=True)


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
        Column("data structure", get=structure_text),
        Column("all else", get=rest_text, wrap=True),
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
    if rows := of_kind(kernels, "structure"):
        table = Table.of("Time ratios of pages by data structure", columns, rows)
        yield Section("Data structures", (table, Text(text, style="dim")), "structures")


def structure_text(row: Comparison) -> str:
    """Both values: `scheme flash : planes`."""
    return f"{row.dimension} {' : '.join(structure_values(row))}"


def structure_values(row: Comparison) -> tuple[str, str]:
    """The values of the option in both data structures."""
    cells = (row.cell, row.reference or row.cell)
    first, second = (cell.measured.value(row.dimension) for cell in cells)
    return first, second


def rest_text(row: Comparison) -> str:
    """What both have in common beside pages: `layout=soa`."""
    others = [
        item for item in dimensions_of([row.benchmark]) if item is not PAGES and item.name != row.dimension
    ]
    return named(row.configuration, others)


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
    if rows:
        columns = (
            KERNEL,
            COMPILER,
            Column("configuration", get=label_of),
            Column("state of the node", get=lambda row: row.configuration.value("node_state")),
            *judged_columns(),
        )
        title = "Time ratios to base pages in the same state of the node"
        yield Section("States of the node", (Table.of(title, columns, rows),), "states")


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
    by_cell = {(entry.benchmark.name, entry.row.cell): entry for entry in ranked(kernels)}

    def entry(row: Comparison) -> DataRow:
        return by_cell[row.benchmark.name, row.cell]

    columns = (
        KERNEL,
        COMPILER,
        Column("configuration", get=label_of),
        Column("power", unit="W, median", kind="number", get=lambda row: entry(row).row.metrics.get(POWER)),
        Column("energy", unit="J per pass, median", kind="number", get="value"),
        *judged_columns(name="energy ratio", verdict="energy verdict"),
        Column("time ratio", unit="95 % interval", kind="ratio", get=lambda row: entry(row).row.time_ratio),
    )
    rows = of_kind(kernels, "energy")
    if measured is not None and rows:
        text = (
            f"Measured by {measured.text}, for everything that ran on the node, idle cores included. "
            "Energy: the mean power of a run times the seconds of a pass, or of the whole run of a program. "
            "Ratios to the baseline, paired by round; noise floor and correction are those of energies."
        )
        yield Section("Energy", (Table.of("Energy by configuration", columns, rows), Text(text, style="dim")))


def metrics(kernels: Sequence[KernelResult], checks: Mapping[str, Sequence[str]]) -> Section:
    """The metrics of programs by policy. `checks` are those of each program's output."""
    rows = of_kind(kernels, "metric")
    columns = (
        *([_PROGRAM] if len(checks) > 1 else []),
        _METRIC,
        Column("better", merged=True, get="quantity.better"),
        Column("hugepages", get=label_of),
        Column("median", kind="number", get="value"),
        *judged_columns(name="ratio"),
    )
    text = "Medians; ratios to the baseline, paired by round."
    for name, of_program in checks.items():
        if of_program:
            text += f" The output of each run of {name} had to pass: {', '.join(of_program)}."
    if any(row.ratio is not None and row.ratio.is_difference for row in rows):
        text += " With a sign: differences, because not all values of the metric are above zero."
    return Section("Metrics", (Table.of("Metrics by policy", columns, rows), Text(text, style="dim")))


_METRIC = Column("metric", merged=True, get=lambda row: f"{row.quantity.label} [{row.quantity.unit}]")


def _target(row: Comparison) -> str:
    """The range of a target: `≥ 0.9, ≤ 1.1`."""
    ends = (("≥", row.least), ("≤", row.most))
    return ", ".join(f"{sign} {end:g}" for sign, end in ends if end is not None)


_TARGETS = (
    _PROGRAM,
    _METRIC,
    Column("hugepages", get=label_of),
    Column("median", kind="number", get="value"),
    Column("relative to", get="reference_kernel"),
    Column("its median", kind="number", get="reference_value"),
    Column("ratio", unit="95 % interval", kind="ratio"),
    Column("target", get=_target),
    Column("noise floor", kind="percent", get="floor"),
    Column("answer", get=partial(verdict_cell, _itself)),
)


def targets(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """The metrics that have targets relative to another program."""
    if rows := of_kind(kernels, "target"):
        given = [row.answer for row in rows]
        counts = ", ".join(f"{given.count(answer)} {answer}" for answer in ("met", "not met", "inconclusive"))
        table = Table.of("Targets", _TARGETS, rows)
        yield Section("Targets", (table, Text(f"{counts}. Ratios paired by round.", style="dim")))


def costs(kernels: Sequence[KernelResult], budget_text: str, *, several: bool) -> Section:
    """The memory of programs by policy, and what it gains for it."""
    columns = (
        *([_PROGRAM] if several else []),
        Column("hugepages", get="label"),
        Column("peak memory", kind="bytes", get="peak"),
        Column("memory ratio", unit="95 % interval", kind="ratio", get=_memory_ratio),
        Column("more", "more than the baseline", kind="bytes", get="more_memory_bytes"),
        Column("page tables", kind="bytes", get=_page_tables),
        Column("time for memory", wrap=True, get=_time_for_memory),
    )
    text = f"Peak memory of each run, and its ratio to the baseline's, paired by round.{budget_text}"
    table = Table.of("Time and memory by policy", columns, ranked(kernels))
    return Section("Time and memory", (table, Text(text, style="dim")))


def _memory_ratio(entry: DataRow) -> TableCell:
    return TableCell("1", "baseline") if entry.row.cell.is_baseline else TableCell(entry.row.memory)


def _page_tables(entry: DataRow) -> float | None:
    size = entry.row.metrics.get("page_tables_mib")
    return None if size is None else size * (1 << 20)


def _time_for_memory(entry: DataRow) -> TableCell:
    if entry.row.cell.is_baseline:
        return TableCell("baseline", "baseline")
    note = "above the memory budget" if entry.row.over_budget else ""
    return TableCell(cost_text(entry.row), style_of(entry.row.verdict), note)


def counted(rows: Sequence[Comparison], title: str, quantities: Sequence[Any]) -> Iterator[Table]:
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
