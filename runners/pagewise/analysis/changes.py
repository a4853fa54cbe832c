"""What a configuration is compared with so that one thing differs. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pagewise.analysis.noise import Drift
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.verdict import Outcome, Reason
from pagewise.core.configuration import OPTIONS
from pagewise.core.dimensions import BY_NAME, PAGES, differing
from pagewise.core.kernel import Kernel
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


def neighbour(kernel: Kernel, cell: Cell, base: Cell, cells: Sequence[Cell]) -> tuple[str, Cell] | None:
    """The dimension and the cell by which a cell that differs from the baseline in several things is judged.

    A variant of prefetch, stores or loop is compared with the baseline's value, all else being equal:
    `prefetch=compiler loop=compiler` with `prefetch=hardware loop=compiler`. With options of runs, so are
    pages (`thp layout=soa` with `none layout=soa`), and then options. None if no such cell is there.
    """
    for name in (*_ACCESS, *((PAGES.name, *OPTIONS) if cell.options else ())):
        value_of = BY_NAME[name].of
        for other in cells:
            is_plain = value_of(other.measured) == value_of(base.measured)
            if is_plain and differing(kernel, cell.measured, other.measured) == (name,):
                return name, other
    return None
