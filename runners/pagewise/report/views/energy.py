"""The energy of each configuration beside its time, and the power of a program over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import nan

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.energy import EnergyRow, energy_rows, typical_run
from pagewise.analysis.series import by_cell
from pagewise.core.record import Record
from pagewise.core.result import Result
from pagewise.report.model import (
    Block,
    Cell,
    Column,
    Figure,
    Getter,
    Line,
    Lines,
    Section,
    Table,
    Text,
    style_of,
)
from pagewise.report.views.data import Entry, dimension_fields, ranked, ratio_fields, verdict_fields
from pagewise.report.views.wording import reason_text


@dataclass(frozen=True)
class _Item:
    """A configuration with its energy."""

    entry: Entry
    energy: EnergyRow

    @property
    def change(self) -> str | None:
        """The verdict on its energy; None for the baseline."""
        return None if self.energy.verdict is None else self.energy.verdict.change

    @property
    def verdict(self) -> object:
        """The verdict, for its fields."""
        return self.energy.verdict


def _style(item: _Item) -> Cell:
    if item.energy.verdict is None:
        return Cell("baseline", "baseline")
    return Cell(item.change, style_of(item.energy.verdict.outcome), reason_text(item.energy.verdict.reason))


def _ratio(item: _Item) -> Cell:
    verdict = item.energy.verdict
    if verdict is None:
        return Cell("1", "baseline")
    return Cell(verdict.ratio, style_of(verdict.outcome), floor=verdict.floor)


_FIELDS: Mapping[str, Getter] = {
    "kernel": "entry.kernel.name",
    "module": "entry.measured.module",
    **dimension_fields("entry.measured"),
    "joules": "energy.joules",
    "watts": "energy.watts",
    **verdict_fields("change"),
    **ratio_fields("entry.row.time_ratio", "time_"),
}
_SHOWN = (
    Column("kernel", merged=True, get="entry.kernel.title"),
    Column("compiler", merged=True, get="entry.group.compiler"),
    Column("configuration", get="entry.label"),
    Column("power", unit="W, median", kind="number", get="energy.watts"),
    Column("energy", unit="J per pass, median", kind="number", get="energy.joules"),
    Column("energy ratio", unit="95 % interval", kind="ratio", get=_ratio),
    Column("energy verdict", get=_style),
    Column("time ratio", unit="95 % interval", kind="ratio", get="entry.row.time_ratio"),
)

_PATTERN = ("hardware", "regular", "explicit")
_OVER_TIME: Mapping[str, Getter] = {
    "kernel": "entry.kernel.name",
    "module": "entry.measured.module",
    **dimension_fields("entry.measured"),
    "round": "round",
    "from_seconds": "start",
    "to_seconds": "end",
    "watts": "watts",
}
_OVER_TIME_SHOWN = (
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


def _items(result: Result, kernels: Sequence[KernelResult]) -> Iterator[_Item]:
    for row in energy_rows(kernels, result.records, result.manifest.seed):
        yield _Item(Entry(row.result, row.group, row.row), row)


def sections(result: Result, kernels: Sequence[KernelResult]) -> list[Section]:
    """Energy beside time; none where no energy was measured."""
    table = Table.of("Energy by configuration", _SHOWN, _items(result, kernels))
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
            line = Line(entry.label, entry.measured.hugepages, _PATTERN, points)
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
        table = Table.of(title, _OVER_TIME_SHOWN, _all_intervals(result, [of_kernel]))
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


def table_of(result: Result, kernels: Sequence[KernelResult]) -> Table:
    """The field `energy` of the JSON object."""
    return Table.of_fields(_FIELDS, _items(result, kernels))


def over_time_of(result: Result, kernels: Sequence[KernelResult]) -> dict[str, Table]:
    """power.csv, where the power of a program was measured over time."""
    table = Table.of_fields(_OVER_TIME, _all_intervals(result, kernels))
    return {"power.csv": table} if table.rows else {}
