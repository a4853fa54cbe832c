"""Which runs of a kernel take turns together, and what their turns are relative to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import Step
from pagewise.core.record import Record
from pagewise.core.record_parts import TurnsOf
from pagewise.machine.host import default_pool_size
from pagewise.machine.memory import MEMORY_PER_WORKING_SET
from pagewise.machine.settings.hugepages import PAGE_BYTES, pages_needed

#: The most turns of a run. To start and end one took as long as 70 turns (triad, 128 MiB, 2 cores).
TURNS = 40


@dataclass(frozen=True)
class Room:
    """The memory of runs at the same time, in bytes; None: unknown. pools: free bytes, by page size."""

    memory: int | None = None
    pools: Mapping[int, int] = field(default_factory=dict)

    def groups(self, steps: Sequence[Step]) -> list[list[Step]]:
        """The runs in groups that fit, each with all runs of baselines; empty if one of them does not fit."""
        baselines = [step for step in steps if step.cell.is_baseline]
        groups = [list(baselines)]
        for step in steps:
            if step.cell.is_baseline:
                continue
            if not self._holds([*baselines, step]):
                return []
            if self._holds([*groups[-1], step]):
                groups[-1].append(step)
            else:
                groups.append([*baselines, step])
        return [sorted(group, key=lambda step: step.position) for group in groups]

    def _holds(self, steps: Iterable[Step]) -> bool:
        needed: dict[int | None, float] = {}
        for step in steps:
            policy = PagePolicy(step.cell.measured.hugepages)
            is_pooled = policy.kind == "hugetlbfs"
            page_bytes = (policy.size or default_pool_size() or PAGE_BYTES) if is_pooled else PAGE_BYTES
            bytes_needed = pages_needed([step.arguments], page_bytes) * page_bytes
            if is_pooled and bytes_needed > self.pools.get(page_bytes, bytes_needed):
                continue  # Without its pages, it ends when it starts.
            key = page_bytes if is_pooled else None
            share = 1.0 if is_pooled else MEMORY_PER_WORKING_SET
            needed[key] = needed.get(key, 0.0) + bytes_needed * share
        room = [(None, self.memory), *self.pools.items()]
        return all(limit is None or needed.get(key, 0.0) <= limit for key, limit in room)


def turns_of(records: Iterable[Record], reference: float | None = None) -> TurnsOf | None:
    """What the turns of runs are relative to, from the records of those that ran well; None without any.

    reference: seconds per pass of the baselines in the first group of a round, if this is a further one.
    """
    runs: list[list[float]] = [
        [math.log(seconds / record.passes) for seconds in record.repetitions]
        for record in records
        if record.status == "ok"
    ]
    if not runs:
        return None
    common = [fmean(turn) for turn in zip(*runs, strict=True)]
    return TurnsOf(tuple(map(math.exp, common)), reference or math.exp(fmean(common)))
