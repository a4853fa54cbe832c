"""The state of the node's memory during the runs of each configuration. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from pagewise.analysis.counter_runs import Key
from pagewise.core.node_state import NodeChange
from pagewise.core.plan import key_of
from pagewise.core.record import Record


@dataclass(frozen=True)
class NodeUse:
    """What the node's memory was like before the runs of a configuration, and what was counted during them.

    The kernel counts for all processes of the node. unusable: the median of the unusable free space indices.
    allocated, fell_back: page faults that got a transparent huge page, and those that got base pages instead.
    """

    runs: int
    unusable: float | None
    allocated: int
    fell_back: int
    stalls: int
    collapsed: int

    @property
    def fallback_share(self) -> float | None:
        """The share of THP faults that fell back to base pages; None without any such fault."""
        faults = self.allocated + self.fell_back
        return self.fell_back / faults if faults else None

    @classmethod
    def of(cls, changes: Sequence[NodeChange]) -> NodeUse:
        """That of several runs."""
        unusable = [each.unusable_index for each in changes if each.unusable_index is not None]
        names = ("thp_fault_alloc", "thp_fault_fallback", "compact_stall", "khugepaged_pages_collapsed")
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
