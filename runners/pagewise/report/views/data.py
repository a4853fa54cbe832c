"""The rows of a comparison, and the tables for programs: summary.csv, comparisons.csv and data.csv."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pagewise.analysis.comparison import Comparison
from pagewise.analysis.rows import Group, KernelResult, Row
from pagewise.core.benchmark import Benchmark, Metric
from pagewise.core.configuration import Configuration
from pagewise.core.manifest import Manifest
from pagewise.core.plan import Cell
from pagewise.core.record_parts import PEAK_MEMORY
from pagewise.core.units import count_text
from pagewise.report.model import Table, output_of
from pagewise.report.verdicts import ComparisonRow, ConfigurationRow, MedianRow
from pagewise.report.views.wording import label

_GIB = 1 << 30
_TIME = Metric("pass_seconds", "time per pass", "s", "lower")


@dataclass(frozen=True)
class DataRow:
    """A row of a comparison, with its kernel, the group of its compiler, and what outputs show of it.

    `configuration` is the one that was measured, or another one that it stands for.
    """

    result: KernelResult
    group: Group
    row: Row
    configuration: Configuration

    @property
    def kernel(self) -> Benchmark:
        """The kernel, or the user's program."""
        return self.result.kernel

    @property
    def label(self) -> str:
        """The configuration in words."""
        return label(self.kernel, self.configuration)

    @property
    def peak(self) -> float | None:
        """The peak memory of a program in bytes."""
        peak = self.row.metrics.get(PEAK_MEMORY)
        return None if peak is None else peak * _GIB

    @property
    def more_memory_bytes(self) -> float | None:
        """What of the peak is there only because of the policy; negative: it needs less."""
        ratio = self.row.memory
        return None if ratio is None or self.peak is None else self.peak * (1.0 - 1.0 / ratio.median)


def entries(kernels: Iterable[KernelResult]) -> list[DataRow]:
    """All rows, by kernel and compiler; the ranked ones first."""
    return [
        DataRow(result, group, row, row.cell.measured)
        for result in kernels
        for group in result.groups
        for row in group.rows
    ]


def ranked(kernels: Iterable[KernelResult]) -> list[DataRow]:
    """The ranked rows."""
    return [entry for entry in entries(kernels) if entry.row.invalid is None]


def excluded(kernels: Iterable[KernelResult]) -> list[DataRow]:
    """The excluded rows."""
    return [entry for entry in entries(kernels) if entry.row.invalid is not None]


def faults(kernels: Iterable[KernelResult]) -> list[DataRow]:
    """The rows that are excluded because of a fault; a missing configuration is no fault."""
    return [entry for entry in excluded(kernels) if entry.row.is_fault]


def rounds_share(row: Row) -> str:
    """In how many of its kernel's rounds a row has a valid run: `18 of 60 rounds`."""
    return f"{row.rounds} of {count_text(row.rounds_made, 'round')}"


def configurations(kernels: Iterable[KernelResult]) -> list[ConfigurationRow]:
    """Each configuration of each kernel, including those that share a measurement; times in seconds."""
    return [
        output_of(ConfigurationRow, replace(entry, configuration=configuration))
        for entry in entries(kernels)
        for configuration in entry.row.cell.stands_for
    ]


def comparisons(rows: Iterable[Comparison]) -> list[ComparisonRow]:
    """Each comparison of each kind."""
    return [output_of(ComparisonRow, row) for row in rows]


def medians(kernels: Sequence[KernelResult], manifest: Manifest) -> Table:
    """Each quantity of each measured configuration and each point of a curve, with the placement."""
    places = {place.name: place for place in manifest.placements}

    def items() -> Iterator[Mapping[str, Any]]:
        for result in kernels:
            for entry in entries([result]):
                row = entry.row
                values = {_TIME.field: row.seconds, **row.metrics}
                for metric in (*result.kernel.metrics, _TIME):
                    value = {"value": values.get(metric.field), "invalid": row.invalid}
                    yield {**_of_cell(result.kernel, row.cell), "metric": metric, **value}
            for curve in result.curves:
                of_curve = {"metric": curve.sweep.y, "sweep": curve.sweep.name}
                for x, y in curve.points:
                    swept = f"{x:.12g}" if isinstance(x, float) else x
                    point = {"swept": swept, "value": y}
                    yield {**_of_cell(result.kernel, curve.cell), **of_curve, **point}

    def _of_cell(kernel: Benchmark, cell: Cell) -> Mapping[str, Any]:
        place = places.get(cell.placement or "", manifest.placement)
        return {"kernel": kernel, "configuration": cell.measured, "place": place}

    return Table.of_outputs(MedianRow, items())
