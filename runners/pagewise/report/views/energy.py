"""The energy of each configuration, with its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.energy import EnergyRow, energy_rows
from pagewise.core.result import Result
from pagewise.report.model import Cell, Column, Getter, Section, Table, Text, style_of
from pagewise.report.views.data import Entry, dimension_fields, ratio_fields, verdict_fields
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


def _items(result: Result, kernels: Sequence[KernelResult]) -> Iterator[_Item]:
    for row in energy_rows(kernels, result.records, result.manifest.seed):
        yield _Item(Entry(row.result, row.group, row.row), row)


def sections(result: Result, kernels: Sequence[KernelResult]) -> list[Section]:
    """Energy beside time; none where no energy was measured."""
    table = Table.of("Energy by configuration", _SHOWN, _items(result, kernels))
    measured = result.manifest.energy
    if measured is None or not table.rows:
        return []
    text = (
        f"Measured by {measured.text}, for everything that ran on the node, idle cores included. "
        "Energy: the mean power of a run times the seconds of a pass, or of the whole run of a program. "
        "Ratios to the baseline, paired by round; noise floor and correction are those of energies."
    )
    return [Section("Energy", (table, Text(text, style="dim")))]


def table_of(result: Result, kernels: Sequence[KernelResult]) -> Table:
    """The field `energy` of the JSON object."""
    return Table.of_fields(_FIELDS, _items(result, kernels))
