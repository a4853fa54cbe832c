"""Time ratios of all configurations, and the ratios by page policy that the FLASH studies show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pagewise.analysis.analysis import Group, KernelResult
from pagewise.analysis.choices import alone, fastest
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import Row
from pagewise.core.dimensions import DIMENSIONS, LOOP, PAGES
from pagewise.report.model import Cell, Column, Section, Table, Text, Values, style_of
from pagewise.report.views.wording import named

# A column of the matrix is a page policy and, below it, all other dimensions.
_BELOW = [dimension for dimension in DIMENSIONS if dimension is not PAGES]


def matrix(kernels: Sequence[KernelResult]) -> Table:
    """All time ratios: a row per kernel and compiler, a column per configuration.

    A kernel has no cell for values of dimensions that it is not sensitive to.
    """
    groups = [(result.kernel.title, group) for result in kernels for group in result.groups]
    rows = [row for _, group in groups for row in _by_values(group).values()]
    rows.sort(key=lambda row: row.cell.measured.sort_key()[2:])
    columns = {_values(row): row.cell.measured for row in reversed(rows)}
    keys = list(dict.fromkeys(map(_values, rows)))
    policies = list(dict.fromkeys(PAGES.of(columns[key]) for key in keys))
    keys.sort(key=lambda key: policies.index(PAGES.of(columns[key])))
    heads = [(PAGES.of(columns[key]), named(columns[key], _BELOW)) for key in keys]
    lines: list[Values] = []
    for title, group in groups:
        by_values, best = _by_values(group), fastest(group)
        lines.append((title, group.compiler, *(_cell(by_values.get(key), best) for key in keys)))
    return Table(
        "Time ratio by kernel and configuration; below 1 is faster",
        (
            Column("kernel", merged=True),
            Column("compiler"),
            *(
                Column(f"{policy} {name}".strip(), name or "hardware", kind="heat", above=policy)
                for policy, name in heads
            ),
        ),
        tuple(lines),
    )


def _cell(row: Row | None, best: Row | None) -> Cell:
    if row is None:
        return Cell(None)
    if row.invalid is not None:
        return Cell(None, "excluded")
    if row.cell.is_baseline:
        return Cell("1", "baseline")
    return Cell(row.time_ratio, style_of(row.verdict), best=row is best)


def _values(row: Row) -> tuple[str, ...]:
    return tuple(dimension.of(row.cell.measured) for dimension in DIMENSIONS)


def _by_values(group: Group) -> dict[tuple[str, ...], Row]:
    return {_values(row): row for row in (*group.ranked, *group.unranked)}


def by_policy(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """With : without huge pages, and compiler : compiler."""
    tables = [
        *_policy_table(kernels, "With : without huge pages", of_compilers=False),
        *_policy_table(kernels, "Compiler : compiler, by pages", of_compilers=True),
    ]
    if tables:
        text = (
            "Ratios paired by round with their 95 % intervals, as in the FLASH-on-A64FX study (PEARC 2023, "
            "figures 1 and 2). Below 1, huge pages (or the first compiler) need less. Prefetch and stores "
            "are those of the baseline."
        )
        yield Section("With and without huge pages", (*tables, Text(text, style="dim")), "policies")


def loops(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """Whether the compilers' loops reach the explicit ones: a row per kernel and compiler."""
    rows = [
        (result.kernel.title, row.cell.compiler, row.change)
        for result in kernels
        for row in alone(result, LOOP, "compiler")
        if row.change
    ]
    if len(rows) > 1:
        columns = (
            Column("kernel", merged=True),
            Column("compiler"),
            Column("time ratio", unit="95 % interval", kind="ratio"),
            Column("verdict"),
        )
        values = tuple(
            (title, compiler, Cell(change.time_ratio, style), Cell(change.verdict, style))
            for title, compiler, change in rows
            for style in (style_of(change.verdict),)
        )
        title = "Time ratio of the compiler's loop to the explicit one; below 1 is faster"
        yield Section("The compiler's loop", (Table(title, columns, values, chart=True),), "loops")


def _policy_table(kernels: Sequence[KernelResult], title: str, *, of_compilers: bool) -> Iterator[Table]:
    rows: dict[tuple[str, str, str], dict[str, Ratio]] = {}
    for result in kernels:
        for compared in result.by_policy:
            if (compared.reference is not None) == of_compilers:
                compilers = " : ".join(filter(None, (compared.compiler, compared.reference)))
                key = (result.kernel.title, compilers, compared.policy)
                rows.setdefault(key, {})[compared.quantity] = compared.ratio
    if rows:
        quantities = dict.fromkeys(name for ratios in rows.values() for name in ratios)
        columns = (
            Column("kernel", merged=True),
            Column("compiler", merged=True),
            Column("pages"),
            *(Column(name, kind="ratio") for name in quantities),
        )
        yield Table(
            title, columns, tuple((*names, *map(ratios.get, quantities)) for names, ratios in rows.items())
        )
