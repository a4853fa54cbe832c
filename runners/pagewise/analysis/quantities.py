"""Quantities other than times, compared with the baseline as times are. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from pagewise.analysis.series import RecordsOfCells, runs_of
from pagewise.analysis.statistics import Runs, noise_floor, quotients, ratio, repeated_ratios
from pagewise.analysis.verdict import Comparison
from pagewise.core.plan import Cell
from pagewise.core.record import Record


def compared_values(
    kernel: str,
    cells: Sequence[Cell],
    records: RecordsOfCells,
    value: Callable[[Record], float | None],
    seed: int,
) -> Iterator[tuple[Cell, float, Comparison]]:
    """Each cell that has values, their median, and its comparison with the baseline, paired by round.

    The noise floor is that of the baseline's values. The comparison of the baseline has no ratio.
    """

    def runs(cell: Cell) -> Runs:
        timed, repeated = (records.get((kernel, cell.key, name), []) for name in ("compare", "aa"))
        return runs_of(timed, repeated, value)

    base = next((cell for cell in cells if cell.is_baseline), None)
    baseline = [] if base is None else runs(base)
    floor = noise_floor(*repeated_ratios(baseline, seed))
    for cell in cells:
        own = runs(cell)[:1]
        if own[0]:
            measured = None if cell.is_baseline else ratio(quotients(own, baseline), seed)
            yield cell, median(own[0].values()), Comparison(measured, floor)


def positive(value: float | None) -> float | None:
    """Ratios need numbers above zero; a time that was too short to measure is omitted."""
    return float(value) if value is not None and value > 0 else None
