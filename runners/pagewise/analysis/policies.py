"""Ratios with : without huge pages, and compiler : compiler, as the FLASH studies show them. Pure functions.

Time, bandwidth, TLB misses where they were counted, and page faults, each paired by round (Calder, Feldman
et al., PEARC 2023, figures 1 and 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import against, ratio
from pagewise.core.dimensions import DIMENSIONS, PAGES
from pagewise.core.kernel import Kernel
from pagewise.core.plan import Cell
from pagewise.core.record import Record


@dataclass(frozen=True)
class Compared:
    """A quantity of one cell over the same of another: `name` says of what to what.

    `policy` is that of the first, `compiler` its compiler; `reference` is the other compiler, None where both
    have one compiler and the other has the baseline's pages.
    """

    quantity: str
    compiler: str
    policy: str
    reference: str | None
    ratio: Ratio


def run_seconds(record: Record) -> float:
    """Seconds of one pass: the median repetition by its passes (a kernel chooses these by the clock)."""
    return median(record.repetitions) / record.passes


def compared_by_policy(
    kernel: Kernel, ranked: Sequence[Cell], runs_of: Callable[[Cell], list[list[Record]]], seed: int
) -> tuple[Compared, ...]:
    """All such ratios among the cells that may be ranked, by quantity.

    `runs_of` gives a cell's valid records of the comparison: a list, and one more for each time that a
    baseline ran again in a round. Cells count that differ from their compiler's baseline in the page policy
    alone.
    """
    if "hugepages" not in kernel.sensitive_to:
        return ()
    bases = {cell.compiler: cell for cell in ranked if cell.is_baseline}
    alike = [cell for cell in ranked if cell.compiler in bases and _differs_in_pages(cell, bases)]
    reference = next(iter(bases.values()), None)
    values = {cell.key: [_by_round(kernel, records) for records in runs_of(cell)] for cell in alike}
    found = []
    for quantity in dict.fromkeys(name for runs in values.values() for one in runs for name in one):
        for other, cell in _pairs(alike, bases, reference):
            shares = _shares(
                *([one.get(quantity, {}) for one in values[key]] for key in (cell.key, other.key))
            )
            measured = ratio(shares, seed)
            if measured is not None:
                against = None if other.compiler == cell.compiler else other.compiler
                found.append(Compared(quantity, cell.compiler, cell.measured.hugepages, against, measured))
    return tuple(found)


def _pairs(
    alike: Sequence[Cell], bases: Mapping[str, Cell], reference: Cell | None
) -> Iterator[tuple[Cell, Cell]]:
    """Denominator and numerator: each policy against its compiler's baseline, then compilers by policy."""
    for cell in alike:
        if not cell.is_baseline:
            yield bases[cell.compiler], cell
    for cell in alike:
        same = (c for c in alike if reference is not None and c.compiler == reference.compiler)
        other = next((c for c in same if c.measured.hugepages == cell.measured.hugepages), None)
        if other is not None and other.compiler != cell.compiler:
            yield other, cell


def _differs_in_pages(cell: Cell, bases: Mapping[str, Cell]) -> bool:
    base = bases[cell.compiler].measured
    return all(one.of(cell.measured) == one.of(base) for one in DIMENSIONS if one is not PAGES)


def _by_round(kernel: Kernel, records: Sequence[Record]) -> dict[str, dict[int, float]]:
    """Each quantity's values by round."""
    found: dict[str, dict[int, float]] = {}
    bandwidth = next(
        (metric for metric in kernel.metrics if metric.unit == "GB/s" and metric.convention), None
    )
    for record in records:
        told = {"time": run_seconds(record)}
        if bandwidth is not None and bandwidth.field in record.figures:
            told[f"bandwidth, {bandwidth.convention}"] = record.figures[bandwidth.field]
        # Over all of the computing, whose passes a kernel chooses by the clock: the count of one pass.
        passes = len(record.repetitions) * record.passes
        told |= {name: count / passes for name, count in record.counts.items() if "TLB" in name.upper()}
        if record.page_faults is not None and record.page_faults.total is not None:
            told["page faults"] = record.page_faults.total
        for name, value in told.items():
            found.setdefault(name, {})[record.round] = float(value)
    return found


def _shares(runs: Sequence[Mapping[int, float]], others: Sequence[Mapping[int, float]]) -> list[list[float]]:
    """Paired ratios of the rounds in which all were counted at all.

    A single run a round is compared with each of the other's; several are, one by one.
    """
    counted = [[{n: v for n, v in one.items() if v > 0.0} for one in side] for side in (runs, others)]
    if len(runs) == 1:
        return against(counted[0][0], counted[1])
    pairs = list(zip(*counted, strict=False))
    rounds = sorted(set.intersection(*(set(ours) & set(theirs) for ours, theirs in pairs)))
    return [[ours[number] / theirs[number] for number in rounds] for ours, theirs in pairs]
