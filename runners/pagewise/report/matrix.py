"""The whole matrix: a line a kernel and compiler, a column a configuration, a time ratio in each cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pagewise.analysis.analysis import Group, KernelResult, Row
from pagewise.core.dimensions import DIMENSIONS, PAGES
from pagewise.report.words import named

# At this ratio or its inverse a colour is full.
_FULL = 1.6
_STEPS = 5
# A column is a page policy and, below it, all the rest.
_BELOW = [one for one in DIMENSIONS if one is not PAGES]


@dataclass(frozen=True)
class Cell:
    """A configuration of a kernel, and whether it is the best of its compiler there.

    `row` is None where the kernel cannot tell the configuration from one that stands in another column, or
    where there is none.
    """

    row: Row | None
    is_best: bool = False

    @property
    def step(self) -> int:
        """How strong the colour is: 0 at no difference, 5 from 1.6 times as fast or slow on."""
        if self.row is None or self.row.time_ratio is None:
            return 0
        share = abs(math.log(self.row.time_ratio.median)) / math.log(_FULL)
        return min(_STEPS, math.ceil(share * _STEPS))


@dataclass(frozen=True)
class Line:
    """The cells of a kernel and compiler; `span`: so many lines are of the kernel, 0 after the first."""

    kernel: KernelResult
    compiler: str
    cells: tuple[Cell, ...]
    span: int


@dataclass(frozen=True)
class Matrix:
    """Heads are a page policy and what is below it, from left to right; lines have a cell for each column."""

    heads: tuple[tuple[str, tuple[str, ...]], ...]
    lines: tuple[Line, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Each column in words: `thp software`."""
        return tuple(
            policy if name == "hardware" else f"{policy} {name}"
            for policy, names in self.heads
            for name in names
        )


def matrix(kernels: Sequence[KernelResult]) -> Matrix:
    """The matrix of a result; a column is a combination of values, of which a kernel may not feel some."""
    rows = [row for one in kernels for group in one.groups for row in _rows(group)]
    rows.sort(key=lambda row: row.cell.measured.order()[2:])
    columns = {key: row.cell.measured for row in reversed(rows) for key in [_values(row)]}
    keys = list(dict.fromkeys(map(_values, rows)))
    heads: dict[str, list[str]] = {}
    for key in keys:
        heads.setdefault(PAGES.of(columns[key]), []).append(named(columns[key], _BELOW) or "hardware")
    keys.sort(key=lambda key: list(heads).index(PAGES.of(columns[key])))
    lines = []
    for one in kernels:
        for place, group in enumerate(one.groups):
            at = {_values(row): row for row in _rows(group)}
            best = fastest(group)
            cells = tuple(Cell(at.get(key), best is not None and at.get(key) is best) for key in keys)
            lines.append(Line(one, group.compiler, cells, 0 if place else len(one.groups)))
    return Matrix(tuple((policy, tuple(names)) for policy, names in heads.items()), tuple(lines))


def fastest(group: Group) -> Row | None:
    """The row with the smallest ratio of those that are faster, None when none is."""
    faster = [
        (row.time_ratio.median, row) for row in group.ranked if row.verdict == "faster" and row.time_ratio
    ]
    return min(faster, key=lambda pair: pair[0], default=(0.0, None))[1]


def _rows(group: Group) -> tuple[Row, ...]:
    return (*group.ranked, *group.unranked)


def _values(row: Row) -> tuple[str, ...]:
    return tuple(one.of(row.cell.measured) for one in DIMENSIONS)
