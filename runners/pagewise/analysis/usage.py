"""What runs used: memory by kind, the memory of the node, counted events. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated

from pagewise.analysis.series import by_cell, valid_records
from pagewise.core.node_state import NodeChange
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import CellOf, key_of
from pagewise.core.record import Record
from pagewise.core.record_parts import OverTime, PageFaults, ProgramMemory
from pagewise.core.structure import to_data
from pagewise.core.units import bytes_text


@dataclass(frozen=True)
class MemoryRow:
    """A row of memory.csv: memory of a kind under a policy, medians over the runs."""

    program: str
    hugepages: str
    kind: str
    peak_bytes: int
    peak_huge_bytes: int
    mean_bytes: Annotated[int, "over time"]
    mean_huge_bytes: int
    mean_coverage: Annotated[float, "the share on huge pages, weighted by time"]

    @property
    def peak_coverage(self) -> float:
        """The share of the peaks."""
        return min(1.0, self.peak_huge_bytes / self.peak_bytes) if self.peak_bytes else 0.0


@dataclass(frozen=True)
class SamplingCost:
    """The median share of one CPU that sampling took during runs, and the median of samples per run."""

    share: float
    samples: float
    methods: tuple[str, ...]


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
        by_kind: dict[str, list[OverTime]] = {}
        for kind, of_kind in (pair for usage in usages for pair in usage.kinds.items()):
            by_kind.setdefault(kind, []).append(of_kind)
        by_kind["all"] = [usage.total for usage in usages]
        rows += [_memory((program, policy, kind), several) for kind, several in by_kind.items()]
        size = PagePolicy(key[1]).size
        given = [usage.given for usage in usages if usage.given is not None]
        if given and size is not None:
            # smaps does not show mTHP; the kernel's counters do.
            peak = round(size * median(pages.peak for pages in given))
            mean = round(size * median(pages.mean for pages in given))
            rows.append(_row((program, policy, f"{bytes_text(size)} pages"), peak, peak, mean, mean))
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


def _memory(of: tuple[str, str, str], usages: Sequence[OverTime]) -> MemoryRow:
    values = (
        (usage.peak.resident_bytes, usage.peak.huge_bytes, usage.mean.resident_bytes, usage.mean.huge_bytes)
        for usage in usages
    )
    return _row(of, *(round(median(several)) for several in zip(*values, strict=True)))


def _row(of: tuple[str, str, str], peak: int, peak_huge: int, mean: int, mean_huge: int) -> MemoryRow:
    return MemoryRow(*of, peak, peak_huge, mean, mean_huge, mean_huge / mean if mean else 0.0)


@dataclass(frozen=True)
class NodeUse:
    """What the node's memory was like before the runs of a configuration, and what was counted during them.

    The kernel counts for all processes of the node. unusable: the median of the unusable free space indices.
    allocated, fell_back: page faults that got a transparent huge page, and those that got base pages instead.
    uncharged: of the latter, those that the memory limit of a control group left no huge page.
    """

    runs: int
    unusable: float | None
    allocated: int
    fell_back: int
    stalls: int
    collapsed: int
    uncharged: int = 0

    @property
    def fallback_share(self) -> float | None:
        """The share of THP faults that fell back to base pages; None without any such fault."""
        faults = self.allocated + self.fell_back
        return self.fell_back / faults if faults else None

    @classmethod
    def of(cls, changes: Sequence[NodeChange]) -> NodeUse:
        """That of several runs."""
        unusable = [each.unusable_index for each in changes if each.unusable_index is not None]
        names = (
            *("thp_fault_alloc", "thp_fault_fallback", "compact_stall", "khugepaged_pages_collapsed"),
            "thp_fault_fallback_charge",
        )
        totals = [sum(each.counted.get(name, 0) for each in changes) for name in names]
        return cls(len(changes), median(unusable) if unusable else None, *totals)


def use_by_cell(records: Iterable[Record]) -> dict[CellOf, NodeUse]:
    """The state by kernel and cell, over all timed runs, whether they are ranked or not."""
    # A run may have several records, all with its state.
    runs: dict[CellOf, dict[tuple[int, int], NodeChange]] = {}
    for record in records:
        run = record.run
        if run is not None and run.node is not None and run.series in ("compare", "aa"):
            of_cell = runs.setdefault((record.of_kernel, key_of(run)), {})
            of_cell[run.round, run.position] = run.node
    return {key: NodeUse.of(tuple(changes.values())) for key, changes in runs.items()}


def counts_by_cell(records: Iterable[Record]) -> dict[CellOf, dict[str, float]]:
    """Medians over the valid runs of a comparison, by kernel and key of the cell.

    Counters are per pass, page faults those of a whole run.
    """
    values: dict[CellOf, dict[str, list[float]]] = {}
    for (kernel, key, series), runs in by_cell(records).items():
        for record in valid_records(runs) if series in ("compare", "aa") else ():
            lists = values.setdefault((kernel, key), {})
            passes = len(record.repetitions) * record.passes
            for name, count in record.counts.items():
                lists.setdefault(name, []).append(count / passes)
            for name, count in to_data(record.page_faults or PageFaults()).items():
                lists.setdefault(f"page faults: {name.replace('_', ', ')}", []).append(count)
    return {key: {name: median(counts) for name, counts in lists.items()} for key, lists in values.items()}
