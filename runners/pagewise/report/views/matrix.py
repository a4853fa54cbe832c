"""All time ratios of a result: a row per kernel and compiler, a column per configuration."""

from __future__ import annotations

from collections.abc import Sequence

from pagewise.analysis.analysis import Group, KernelResult
from pagewise.analysis.choices import fastest
from pagewise.analysis.rows import Row
from pagewise.core.dimensions import DIMENSIONS, PAGES
from pagewise.report.model import Cell, Column, Table, Values, style_of
from pagewise.report.views.wording import named

# A column is a page policy and, below it, all other dimensions.
_BELOW = [one for one in DIMENSIONS if one is not PAGES]


def matrix(kernels: Sequence[KernelResult]) -> Table:
    """The table. A kernel has no cell for values of dimensions that it is not sensitive to."""
    rows = [row for one in kernels for group in one.groups for row in _rows(group)]
    rows.sort(key=lambda row: row.cell.measured.order()[2:])
    columns = {_values(row): row.cell.measured for row in reversed(rows)}
    keys = list(dict.fromkeys(map(_values, rows)))
    policies = list(dict.fromkeys(PAGES.of(columns[key]) for key in keys))
    keys.sort(key=lambda key: policies.index(PAGES.of(columns[key])))
    heads = tuple(
        Column(f"{policy} {name}".strip(), name or "hardware", kind="heat", above=policy)
        for key in keys
        for policy, name in [(PAGES.of(columns[key]), named(columns[key], _BELOW))]
    )
    lines: list[Values] = []
    for one in kernels:
        for group in one.groups:
            by_values, best = {_values(row): row for row in _rows(group)}, fastest(group)
            cells = (_cell(by_values.get(key), best) for key in keys)
            lines.append((one.kernel.title, group.compiler, *cells))
    return Table(
        "Time ratio by kernel and configuration; below 1 is faster",
        (Column("kernel", merged=True), Column("compiler"), *heads),
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


def _rows(group: Group) -> tuple[Row, ...]:
    return (*group.ranked, *group.unranked)


def _values(row: Row) -> tuple[str, ...]:
    return tuple(one.of(row.cell.measured) for one in DIMENSIONS)
