"""Which configurations are compared with which, so that one thing differs. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pagewise.core.benchmark import Benchmark
from pagewise.core.dimensions import PAGES, differ_only_in, differing
from pagewise.core.plan import Cell

# Of several that differ from the baseline, the first one is changed back.
_ACCESS = ("prefetch", "stores", "loop")


class Pair(NamedTuple):
    """Two cells, and the dimension in which they differ."""

    cell: Cell
    reference: Cell
    dimension: str


def neighbour(kernel: Benchmark, cell: Cell, base: Cell, cells: Sequence[Cell]) -> Pair | None:
    """The cell by which one that differs from the baseline in several things is judged.

    A variant of prefetch, stores or loop is compared with the baseline's value, all else being equal:
    `prefetch=compiler loop=compiler` with `prefetch=hardware loop=compiler`. With options of runs, so are
    pages (`thp layout=soa` with `none layout=soa`), and then options. None if no such cell is there.
    """
    for name in (*_ACCESS, *((PAGES.name, *kernel.options) if cell.options else ())):
        other = changed_back(kernel, cell, base, name, cells)
        if other is not None:
            return Pair(cell, other, name)
    return None


def changed_back(kernel: Benchmark, cell: Cell, base: Cell, name: str, cells: Sequence[Cell]) -> Cell | None:
    """The cell that differs from `cell` in this dimension alone, where it has the baseline's value."""
    plain = (other for other in cells if other.measured.value(name) == base.measured.value(name))
    return next((o for o in plain if differing(kernel, cell.measured, o.measured) == (name,)), None)


def by_pages(kernel: Benchmark, ranked: Sequence[Cell]) -> Iterator[Pair]:
    """Each page policy and its compiler's baseline, then each compiler and the first one by policy.

    Cells count that differ from their compiler's baseline in the page policy alone.
    """
    if PAGES.name not in kernel.sensitive_to:
        return
    bases = {cell.compiler: cell for cell in ranked if cell.is_baseline}
    alike = [
        cell
        for cell in ranked
        if (base := bases.get(cell.compiler)) and differ_only_in(PAGES.name, cell.measured, base.measured)
    ]
    for cell in alike:
        if not cell.is_baseline:
            yield Pair(cell, bases[cell.compiler], PAGES.name)
    first = next(iter(bases), None)
    by_policy = {cell.measured.hugepages: cell for cell in reversed(alike) if cell.compiler == first}
    for cell in alike:
        other = by_policy.get(cell.measured.hugepages)
        if other is not None and cell.compiler != first:
            yield Pair(cell, other, "compiler")


class Four(NamedTuple):
    """A cell and itself on base pages, both also with the baseline's value of the option `dimension`."""

    cell: Cell
    plain: Cell
    reference: Cell
    reference_plain: Cell
    dimension: str


def by_structure(kernel: Benchmark, base: Cell, ranked: Sequence[Cell]) -> Iterator[Four]:
    """The cells by which the effect of pages is compared between two data structures.

    The structures among the options of a kernel are data structures for one result.
    """
    for cell in ranked if PAGES.name in kernel.sensitive_to else ():
        for name in kernel.structures if cell.options else ():
            reference = changed_back(kernel, cell, base, name, ranked)
            plain = changed_back(kernel, cell, base, PAGES.name, ranked)
            both = changed_back(kernel, reference, base, PAGES.name, ranked) if reference else None
            if reference and plain and both:
                yield Four(cell, plain, reference, both, name)
