"""How much of the sensitivity to page size is the data structure. Pure functions.

The options of a program (`scheme`, `layout`, `table`) are data structures for one result. A page policy has a
time ratio to base pages with each of them, and the ratio of two such ratios is what the data structure adds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pagewise.analysis.changes import changed_back
from pagewise.analysis.noise import Drift, drift
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import Row
from pagewise.analysis.statistics import Runs, common_rounds, quotients, ratio
from pagewise.analysis.verdict import Comparison, Outcome, Reason
from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import STRUCTURES
from pagewise.core.dimensions import PAGES
from pagewise.core.plan import Cell

# Ratios of ratios have the noise of two independent ratios, in log.
_NOISE_OF_TWO = math.sqrt(2.0)


@dataclass(frozen=True)
class StructureEffect:
    """What a value of an option changes in the time ratio of a page policy to base pages.

    `reference` differs from `cell` in the option `dimension` alone, and has the baseline's value of it.
    `pages` and `reference_pages` are their time ratios to base pages, and `time_ratio` is the first over the
    second, paired by round: below 1, the policy gains more in `cell`.
    """

    dimension: str
    cell: Cell
    reference: Cell
    pages: Ratio
    reference_pages: Ratio
    time_ratio: Ratio
    floor: float | None
    bimodal: bool
    drift: Drift | None
    verdict: Outcome = "inconclusive"
    reason: Reason | None = None
    p: float | None = None

    @property
    def most(self) -> Ratio:
        """The time ratio to base pages in the data structure that is more sensitive to them."""
        return max(self.pages, self.reference_pages, key=lambda item: abs(math.log(item.median)))

    @property
    def share(self) -> float | None:
        """Which share of the larger effect of pages, in log, is the data structure.

        None unless both that effect and the difference are significant. 1 if the other data structure is not
        sensitive to pages, or in the opposite direction.
        """
        if self.verdict == "inconclusive" or not self.most.excludes_equality:
            return None
        return min(1.0, abs(math.log(self.time_ratio.median) / math.log(self.most.median)))

    @property
    def comparison(self) -> Comparison:
        """The ratio of the ratios, to be judged with all others."""
        return Comparison(self.time_ratio, self.floor, self.bimodal, self.drift)


def structure_effects(
    kernel: Benchmark,
    ranked: Sequence[Row],
    floor: float | None,
    times_of: Callable[[Cell], Runs],
    seed: int,
) -> Iterator[StructureEffect]:
    """The effects of each option on each page policy, among the ranked rows of one compiler.

    `times_of` returns the seconds per pass of a cell, `floor` is the compiler's noise floor.
    """
    base = next((row.cell for row in ranked if row.cell.is_baseline), None)
    if base is None or PAGES.name not in kernel.sensitive_to:
        return
    bimodal = {row.cell: row.bimodal is not None for row in ranked}
    wider = None if floor is None else math.expm1(_NOISE_OF_TWO * math.log1p(floor))
    for cell in bimodal:
        for name in STRUCTURES if cell.options else ():
            four = _four(kernel, cell, base, name, list(bimodal))
            if four is None:
                continue
            ours, plain, theirs, both = (times_of(each) for each in four)
            pages = ratio(quotients(ours[:1], plain), seed)
            reference_pages = ratio(quotients(theirs[:1], both), seed)
            by_round = _ratios_of_ratios([ours[0], plain[0], theirs[0], both[0]])
            measured = ratio(list(by_round.values()), seed) if by_round else None
            if pages and reference_pages and measured:
                yield StructureEffect(
                    name,
                    cell,
                    four[2],
                    pages,
                    reference_pages,
                    measured,
                    wider,
                    any(bimodal[each] for each in four),
                    drift(by_round),
                )


def _four(
    kernel: Benchmark, cell: Cell, base: Cell, name: str, cells: Sequence[Cell]
) -> tuple[Cell, Cell, Cell, Cell] | None:
    """A cell, itself on base pages, then both with the baseline's value of an option."""
    reference = changed_back(kernel, cell, base, name, cells)
    plain = changed_back(kernel, cell, base, PAGES.name, cells)
    both = changed_back(kernel, reference, base, PAGES.name, cells) if reference else None
    return (cell, plain, reference, both) if reference and plain and both else None


def _ratios_of_ratios(times: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """(first / second) / (third / fourth), by the rounds that all have."""
    first, second, third, fourth = times
    return {
        number: first[number] * fourth[number] / (second[number] * third[number])
        for number in common_rounds(*times)
    }
