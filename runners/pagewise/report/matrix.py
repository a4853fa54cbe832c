"""The whole matrix: a line a kernel and compiler, a column a configuration, a time ratio in each cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pagewise.compare.analysis import Group, KernelResult, Row
from pagewise.configuration import VARIANTS
from pagewise.report.words import named

# At this ratio or its inverse a colour is full.
_FULL = 1.6
_STEPS = 5


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
    """The matrix of a result; a column is a combination of variants, of which a kernel may not feel some."""
    rows = [row for one in kernels for group in one.groups for row in _rows(group)]
    rows.sort(key=lambda row: row.cell.measured.order()[2:])
    keys = list(dict.fromkeys(map(_variants, rows)))
    heads: dict[str, list[str]] = {}
    for policy, *others in keys:
        heads.setdefault(policy, []).append(named(others) or "hardware")
    keys.sort(key=lambda key: list(heads).index(key[0]))
    lines = []
    for one in kernels:
        for place, group in enumerate(one.groups):
            at = {_variants(row): row for row in _rows(group)}
            best = fastest(group)
            cells = tuple(Cell(at.get(key), best is not None and at.get(key) is best) for key in keys)
            lines.append(Line(one, group.compiler, cells, 0 if place else len(one.groups)))
    return Matrix(tuple((policy, tuple(names)) for policy, names in heads.items()), tuple(lines))


def fastest(group: Group) -> Row | None:
    """The row with the smallest ratio of those that are faster, None when none is."""
    faster = [row for row in group.ranked if row.verdict == "faster" and row.time_ratio is not None]
    return min(faster, key=lambda row: row.time_ratio.median, default=None)


def _rows(group: Group) -> tuple[Row, ...]:
    return (*group.ranked, *group.unranked)


def _variants(row: Row) -> tuple[str, ...]:
    return tuple(getattr(row.cell.measured, name) for name in VARIANTS)
