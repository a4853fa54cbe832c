"""The metrics that the user's program prints, by page policy, and its memory by kind. Pure functions."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from pagewise.analysis.analysis import analyse_result, repeats
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.result import trusted_records
from pagewise.analysis.statistics import against, noise_floor, paired_ratios, ratio
from pagewise.analysis.validity import invalid_reason
from pagewise.analysis.verdict import Comparison, Verdict, judge
from pagewise.core.kernel import Metric
from pagewise.core.page_policy import policy_size
from pagewise.core.plan import Cell, CellKey, key_of
from pagewise.core.record import Record
from pagewise.core.record_parts import OverTime, ProgramMemory
from pagewise.core.result import Result
from pagewise.core.units import bytes_text


@dataclass(frozen=True)
class MetricRow:
    """A metric under a policy: its median, and the verdict on its ratio to the baseline's.

    `verdict` is None for the baseline.
    """

    metric: Metric
    cell: Cell
    value: float
    floor: float | None
    verdict: Verdict | None

    @property
    def ratio(self) -> Ratio | None:
        """The metric over that of the baseline, paired by round."""
        return None if self.verdict is None else self.verdict.ratio

    @property
    def change(self) -> Literal["better", "worse", "inconclusive"] | None:
        """The verdict by the metric's own direction; None for the baseline."""
        if self.verdict is None or self.verdict.outcome == "inconclusive":
            return None if self.verdict is None else "inconclusive"
        return "better" if (self.verdict.outcome == "faster") == (self.metric.better == "lower") else "worse"


@dataclass(frozen=True)
class MemoryRow:
    """Memory of a kind under a policy: medians over runs of its peak and of its mean over time, in bytes."""

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
    """The median share of one CPU that sampling the memory took during runs, and of samples per run."""

    share: float
    samples: float
    methods: tuple[str, ...]


def metric_rows(result: Result) -> list[MetricRow]:
    """Each metric under each policy that is ranked, in the order of the program's metrics.

    All metrics and policies are judged together.
    """
    (analysed,) = analyse_result(result)
    ranked = [row.cell for group in analysed.groups for row in group.ranked]
    base = next((cell for cell in ranked if cell.is_baseline), None)
    valid = [record for record in trusted_records(result) if record.run is not None]
    valid = [record for record in valid if invalid_reason(record) is None]
    measured: list[tuple[Metric, Cell, float, Comparison | None, float | None]] = []
    for metric in analysed.kernel.metrics:
        seed = zlib.crc32(f"{result.manifest['seed']}/{metric.field}".encode())
        bases = [] if base is None else _runs(valid, base.key, metric.field)
        floor = noise_floor(*(ratio(paired_ratios(again, bases[0]), seed) for again in bases[1:]))
        for cell in ranked:
            own, *_ = _runs(valid, cell.key, metric.field)
            if own:
                compared = None
                if not cell.is_baseline:
                    compared = Comparison(ratio(against(own, bases), seed) if bases else None, floor)
                measured.append((metric, cell, median(own.values()), compared, floor))
    verdicts = iter(judge([compared for *_, compared, _ in measured if compared is not None]))
    return [
        MetricRow(metric, cell, value, floor, None if compared is None else next(verdicts))
        for metric, cell, value, compared, floor in measured
    ]


def memory_rows(records: Iterable[Record]) -> list[MemoryRow]:
    """Memory by policy and kind, of all timed runs that report it (of trial runs where no other does)."""
    timed: dict[tuple[str, str], list[ProgramMemory]] = {}
    trials: dict[tuple[str, str], list[ProgramMemory]] = {}
    for record in records:
        run = record.run
        if run is not None and record.program is not None:
            kept = trials if run.series == "trial" else timed
            key = record.configuration.hugepages, run.placement or ""
            kept.setdefault(key, []).append(record.program)
    rows = []
    for key in dict.fromkeys((*trials, *timed)):
        usages, policy = timed.get(key) or trials[key], " ".join(filter(None, key))
        for kind in dict.fromkeys(kind for usage in usages for kind in usage.kinds):
            of_kind = [usage.kinds[kind] for usage in usages if kind in usage.kinds]
            rows.append(_memory(policy, kind, of_kind))
        rows.append(_memory(policy, "all", [usage.total for usage in usages]))
        size = policy_size(key[0])
        given = [usage.given for usage in usages if usage.given is not None]
        if given and size is not None:
            # smaps does not show multi-size pages; the kernel's counters do.
            peak = size * median(pages.peak for pages in given)
            mean = size * median(pages.mean for pages in given)
            rows.append(MemoryRow(policy, f"{bytes_text(size)} pages", peak, peak, mean, mean))
    return rows


def sampling_cost(records: Iterable[Record]) -> SamplingCost | None:
    """What sampling the memory cost in timed runs, None when there was none."""
    usages = [
        record.program
        for record in records
        if record.program is not None and record.series in ("compare", "aa")
    ]
    if not usages:
        return None
    sampled = [usage for usage in usages if usage.sampled_seconds > 0]
    shares = [usage.sampling_seconds / usage.sampled_seconds for usage in sampled]
    methods = tuple(sorted({usage.method for usage in usages}, reverse=True))
    samples = median(usage.samples for usage in usages)
    return SamplingCost(median(shares) if shares else 0.0, samples, methods)


def _runs(records: Sequence[Record], cell: CellKey, field: str) -> list[dict[int, float]]:
    """A metric by round: of the runs that are compared, then of each further run of a baseline."""
    mine = [record for record in records if record.run is not None and key_of(record.run) == cell]
    compared = [record for record in mine if record.series == "compare"]
    again = [record for record in mine if record.series == "aa"]
    return [_by_round(compared, field), *(_by_round(runs, field) for runs in repeats(again))]


def _by_round(records: Sequence[Record], field: str) -> dict[int, float]:
    """Ratios need numbers above zero; a time that was too short to count is left out."""
    values = {record.round: record.figures.get(field) for record in records}
    return {number: float(value) for number, value in values.items() if value is not None and value > 0}


def _memory(policy: str, kind: str, usages: Sequence[OverTime]) -> MemoryRow:
    return MemoryRow(
        policy,
        kind,
        median(usage.peak.resident_bytes for usage in usages),
        median(usage.peak.huge_bytes for usage in usages),
        median(usage.mean.resident_bytes for usage in usages),
        median(usage.mean.huge_bytes for usage in usages),
    )
