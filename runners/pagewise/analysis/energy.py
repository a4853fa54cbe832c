"""The energy of each configuration, and the verdict on its ratio to the baseline's. Pure functions."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pagewise.analysis.analysis import Group, KernelResult
from pagewise.analysis.quantities import compared_values
from pagewise.analysis.rows import Row
from pagewise.analysis.series import by_cell, run_seconds
from pagewise.analysis.verdict import Comparison, Verdict, judge_all
from pagewise.core.record import Record
from pagewise.core.record_parts import POWER


@dataclass(frozen=True)
class EnergyRow:
    """The energy of a configuration: `joules` per pass, or per run of a program, and the mean power.

    `verdict` is None for the baseline.
    """

    result: KernelResult
    group: Group
    row: Row
    joules: float
    verdict: Verdict | None = None

    @property
    def watts(self) -> float | None:
        """The median of the mean powers of its runs; None if a run has none."""
        return self.row.metrics.get(POWER)


def joules(record: Record) -> float | None:
    """The energy of a pass: the run's mean power times the seconds of a pass.

    A kernel chooses its passes by the clock, so that the energy of whole runs shows their power only.
    """
    power = record.figures.get(POWER)
    return power * run_seconds(record) if power else None


def energy_rows(kernels: Sequence[KernelResult], records: Iterable[Record], seed: int) -> list[EnergyRow]:
    """The ranked configurations whose energy was measured; all are judged together, apart from times."""
    cells = by_cell(records)
    rows: list[EnergyRow] = []
    comparisons: dict[int, Comparison] = {}
    for result in kernels:
        name = result.kernel.name
        for group in result.groups:
            by_key = {row.cell.key: row for row in group.ranked}
            own_seed = zlib.crc32(f"{seed}/{name}/{group.compiler}/energy".encode())
            ranked = [row.cell for row in group.ranked]
            for cell, middle, comparison in compared_values(name, ranked, cells, joules, own_seed):
                if not cell.is_baseline:
                    comparisons[len(rows)] = comparison
                rows.append(EnergyRow(result, group, by_key[cell.key], middle))
    verdicts = judge_all(comparisons)
    return [replace(row, verdict=verdicts.get(place)) for place, row in enumerate(rows)]
