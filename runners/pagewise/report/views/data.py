"""The rows of a comparison, and the tables for programs: summary.csv, comparisons.csv and data.csv."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pagewise.analysis.comparison import Comparison
from pagewise.analysis.rows import Group, KernelResult, Row
from pagewise.core.benchmark import Benchmark, Metric
from pagewise.core.configuration import Configuration
from pagewise.core.manifest import Manifest, PlannedPlacement
from pagewise.core.plan import Cell
from pagewise.core.record_parts import PEAK_MEMORY, POWER
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
    def headline(self) -> float | None:
        """The kernel's first metric."""
        return self.row.metrics.get(self.kernel.headline.field)

    @property
    def power(self) -> float | None:
        """The median of the mean powers of its runs, in watts."""
        return self.row.metrics.get(POWER)

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

    @property
    def differs_in(self) -> str:
        """What differs from the baseline."""
        return " ".join(self.row.differs)

    @property
    def migrated_runs(self) -> int:
        """The runs in which a thread changed its CPU."""
        return self.row.migration.runs if self.row.migration else 0

    @property
    def left_node_runs(self) -> int:
        """The runs in which a thread left its NUMA node."""
        return self.row.migration.left_node if self.row.migration else 0

    @property
    def outlier_rounds(self) -> str:
        """The rounds of the outliers."""
        return " ".join(str(number) for number, _ in self.row.outliers)


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


@dataclass(frozen=True)
class _Median:
    """A quantity of a cell, or a point of a curve."""

    kernel: Benchmark
    cell: Cell
    place: PlannedPlacement
    metric: Metric
    value: float | None
    invalid: str | None = None
    sweep: str | None = None
    swept: str | None = None

    @property
    def configuration(self) -> Configuration:
        return self.cell.measured

    @property
    def memory(self) -> str:
        return self.place.policy or self.place.memory


def medians(kernels: Sequence[KernelResult], manifest: Manifest) -> Table:
    """Each quantity of each measured configuration and each point of a curve, with the placement."""
    places = {place.name: place for place in manifest.placements}

    def items() -> Iterator[_Median]:
        for result in kernels:
            for entry in entries([result]):
                row, cell = entry.row, entry.row.cell
                place = places.get(cell.placement or "", manifest.placement)
                values = {_TIME.field: row.seconds, **row.metrics}
                for metric in (*result.kernel.metrics, _TIME):
                    yield _Median(result.kernel, cell, place, metric, values.get(metric.field), row.invalid)
            for curve in result.curves:
                place = places.get(curve.cell.placement or "", manifest.placement)
                for x, y in curve.points:
                    swept = f"{x:.12g}" if isinstance(x, float) else x
                    point = _Median(result.kernel, curve.cell, place, curve.sweep.y, y)
                    yield replace(point, sweep=curve.sweep.name, swept=swept)

    return Table.of_outputs(MedianRow, items())
