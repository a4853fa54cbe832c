"""The runs of a configuration as values by round, and the curves of its sweeps. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import median

from pagewise.analysis.statistics import trimmed_mean
from pagewise.analysis.validity import invalid_reason
from pagewise.core.benchmark import Benchmark, Sweep
from pagewise.core.plan import Cell, CellKey, key_of
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
    """Seconds of one pass: the median repetition by its passes (a kernel chooses these by the clock).

    Of a run in turns: the reference's, times the trimmed mean ratio of its turns to those of the baselines.
    The quotient of two such runs is then paired by turn.
    """
    turns = None if record.run is None else record.run.turns
    if turns is None:
        return median(record.repetitions) / record.passes
    pairs = zip(record.repetitions, turns.baseline_seconds, strict=True)
    logs = [math.log(seconds / record.passes / common) for seconds, common in pairs]
    return turns.reference_seconds * math.exp(trimmed_mean(logs))


def runs_of(
    compared: Iterable[Record],
    repeated: Iterable[Record],
    value: Callable[[Record], float | None] = run_seconds,
) -> list[dict[int, float]]:
    """The values of valid runs, see statistics.Runs; a run whose `value` is None is omitted."""
    by_round: dict[int, list[Record]] = {}
    for record in valid_records(repeated):
        by_round.setdefault(record.round, []).append(record)
    return [
        {record.round: x for record in records if record and (x := value(record)) is not None}
        for records in (valid_records(compared), *zip_longest(*by_round.values()))
    ]


X = float | str


@dataclass(frozen=True)
class Curve:
    """One sweep of one cell: (x, y) by x, and how many points were excluded.

    x are numbers in order, or words or values of a metric in the order in which they were measured.
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
    order = by_x if are_words or sweep.of_metric else sorted(by_x)
    return Curve(sweep, cell, tuple((x, median(by_x[x])) for x in order), len(records) - len(points))


def _swept(sweep: Sweep, record: Record) -> X | None:
    """The value of what is swept in a record, None if the record does not have it."""
    if sweep.of_working_set:
        return None if record.sizes is None else float(record.sizes.working_set_bytes)
    if sweep.of_metric:
        return record.figures.get(sweep.x.removeprefix("metrics."))
    value = (record.options or {}).get(sweep.x.removeprefix("options."))
    if isinstance(value, bool):
        return "on" if value else "off"
    return float(value) if isinstance(value, int | float) else value
