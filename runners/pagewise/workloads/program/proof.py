"""From samples of a run's memory to what pages it was on, and whether these were the ones asked for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pagewise.core.record_parts import ArrayPages, GivenPages, MemoryUse, OverTime, PageUse, ProgramMemory
from pagewise.core.units import bytes_text
from pagewise.workloads.program.policy import PageRequest
from pagewise.workloads.program.sampler import Sample, Samples
from pagewise.workloads.program.smaps import KINDS, Usage

FEWEST_SAMPLES = 3
# Memory of a kind below this is not worth another look.
_LARGE = 1 << 20
SAMPLED, AT_EXIT, BY_KERNEL = "smaps, sampled", "smaps, untimed run", "prctl"


@dataclass(frozen=True)
class Memory:
    """What a run used: by kind the mean over time and the peak, the sum at its peak, pages of a watched size.

    peak: by kind the highest of each number, at its own time; total_peak: at the moment with most in memory.
    """

    method: str
    mean: Mapping[str, Usage]
    peak: Mapping[str, Usage]
    total_mean: Usage
    total_peak: Usage
    given_mean: float
    given_peak: int
    processes: int
    samples: int
    full: int
    cost_seconds: float
    wall_seconds: float

    def recorded(self) -> ProgramMemory:
        """For the record."""
        return ProgramMemory(
            method=self.method,
            samples=self.samples,
            full_samples=self.full,
            sampling_seconds=round(self.cost_seconds, 6),
            sampled_seconds=round(self.wall_seconds, 6),
            processes=self.processes,
            given=GivenPages(round(self.given_mean), self.given_peak) if self.given_peak else None,
            total=OverTime(_recorded(self.total_peak), _recorded(self.total_mean)),
            kinds={
                kind: OverTime(_recorded(self.peak[kind]), _recorded(self.mean[kind]))
                for kind in KINDS
                if kind in self.peak
            },
        )


def summed_up(found: Samples, method: str = SAMPLED) -> Memory | None:
    """The samples of a run in one; None where no sample tells the kinds."""
    if not found.full:
        return None
    end = max(found.wall_seconds, found.samples[-1].seconds)
    kinds = {kind for one in found.full for kind in (one.kinds or {})}

    def of(kind: str) -> Callable[[Sample], Usage]:
        return lambda one: (one.kinds or {}).get(kind, Usage())

    largest = max(found.samples, key=lambda one: one.total.resident)
    return Memory(
        method,
        {kind: _mean(found.full, of(kind), end) for kind in kinds},
        {kind: _highest(map(of(kind), found.full)) for kind in kinds},
        _mean(found.samples, lambda one: one.total, end),
        largest.total,
        _mean(found.full, lambda one: Usage(one.given), end).resident,
        max(one.given for one in found.samples),
        max(one.processes for one in found.samples),
        len(found.samples),
        len(found.full),
        found.cost_seconds,
        found.wall_seconds,
    )


def told_by_snapshots(snapshots: Sequence[Sequence[Mapping[str, Usage]]]) -> Memory | None:
    """Likewise from what processes wrote: of each process, the snapshot with most in memory counts."""
    largest = [
        max(taken, key=lambda one: sum(usage.resident for usage in one.values()))
        for taken in snapshots
        if taken
    ]
    if not largest:
        return None
    kinds: dict[str, Usage] = {}
    for one in largest:
        for kind, usage in one.items():
            kinds[kind] = kinds.get(kind, Usage()) + usage
    total = sum(kinds.values(), Usage())
    count = sum(map(len, snapshots))
    return Memory(AT_EXIT, kinds, kinds, total, total, 0, 0, len(largest), count, count, 0.0, 0.0)


def pages(request: PageRequest, memory: Memory | None, base: int) -> PageUse:
    """The record's `pages`: the coverage of the memory which the policy is for; of several, the least."""
    unseen = PageUse(
        policy=request.policy,
        page_size_requested_bytes=request.page,
        page_size_observed_bytes=base,
        huge_coverage=0.0,
        base_page_size_bytes=base,
        method=BY_KERNEL if memory is None else memory.method,
        arrays=(),
    )
    if memory is None:
        return unseen
    if request.targets:
        coverage = min(_coverage(request, kinds, memory) for kinds in request.targets)
    else:
        coverage = memory.total_peak.coverage
    are_huge = coverage > 0.5 or (request.targets and coverage >= request.enough)
    return replace(
        unseen,
        huge_coverage=round(min(coverage, 1.0), 6),
        enough_coverage=request.enough if request.targets else 0.0,
        page_size_observed_bytes=request.page if are_huge else base,
        arrays=tuple(
            ArrayPages(
                kind,
                memory.peak[kind].resident,
                memory.peak[kind].huge,
                request.huge if memory.peak[kind].coverage > 0.5 else base,
            )
            for kind in KINDS
            if kind in memory.peak
        ),
    )


def lack(request: PageRequest, memory: Memory | None, told: PageUse) -> str | None:
    """Why a run must not be ranked: it was not on the pages asked for, or nobody saw whether it was."""
    if not request.targets:
        if memory is not None and memory.total_peak.huge:
            return (
                f"{bytes_text(memory.total_peak.huge)} on huge pages, where none were wanted: the program "
                "takes them from the pool by itself"
            )
        return None
    if memory is None:
        return "the program ended before its memory could be looked at: nothing proves its pages"
    for kinds in request.targets:
        if _room(kinds, memory) < request.page:
            most = sum(memory.peak.get(kind, Usage()).resident for kind in kinds)
            return (
                f"the program has no memory of this kind ({', '.join(kinds)}) that could lie on pages of "
                f"{bytes_text(request.page)}: {bytes_text(most)} in all, in small pieces"
            )
    if told.huge_coverage < request.enough:
        parts = ", ".join(_words(kind, memory, request) for kind in _wanted(request) if kind in memory.mean)
        return (
            f"{told.huge_coverage:.1%} of the memory that the policy is for was on huge pages over time, "
            f"at least {request.enough:.0%} are needed ({parts})"
        )
    return None


def has_room(request: PageRequest, memory: Memory) -> bool:
    """Whether the program has memory of each kind that is wanted which could lie on such pages."""
    return all(_room(kinds, memory) >= request.page for kinds in request.targets)


def completed(seen: Memory, other: Memory | None, kinds: Iterable[str]) -> Memory:
    """What samples showed; of a kind that they came too early or too late for, what the other one shows."""
    if other is None:
        return seen
    large = {kind for kind in kinds if other.peak.get(kind, Usage()).resident >= _LARGE}
    missed = {kind for kind in large if other.peak[kind].resident > 2 * seen.peak.get(kind, Usage()).resident}
    if not missed:
        return seen
    more = {kind: other.peak[kind] for kind in missed}
    return replace(
        seen,
        method=f"{SAMPLED}; {', '.join(kind for kind in KINDS if kind in missed)}: {AT_EXIT}",
        peak={**seen.peak, **more},
        mean={**seen.mean, **{kind: other.mean[kind] for kind in missed}},
    )


def _room(kinds: Sequence[str], memory: Memory) -> int:
    return sum(memory.peak.get(kind, Usage()).eligible for kind in kinds)


def _coverage(request: PageRequest, kinds: Sequence[str], memory: Memory) -> float:
    sums = sum((memory.mean.get(kind, Usage()) for kind in kinds), Usage())
    huge = memory.given_mean * request.page if request.watched else sums.huge
    return huge / sums.eligible if sums.eligible else 0.0


def _wanted(request: PageRequest) -> list[str]:
    return [kind for kind in KINDS if any(kind in kinds for kinds in request.targets)]


def _words(kind: str, memory: Memory, request: PageRequest) -> str:
    mean = memory.mean[kind]
    if request.watched:
        return f"{kind}: {bytes_text(mean.resident)}"
    return f"{kind}: {bytes_text(mean.huge)} of {bytes_text(mean.eligible)}"


def _mean(samples: Sequence[Sample], of: Callable[[Sample], Usage], end: float) -> Usage:
    """Over time: a sample holds until the next one, the last one to the end."""
    times = [one.seconds for one in samples] + [end]
    weights = [max(after - at, 1e-9) for at, after in pairwise(times)]
    whole = sum(weights)

    def mean(name: str) -> int:
        pairs = zip(samples, weights, strict=True)
        total: float = sum(getattr(of(one), name) * weight for one, weight in pairs)
        return round(total / whole)

    return Usage(mean("resident"), mean("huge"), mean("eligible"))


def _highest(usages: Iterable[Usage]) -> Usage:
    found = list(usages)
    return Usage(
        max(one.resident for one in found),
        max(one.huge for one in found),
        max(one.eligible for one in found),
    )


def _recorded(usage: Usage) -> MemoryUse:
    return MemoryUse(usage.resident, usage.huge, round(usage.coverage, 6))
