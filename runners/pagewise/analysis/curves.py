"""The curves of a sweep: one metric over what is swept, from the valid runs. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from pagewise.analysis.validity import invalid_reason
from pagewise.core.kernel import Kernel, Sweep
from pagewise.core.plan import Cell
from pagewise.core.record import Record

X = float | str


@dataclass(frozen=True)
class Curve:
    """One sweep of one cell: (x, y) by x, and how many points were not valid.

    x are numbers in order, or words in the order in which they were measured.
    """

    sweep: Sweep
    cell: Cell
    points: tuple[tuple[X, float], ...]
    left_out: int


def curves_of(kernel: Kernel, cell: Cell, records: Sequence[Record]) -> Iterator[Curve]:
    """The curves of a cell. A record that does not tell its sweep is of the first."""
    for place, sweep in enumerate(kernel.sweeps):
        names = (sweep.name, None) if place == 0 else (sweep.name,)
        mine = [record for record in records if record.run and record.run.sweep in names]
        if mine:
            yield _curve(sweep, cell, mine)


def _curve(sweep: Sweep, cell: Cell, records: Sequence[Record]) -> Curve:
    """The valid points by x; where a kernel rounds sizes to the same x, the median of them."""
    measured: list[tuple[X, float]] = []
    for record in records:
        x = _swept(sweep, record)
        if x is not None and invalid_reason(record) is None and sweep.y.field in record.figures:
            measured.append((x, float(record.figures[sweep.y.field])))
    if any(isinstance(x, str) for x, _ in measured):
        measured = [(words_of(x), y) for x, y in measured]
    at: dict[X, list[float]] = {}
    for x, y in measured:
        at.setdefault(x, []).append(y)
    order = at if any(isinstance(x, str) for x in at) else sorted(at)
    return Curve(sweep, cell, tuple((x, median(at[x])) for x in order), len(records) - len(measured))


def _swept(sweep: Sweep, record: Record) -> X | None:
    """The value of what is swept in a record, None when the record does not have it."""
    if sweep.of_working_set:
        return None if record.sizes is None else float(record.sizes.working_set_bytes)
    value = (record.options or {}).get(sweep.x.removeprefix("options."))
    if isinstance(value, bool):
        return "on" if value else "off"
    return float(value) if isinstance(value, int | float) else value


def words_of(x: X) -> str:
    """A swept value as a word: choices may be mixed with numbers."""
    return x if isinstance(x, str) else f"{x:g}"
