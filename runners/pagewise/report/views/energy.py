"""The energy of each configuration beside its time, and the power of a program over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import nan

from pagewise.analysis.rows import KernelResult
from pagewise.analysis.series import by_cell
from pagewise.analysis.usage import typical_run
from pagewise.core.configuration import Configuration
from pagewise.core.kernel import Kernel
from pagewise.core.record import Record
from pagewise.core.result import Result
from pagewise.report.model import Block, Column, Figure, Line, Lines, Section, Table, Text
from pagewise.report.verdicts import PowerRow
from pagewise.report.views import comparisons
from pagewise.report.views.data import Entry, ranked

_PATTERN = ("hardware", "regular", "explicit")
_SHOWN = (
    Column("configuration", merged=True, get="entry.label"),
    Column("from", unit="s", kind="number", get="start"),
    Column("to", unit="s", kind="number", get="end"),
    Column("power", unit="W", kind="number", get="watts"),
)


@dataclass(frozen=True)
class _Interval:
    """The mean power of an interval of the typical run of a configuration; None: a sensor failed."""

    entry: Entry
    round: int
    start: float
    end: float
    watts: float | None

    @property
    def kernel(self) -> Kernel:
        return self.entry.kernel

    @property
    def configuration(self) -> Configuration:
        return self.entry.configuration


def sections(result: Result, kernels: Sequence[KernelResult]) -> list[Section]:
    """Energy beside time; none where no energy was measured."""
    table = comparisons.energy(kernels)
    measured, over_time = result.manifest.energy, tuple(_over_time(result, kernels))
    if measured is None or not (table.rows or over_time):
        return []
    text = (
        f"Measured by {measured.text}, for everything that ran on the node, idle cores included. "
        "Energy: the mean power of a run times the seconds of a pass, or of the whole run of a program. "
        "Ratios to the baseline, paired by round; noise floor and correction are those of energies."
    )
    tables = (table,) if table.rows else ()
    return [Section("Energy", (*tables, Text(text, style="dim"), *over_time))]


def _over_time(result: Result, kernels: Sequence[KernelResult]) -> Iterator[Block]:
    """For each program, the power of its configurations over time: as a figure, and as a table."""
    for of_kernel in kernels:
        panels: dict[str, list[Line]] = {}
        for entry, record in _typical_runs(result, [of_kernel]):
            points = tuple(_points(_intervals(entry, record)))
            line = Line(entry.label, entry.configuration.hugepages, _PATTERN, points)
            panels.setdefault(entry.group.compiler, []).append(line)
        if not panels:
            continue
        kernel, title = of_kernel.kernel, f"{of_kernel.kernel.title}: power over time"
        caption = (
            f"{title}. Each line is the run of median time of a configuration, each point the mean power "
            "of an interval, at its middle. Gaps: a sensor failed. Colour is the page policy."
        )
        lines = tuple((compiler, tuple(lines)) for compiler, lines in panels.items())
        yield Figure(f"{kernel.name}-power", title, caption, Lines(lines, "time [s]", "power [W]"))
        table = Table.of(title, _SHOWN, _all_intervals(result, [of_kernel]))
        yield Section(f"{title}, values", (table,), only="page", folded=True)


def _points(intervals: Sequence[_Interval]) -> Iterator[tuple[float, float]]:
    """The curve of a run, from its first to its last power; NaN is a gap."""
    known = [place for place, interval in enumerate(intervals) if interval.watts is not None]
    for interval in intervals[known[0] : known[-1] + 1]:
        yield (interval.start + interval.end) / 2, nan if interval.watts is None else interval.watts


def _typical_runs(result: Result, kernels: Sequence[KernelResult]) -> Iterator[tuple[Entry, Record]]:
    cells = by_cell(result.records)
    for entry in ranked(kernels):
        record = typical_run(cells.get((entry.kernel.name, entry.row.cell.key, "compare"), []))
        if record is not None:
            yield entry, record


def _intervals(entry: Entry, record: Record) -> list[_Interval]:
    ends = pairwise((0.0, *(each.end_seconds for each in record.power_over_time)))
    watts = (each.watts for each in record.power_over_time)
    return [_Interval(entry, record.round, *end, power) for end, power in zip(ends, watts, strict=True)]


def _all_intervals(result: Result, kernels: Sequence[KernelResult]) -> list[_Interval]:
    return [each for run in _typical_runs(result, kernels) for each in _intervals(*run)]


def over_time_of(result: Result, kernels: Sequence[KernelResult]) -> dict[str, Table]:
    """power.csv, where the power of a program was measured over time."""
    table = Table.of_outputs(PowerRow, _all_intervals(result, kernels))
    return {"power.csv": table} if table.rows else {}
