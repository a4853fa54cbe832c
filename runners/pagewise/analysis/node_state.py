"""The state of the node's memory during the runs of each configuration. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.counter_runs import Key
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import Row
from pagewise.analysis.verdict import Outcome
from pagewise.core.dimensions import BY_NAME, PAGES
from pagewise.core.node_state import NodeChange
from pagewise.core.plan import key_of
from pagewise.core.record import Record

_STATE = BY_NAME["node_state"].name


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


def use_by_cell(records: Iterable[Record]) -> dict[Key, NodeUse]:
    """The state by kernel and cell, over all timed runs, whether they are ranked or not."""
    # A run may have several records, all with its state.
    runs: dict[Key, dict[tuple[int, int], NodeChange]] = {}
    for record in records:
        run = record.run
        if run is not None and run.node is not None and run.series in ("compare", "aa"):
            of_cell = runs.setdefault((record.of_kernel, *key_of(run)), {})
            of_cell[run.round, run.position] = run.node
    return {key: NodeUse.of(tuple(changes.values())) for key, changes in runs.items()}


@dataclass(frozen=True)
class StateVerdict:
    """The verdict on a page policy in a state of the node, against base pages in the same state.

    holds: whether it is that in the first state. ratio, verdict: None where the policy or its baseline is
    excluded in this state; `reason` has why.
    """

    compiler: str
    policy: str
    state: str
    ratio: Ratio | None
    verdict: Outcome | None
    reason: str | None
    holds: bool


def verdicts_by_state(result: KernelResult) -> list[StateVerdict]:
    """The verdicts on each page policy in each state of the node; none if no states were compared."""
    verdicts = []
    for group in result.groups:
        rows = [row for row in group.rows if set(row.differs) <= {PAGES.name, _STATE}]
        for first in rows:
            if first.differs != (PAGES.name,):
                continue
            policy = PAGES.of(first.cell.measured)
            others = [row for row in rows if PAGES.of(row.cell.measured) == policy and _STATE in row.differs]
            if others:
                of_policy = [_of_state(group.compiler, row) for row in (first, *others)]
                verdicts += [replace(each, holds=each.verdict == of_policy[0].verdict) for each in of_policy]
    return verdicts


def _of_state(compiler: str, row: Row) -> StateVerdict:
    """The row's verdict on its pages alone: that against the baseline, or that of its single change."""
    measured, ratio = row.cell.measured, row.time_ratio
    verdict: Outcome | None = row.verdict
    if _STATE in row.differs:
        change = row.change if row.change is not None and row.change.dimension == PAGES.name else None
        ratio, verdict = (None, None) if change is None else (change.time_ratio, change.verdict)
    if row.invalid is not None or ratio is None:
        ratio, verdict = None, None
    reason = None if verdict else row.invalid or "its baseline is missing in this state"
    return StateVerdict(compiler, measured.hugepages, measured.node_state, ratio, verdict, reason, holds=True)
