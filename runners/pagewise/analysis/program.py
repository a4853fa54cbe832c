"""The metrics that the user's program prints, by page policy, and its memory by kind. Pure functions."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.quantities import compared_values
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.series import by_cell
from pagewise.analysis.verdict import Comparison, Verdict, judge_all
from pagewise.core.benchmark import Benchmark, Metric
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import Cell
from pagewise.core.record import Record
from pagewise.core.record_parts import OverTime, ProgramMemory
from pagewise.core.result import Result
from pagewise.core.units import bytes_text


@dataclass(frozen=True)
class MetricRow:
    """A metric of a program under a policy: its median, and the verdict on its ratio to the baseline's.

    `verdict` is None for the baseline.
    """

    kernel: Benchmark
    metric: Metric
    cell: Cell
    value: float
    floor: float | None
    verdict: Verdict | None = None

    @property
    def change_measured(self) -> Ratio | None:
        """The metric compared with that of the baseline, paired by round."""
        return None if self.verdict is None else self.verdict.ratio

    @property
    def ratio(self) -> Ratio | None:
        """The ratio to the baseline; None where a value is not above zero."""
        measured = self.change_measured
        return None if measured is None or measured.is_difference else measured

    @property
    def difference(self) -> Ratio | None:
        """The difference to the baseline where a value is not above zero, else None."""
        measured = self.change_measured
        return measured if measured is not None and measured.is_difference else None

    @property
    def change(self) -> Literal["better", "worse", "inconclusive"] | None:
        """The verdict by the metric's own direction; None for the baseline."""
        if self.verdict is None or self.verdict.change == "inconclusive":
            return None if self.verdict is None else "inconclusive"
        return "better" if self.verdict.change == self.metric.better else "worse"


@dataclass(frozen=True)
class MemoryRow:
    """Memory of a kind under a policy: medians over runs of its peak and of its mean over time, in bytes."""

    program: str
    policy: str
    kind: str
    peak: float
    peak_huge: float
    mean: float
    mean_huge: float

    @property
    def coverage(self) -> float:
        """The share on huge pages, weighted by time."""
        return self.mean_huge / self.mean if self.mean else 0.0

    @property
    def peak_coverage(self) -> float:
        """The share of the peaks."""
        return min(1.0, self.peak_huge / self.peak) if self.peak else 0.0


@dataclass(frozen=True)
class SamplingCost:
    """The median share of one CPU that sampling took during runs, and the median of samples per run."""

    share: float
    samples: float
    methods: tuple[str, ...]


def metric_rows(result: Result, kernels: Sequence[KernelResult]) -> list[MetricRow]:
    """Each metric under each policy that is ranked, in the order of the programs and their metrics.

    All metrics and policies are judged together.
    """
    records = by_cell(result.records)
    rows: list[MetricRow] = []
    comparisons: dict[int, Comparison] = {}
    for analysed in kernels:
        kernel, ranked = analysed.kernel, [row.cell for row in analysed.ranked]
        for metric in kernel.metrics:
            seed = zlib.crc32(f"{result.manifest.seed}/{metric.field}".encode())

            def value(record: Record, name: str = metric.field) -> float | None:
                return record.figures.get(name)

            for cell, middle, comparison in compared_values(kernel.name, ranked, records, value, seed):
                if not cell.is_baseline:
                    comparisons[len(rows)] = comparison
                rows.append(MetricRow(kernel, metric, cell, middle, comparison.floor))
    verdicts = judge_all(comparisons)
    return [replace(row, verdict=verdicts.get(place)) for place, row in enumerate(rows)]


def memory_rows(records: Iterable[Record]) -> list[MemoryRow]:
    """Memory by policy and kind, of all timed runs that report it (of trial runs if no other does)."""
    timed: dict[tuple[str, ...], list[ProgramMemory]] = {}
    trials: dict[tuple[str, ...], list[ProgramMemory]] = {}
    for record in records:
        if record.run is not None and record.program is not None:
            runs = trials if record.series == "trial" else timed
            program, _, policy = record.run.module.rpartition("/")
            of_run = (program, policy, record.run.placement or "", record.run.options or "")
            runs.setdefault(of_run, []).append(record.program)
    rows = []
    for key in dict.fromkeys((*trials, *timed)):
        usages, program = timed.get(key) or trials[key], key[0]
        policy = " ".join(filter(None, key[1:]))
        for kind in dict.fromkeys(kind for usage in usages for kind in usage.kinds):
            of_kind = [usage.kinds[kind] for usage in usages if kind in usage.kinds]
            rows.append(_memory(program, policy, kind, of_kind))
        rows.append(_memory(program, policy, "all", [usage.total for usage in usages]))
        size = PagePolicy(key[1]).size
        given = [usage.given for usage in usages if usage.given is not None]
        if given and size is not None:
            # smaps does not show mTHP; the kernel's counters do.
            peak = size * median(pages.peak for pages in given)
            mean = size * median(pages.mean for pages in given)
            rows.append(MemoryRow(program, policy, f"{bytes_text(size)} pages", peak, peak, mean, mean))
    return rows


def sampling_cost(records: Iterable[Record]) -> SamplingCost | None:
    """The cost of sampling the memory in timed runs, None without sampling."""
    usages = [record.program for record in records if record.program and record.series in ("compare", "aa")]
    if not usages:
        return None
    sampled = [usage for usage in usages if usage.sampled_seconds > 0]
    shares = [usage.sampling_seconds / usage.sampled_seconds for usage in sampled]
    methods = tuple(sorted({usage.method for usage in usages}, reverse=True))
    samples = median(usage.samples for usage in usages)
    return SamplingCost(median(shares) if shares else 0.0, samples, methods)


def _memory(program: str, policy: str, kind: str, usages: Sequence[OverTime]) -> MemoryRow:
    return MemoryRow(
        program,
        policy,
        kind,
        median(usage.peak.resident_bytes for usage in usages),
        median(usage.peak.huge_bytes for usage in usages),
        median(usage.mean.resident_bytes for usage in usages),
        median(usage.mean.huge_bytes for usage in usages),
    )
