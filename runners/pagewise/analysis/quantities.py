"""Quantities other than times, compared with the baseline as times are. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from pagewise.analysis.series import RecordsOfCells, runs_of
from pagewise.analysis.statistics import Runs, compared, noise_floor, repeated_ratios
from pagewise.analysis.verdict import Comparison
from pagewise.core.plan import Cell
from pagewise.core.record import Record


def values_by_round(
    kernel: str, cell: Cell, records: RecordsOfCells, value: Callable[[Record], float | None]
) -> Runs:
    """The values of a cell's valid runs, those of A/A too."""
    timed, repeated = (records.get((kernel, cell.key, name), []) for name in ("compare", "aa"))
    return runs_of(timed, repeated, value)


def compared_values(
    kernel: str,
    cells: Sequence[Cell],
    records: RecordsOfCells,
    value: Callable[[Record], float | None],
    seed: int,
) -> Iterator[tuple[Cell, float, Comparison]]:
    """Each cell that has values, their median, and its comparison with the baseline, paired by round.

    They are compared by their ratio, or by their difference if not all values are above zero. The noise floor
    is that of the baseline's values. The comparison of the baseline has no ratio.
    """

    def runs(cell: Cell) -> Runs:
        return values_by_round(kernel, cell, records, value)

    base = next((cell for cell in cells if cell.is_baseline), None)
    baseline = [] if base is None else runs(base)
    every = [(cell, runs(cell)[:1]) for cell in cells]
    seen = (*baseline, *(run for _, own in every for run in own))
    by_difference = any(value <= 0.0 for run in seen for value in run.values())
    floor = noise_floor(*repeated_ratios(baseline, seed, by_difference=by_difference))
    for cell, own in every:
        if own[0]:
            measured = None
            if not cell.is_baseline:
                measured = compared(own, baseline, seed, by_difference=by_difference)
            yield cell, median(own[0].values()), Comparison(measured, floor)
