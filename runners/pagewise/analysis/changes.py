"""What a configuration is compared with so that one thing differs. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pagewise.analysis.noise import Drift
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.verdict import Outcome, Reason
from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import OPTIONS
from pagewise.core.dimensions import BY_NAME, PAGES, differing
from pagewise.core.plan import Cell

# Of several that differ from the baseline, the first one is changed back.
_ACCESS = ("prefetch", "stores", "loop")


@dataclass(frozen=True)
class SingleChange:
    """The time ratio of a configuration to the `reference`, which differs from it in `dimension` alone."""

    dimension: str
    reference: Cell
    time_ratio: Ratio
    verdict: Outcome = "inconclusive"
    reason: Reason | None = None
    p: float | None = None
    bimodal: bool = False
    drift: Drift | None = None


def neighbour(kernel: Benchmark, cell: Cell, base: Cell, cells: Sequence[Cell]) -> tuple[str, Cell] | None:
    """The dimension and the cell by which a cell that differs from the baseline in several things is judged.

    A variant of prefetch, stores or loop is compared with the baseline's value, all else being equal:
    `prefetch=compiler loop=compiler` with `prefetch=hardware loop=compiler`. With options of runs, so are
    pages (`thp layout=soa` with `none layout=soa`), and then options. None if no such cell is there.
    """
    for name in (*_ACCESS, *((PAGES.name, *OPTIONS) if cell.options else ())):
        other = changed_back(kernel, cell, base, name, cells)
        if other is not None:
            return name, other
    return None


def changed_back(kernel: Benchmark, cell: Cell, base: Cell, name: str, cells: Sequence[Cell]) -> Cell | None:
    """The cell that differs from `cell` in this dimension alone, where it has the baseline's value."""
    value_of = BY_NAME[name].of
    plain = (other for other in cells if value_of(other.measured) == value_of(base.measured))
    return next((o for o in plain if differing(kernel, cell.measured, o.measured) == (name,)), None)
