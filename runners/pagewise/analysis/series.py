"""The runs of a configuration as values by round. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

from pagewise.analysis.validity import invalid_reason
from pagewise.core.plan import CellKey, key_of
from pagewise.core.record import Record

#: Records by kernel, key of the cell, and series.
RecordsOfCells = dict[tuple[str, CellKey, str], list[Record]]


def by_cell(records: Iterable[Record]) -> RecordsOfCells:
    """The records of a session by cell and series, in order."""
    cells: RecordsOfCells = {}
    for record in records:
        if (run := record.run) is not None:
            cells.setdefault((record.of_kernel, key_of(run), run.series), []).append(record)
    return cells


def valid_records(records: Iterable[Record]) -> list[Record]:
    """The records that may be ranked."""
    return [record for record in records if invalid_reason(record) is None]


def fewest_rounds(records: Iterable[Record]) -> int | None:
    """The fewest rounds of a cell in which it has valid runs, None if all have all rounds of their kernel.

    Cells without any valid run do not count.
    """
    made: dict[str, set[int]] = {}
    valid: dict[tuple[str, CellKey], set[int]] = {}
    for (kernel, key, series), several in by_cell(records).items():
        if series in ("compare", "aa"):
            made.setdefault(kernel, set()).update(record.round for record in several)
            valid.setdefault((kernel, key), set()).update(record.round for record in valid_records(several))
    short = [len(rounds) for (kernel, _), rounds in valid.items() if rounds and rounds < made[kernel]]
    return min(short, default=None)


def run_seconds(record: Record) -> float:
    """Seconds of one pass: the median repetition by its passes (a kernel chooses these by the clock)."""
    return median(record.repetitions) / record.passes


def runs_of(
    compared: Iterable[Record],
    repeated: Iterable[Record],
    value: Callable[[Record], float | None] = run_seconds,
) -> list[dict[int, float]]:
    """The values of valid runs, see statistics.Runs; a run whose `value` is None is omitted."""
    by_round: dict[int, list[Record]] = {}
    for record in valid_records(repeated):
        by_round.setdefault(record.round, []).append(record)
    most = max(map(len, by_round.values()), default=0)
    repeats = [[runs[place] for runs in by_round.values() if place < len(runs)] for place in range(most)]
    return [
        {record.round: x for record in records if (x := value(record)) is not None}
        for records in (valid_records(compared), *repeats)
    ]
