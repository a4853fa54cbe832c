"""Ratios with : without huge pages, and compiler : compiler, as the FLASH studies show them. Pure functions.

Time, bandwidth, TLB misses where they were counted, and page faults, each paired by round (Calder, Feldman
et al., PEARC 2023, figures 1 and 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from pagewise.compare.statistics import Ratio, paired_ratios, ratio
from pagewise.kernel import Kernel
from pagewise.plan import Cell

Record = Mapping[str, Any]


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
    return median(record["seconds"]["repetitions"]) / record.get("passes_per_repetition", 1)


def compared_by_policy(
    kernel: Kernel, ranked: Sequence[Cell], records_of: Callable[[Cell], list[Record]], seed: int
) -> tuple[Compared, ...]:
    """All such ratios among the cells that may be ranked, by quantity.

    `records_of` gives a cell's valid records of the comparison. Cells count that differ from their compiler's
    baseline in the page policy alone.
    """
    if "hugepages" not in kernel.feels:
        return ()
    bases = {cell.compiler: cell for cell in ranked if cell.is_baseline}
    alike = [cell for cell in ranked if cell.compiler in bases and _differs_in_pages(cell, bases)]
    reference = next(iter(bases.values()), None)
    values = {cell.key: _by_round(kernel, records_of(cell)) for cell in alike}
    found = []
    for quantity in dict.fromkeys(name for one in values.values() for name in one):
        for other, cell in _pairs(alike, bases, reference):
            shares = _shares(values[cell.key].get(quantity, {}), values[other.key].get(quantity, {}))
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
    return (cell.measured.prefetch, cell.measured.stores) == (base.prefetch, base.stores)


def _by_round(kernel: Kernel, records: Sequence[Record]) -> dict[str, dict[int, float]]:
    """Each quantity's values by round."""
    found: dict[str, dict[int, float]] = {}
    bandwidth = next((metric for metric in kernel.metrics if metric.unit == "GB/s"), None)
    for record in records:
        told = {"time": run_seconds(record)}
        if bandwidth is not None and bandwidth.field in record["metrics"]:
            told[f"bandwidth, {bandwidth.convention}"] = record["metrics"][bandwidth.field]
        # Over all of the computing, whose passes a kernel chooses by the clock: the count of one pass.
        passes = len(record["seconds"]["repetitions"]) * record.get("passes_per_repetition", 1)
        counted = record.get("counters", {})
        told |= {name: count / passes for name, count in counted.items() if "TLB" in name.upper()}
        if "page_faults" in record:
            told["page faults"] = sum(record["page_faults"].values())
        for name, value in told.items():
            found.setdefault(name, {})[record["run"]["round"]] = float(value)
    return found


def _shares(values: Mapping[int, float], others: Mapping[int, float]) -> list[float]:
    """Paired ratios of the rounds in which both were counted at all."""
    both = [number for number in values if values[number] > 0.0 and others.get(number, 0.0) > 0.0]
    return paired_ratios({n: values[n] for n in both}, others)
