"""The curves of a sweep: one metric over what is swept, from the valid runs. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from pagewise.analysis.series import valid_records
from pagewise.core.benchmark import Benchmark, Sweep
from pagewise.core.plan import Cell
from pagewise.core.record import Record

X = float | str


@dataclass(frozen=True)
class Curve:
    """One sweep of one cell: (x, y) by x, and how many points were excluded.

    x are numbers in order, or words in the order in which they were measured.
    """

    sweep: Sweep
    cell: Cell
    points: tuple[tuple[X, float], ...]
    excluded: int


def curves_of(kernel: Benchmark, cell: Cell, records: Sequence[Record]) -> Iterator[Curve]:
    """The curves of a cell. A record that does not name its sweep belongs to the first."""
    for place, sweep in enumerate(kernel.sweeps):
        names = (sweep.name, None) if place == 0 else (sweep.name,)
        swept = [record for record in records if record.run and record.run.sweep in names]
        if swept:
            yield _curve(sweep, cell, swept)


def _curve(sweep: Sweep, cell: Cell, records: Sequence[Record]) -> Curve:
    """The valid points by x; where a kernel rounds sizes to the same x, the median of them."""
    points = [
        (x, float(record.figures[sweep.y.field]))
        for record in valid_records(records)
        if (x := _swept(sweep, record)) is not None and sweep.y.field in record.figures
    ]
    are_words = any(isinstance(x, str) for x, _ in points)
    by_x: dict[X, list[float]] = {}
    for x, y in points:
        # Choices may include numbers.
        by_x.setdefault(f"{x:g}" if are_words and isinstance(x, float) else x, []).append(y)
    order = by_x if are_words else sorted(by_x)
    return Curve(sweep, cell, tuple((x, median(by_x[x])) for x in order), len(records) - len(points))


def _swept(sweep: Sweep, record: Record) -> X | None:
    """The value of what is swept in a record, None if the record does not have it."""
    if sweep.of_working_set:
        return None if record.sizes is None else float(record.sizes.working_set_bytes)
    value = (record.options or {}).get(sweep.x.removeprefix("options."))
    if isinstance(value, bool):
        return "on" if value else "off"
    return float(value) if isinstance(value, int | float) else value
