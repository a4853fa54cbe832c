"""Ratios with : without huge pages, and compiler : compiler, as the FLASH studies show them. Pure functions.

Time, bandwidth, TLB misses where they were counted, and page faults, each paired by round (Calder, Feldman
et al., PEARC 2023, figures 1 and 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pagewise.analysis.ratio import Ratio
from pagewise.analysis.series import run_seconds, runs_of, valid_records
from pagewise.analysis.statistics import quotients, ratio
from pagewise.core.benchmark import Benchmark, Metric
from pagewise.core.dimensions import differ_only_in
from pagewise.core.plan import Cell
from pagewise.core.record import Record


@dataclass(frozen=True)
class PolicyRatio:
    """A quantity of one cell over that of another: of a policy over the baseline's, or of two compilers.

    `compiler` and `policy` are those of the first cell. `reference` is the compiler of the other cell; None:
    both have one compiler, and the other has the baseline's pages.
    """

    quantity: str
    compiler: str
    policy: str
    reference: str | None
    ratio: Ratio


def policy_ratios(
    kernel: Benchmark,
    ranked: Sequence[Cell],
    records_of: Callable[[Cell], tuple[Sequence[Record], Sequence[Record]]],
    seed: int,
) -> tuple[PolicyRatio, ...]:
    """All such ratios among the cells that may be ranked, by quantity.

    `records_of` returns a cell's compared and repeated records. Cells count that differ from their compiler's
    baseline in the page policy alone.
    """
    if "hugepages" not in kernel.sensitive_to:
        return ()
    bases = {cell.compiler: cell for cell in ranked if cell.is_baseline}
    alike = [
        cell
        for cell in ranked
        if (base := bases.get(cell.compiler)) and differ_only_in("hugepages", cell.measured, base.measured)
    ]
    records = {cell.key: records_of(cell) for cell in alike}
    names = dict.fromkeys(
        name for several in records.values() for part in several for name in _names(kernel, part)
    )
    ratios = []
    for quantity in names:
        value = partial(_quantity, kernel, quantity)
        runs = {key: runs_of(*several, value) for key, several in records.items()}
        for other, cell in _pairs(alike, bases):
            pair = (*runs[cell.key], *runs[other.key])
            measured = None
            # A count that was 0 in some round has no ratio.
            if all(count > 0.0 for run in pair for count in run.values()):
                measured = ratio(quotients(runs[cell.key], runs[other.key]), seed)
            if measured is not None:
                reference = None if other.compiler == cell.compiler else other.compiler
                policy = cell.measured.hugepages
                ratios.append(PolicyRatio(quantity, cell.compiler, policy, reference, measured))
    return tuple(ratios)


def _pairs(alike: Sequence[Cell], bases: Mapping[str, Cell]) -> Iterator[tuple[Cell, Cell]]:
    """Denominator and numerator: each policy against its compiler's baseline, then compilers by policy."""
    for cell in alike:
        if not cell.is_baseline:
            yield bases[cell.compiler], cell
    first = next(iter(bases), None)
    by_policy = {cell.measured.hugepages: cell for cell in reversed(alike) if cell.compiler == first}
    for cell in alike:
        other = by_policy.get(cell.measured.hugepages)
        if other is not None and cell.compiler != first:
            yield other, cell


def _names(kernel: Benchmark, records: Iterable[Record]) -> list[str]:
    return [name for record in valid_records(records) for name in _quantities(kernel, record)]


def _quantity(kernel: Benchmark, name: str, record: Record) -> float | None:
    return _quantities(kernel, record).get(name)


def _quantities(kernel: Benchmark, record: Record) -> dict[str, float]:
    # Over all of the computing, whose passes a kernel chooses by the clock: the count of one pass.
    passes = len(record.repetitions) * record.passes
    bandwidth = next((item for item in kernel.metrics if item.unit == "GB/s" and item.convention), None)
    values: dict[str, float | None] = {
        "time": run_seconds(record),
        **({_bandwidth_name(bandwidth): record.figures.get(bandwidth.field)} if bandwidth else {}),
        **{name: count / passes for name, count in record.counts.items() if "TLB" in name.upper()},
        "page faults": None if record.page_faults is None else record.page_faults.total,
    }
    return {name: float(value) for name, value in values.items() if value is not None}


def _bandwidth_name(metric: Metric) -> str:
    return f"bandwidth, {metric.convention}{', estimated' if metric.estimated else ''}"
