"""The observed memory of a run: from samples, and from snapshots that its processes wrote."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise, zip_longest
from pathlib import Path

from pagewise.core.record_parts import (
    PEAK_MEMORY,
    GivenPages,
    MemoryUse,
    OverTime,
    PageTables,
    ProgramMemory,
)
from pagewise.session.ranks import Ranks
from pagewise.workloads.program.sampler import Sample, Sampler, Samples
from pagewise.workloads.program.smaps import KINDS, Usage, add_usages, by_kind, parse

#: With fewer samples by kind, the memory of an untimed run counts.
FEWEST_SAMPLES = 3
_MIB, _GIB = 1 << 20, 1 << 30
_NUMBERS = tuple(field.name for field in fields(Usage))
# Kinds with less memory are not taken from a second source.
_LARGE = _MIB
_SAMPLED, _SNAPSHOTS = "PSS in smaps, sampled", "PSS in smaps, untimed run"
_HIDDEN = "; RSS of processes with other rights"


@dataclass(frozen=True)
class UsageOverTime:
    """A use of memory: its peak (of a kind the highest of each number, at its time) and its mean."""

    peak: Usage
    mean: Usage

    def to_record(self) -> OverTime:
        """For the record."""
        return OverTime(
            *(
                MemoryUse(usage.resident, usage.huge, round(usage.coverage, 6))
                for usage in (self.peak, self.mean)
            )
        )


@dataclass(frozen=True)
class Memory:
    """What a run used: by kind, and in total with the peak at the moment with most in memory.

    The total's peak is at least the kernel's own of the largest process, which has no gaps between samples.
    page_tables: None without samples.
    counted_mean, counted_peak: huge pages by the kernel's counter (mTHP). full_samples: those with kinds.
    ranks: that of each MPI rank; None for a rank that was not observed. refuses_thp: whether a process may
    not have transparent huge pages.
    """

    method: str
    kinds: Mapping[str, UsageOverTime]
    total: UsageOverTime
    counted_mean: float
    counted_peak: int
    processes: int
    samples: int
    full_samples: int
    sampling_seconds: float
    sampled_seconds: float
    page_tables: PageTables | None = None
    ranks: tuple[Memory | None, ...] = ()
    refuses_thp: bool = False

    def peak(self, *kinds: str) -> Usage:
        """The sum of the peaks of these kinds."""
        return sum((self.kinds[kind].peak for kind in kinds if kind in self.kinds), Usage())

    def mean(self, *kinds: str) -> Usage:
        """The sum of the means of these kinds."""
        return sum((self.kinds[kind].mean for kind in kinds if kind in self.kinds), Usage())

    @property
    def metrics(self) -> dict[str, float]:
        """For the metrics of the record."""
        total, tables = self.total, self.page_tables
        resident = {PEAK_MEMORY: total.peak.resident / _GIB, "mean_memory_gib": total.mean.resident / _GIB}
        return resident | ({"page_tables_mib": tables.peak_bytes / _MIB} if tables is not None else {})

    def to_record(self) -> ProgramMemory:
        """For the record."""
        return ProgramMemory(
            method=self.method,
            samples=self.samples,
            full_samples=self.full_samples,
            sampling_seconds=round(self.sampling_seconds, 6),
            sampled_seconds=round(self.sampled_seconds, 6),
            processes=self.processes,
            page_tables=self.page_tables,
            given=GivenPages(round(self.counted_mean), self.counted_peak) if self.counted_peak else None,
            total=self.total.to_record(),
            kinds={kind: self.kinds[kind].to_record() for kind in KINDS if kind in self.kinds},
        )


def from_samples(sampled: Samples) -> Memory | None:
    """The memory of a run by its samples; None if no sample has kinds."""
    full, every = sampled.full, sampled.samples
    if not full:
        return None
    end = max(sampled.wall_seconds, every[-1].seconds)

    def over_time(kind: str) -> UsageOverTime:
        usages = [sample.kind(kind) for sample in full]
        highest = (max(getattr(usage, name) for usage in usages) for name in _NUMBERS)
        return UsageOverTime(Usage(*highest), _mean(full, lambda sample: sample.kind(kind), end))

    largest = max((sample.total for sample in every), key=lambda total: total.resident)
    high_water = max(sample.account.high_water for sample in every)
    tables = _mean(every, lambda sample: Usage(sample.account.page_tables), end).resident
    return Memory(
        _SAMPLED + (_HIDDEN if sampled.has_hidden else ""),
        {kind: over_time(kind) for kind in KINDS if any(kind in (sample.kinds or {}) for sample in full)},
        UsageOverTime(
            replace(largest, resident=max(largest.resident, high_water)),
            _mean(every, lambda sample: sample.total, end),
        ),
        _mean(full, lambda sample: Usage(sample.counted), end).resident,
        max(sample.counted for sample in every),
        max(sample.processes for sample in every),
        len(every),
        len(full),
        sampled.cost_seconds,
        sampled.wall_seconds,
        PageTables(max(sample.account.page_tables for sample in every), tables),
        refuses_thp=any(sample.account.refuses_thp for sample in every),
    )


def from_snapshots(snapshots: Sequence[Sequence[Mapping[str, Usage]]]) -> Memory | None:
    """The memory by the snapshots of each process, of which the one with most in memory counts."""
    largest = [
        max(taken, key=lambda kinds: sum(usage.resident for usage in kinds.values()))
        for taken in snapshots
        if taken
    ]
    if not largest:
        return None
    usages = add_usages(largest)
    kinds = {kind: UsageOverTime(usage, usage) for kind, usage in usages.items()}
    total = sum(usages.values(), Usage())
    count = sum(map(len, snapshots))
    return Memory(_SNAPSHOTS, kinds, UsageOverTime(total, total), 0, 0, len(largest), count, count, 0.0, 0.0)


def complete(seen: Memory, other: Memory | None, kinds: Collection[str]) -> Memory:
    """The sampled memory; kinds for which the samples came too early or too late are those of the other."""
    if other is None:
        return seen
    missed = {
        kind: other.kinds[kind]
        for kind in KINDS
        if kind in kinds
        and other.peak(kind).resident >= _LARGE
        and other.peak(kind).resident > 2 * seen.peak(kind).resident
    }
    if not missed:
        return seen
    method = f"{seen.method}; {', '.join(missed)}: {_SNAPSHOTS}"
    return replace(seen, method=method, kinds={**seen.kinds, **missed})


def select_memory(seen: Memory | None, trial: Memory | None, kinds: Collection[str]) -> Memory | None:
    """The observed memory of a run; of a run too short for that, the memory of the trial run."""
    if seen is None or (
        seen.full_samples < FEWEST_SAMPLES and trial is not None and trial.full_samples > seen.full_samples
    ):
        best = trial or seen
    else:
        best = complete(seen, trial, kinds)
    if best is None or seen is None or not seen.ranks:
        return best
    of_trial = trial.ranks if trial is not None else ()
    pairs = zip_longest(seen.ranks, of_trial[: len(seen.ranks)])
    return replace(best, ranks=tuple(select_memory(*pair, kinds) for pair in pairs))


def observed_memory(samples: Samples, snapshots: Sequence[Sequence[Mapping[str, Usage]]]) -> Memory | None:
    """The memory of a run by both sources; None if neither showed it.

    Only samples have the kernel's counter of huge pages.
    """
    sampled, written = from_samples(samples), from_snapshots(snapshots)
    if sampled is None or written is None:
        return sampled or written
    if sampled.full_samples < FEWEST_SAMPLES:
        return replace(written, counted_mean=sampled.counted_mean, counted_peak=sampled.counted_peak)
    return complete(sampled, written, KINDS)


def _mean(samples: Sequence[Sample], usage_of: Callable[[Sample], Usage], end: float) -> Usage:
    """Over time: a sample holds until the next one, the last one to the end."""
    times = [sample.seconds for sample in samples] + [end]
    weights = [max(after - at, 1e-9) for at, after in pairwise(times)]
    usages = list(map(usage_of, samples))

    def mean(name: str) -> int:
        total: float = sum(
            getattr(usage, name) * weight for usage, weight in zip(usages, weights, strict=True)
        )
        return round(total / sum(weights))

    return Usage(*map(mean, _NUMBERS))


def read_snapshots(folder: Path, page: int, samples: Samples) -> dict[str, list[dict[str, Usage]]]:
    """What processes wrote of their memory, by process: files smaps.PROCESS.NUMBER. Notes its size.

    The last line of a file names that of the program.
    """
    by_process: dict[str, list[dict[str, Usage]]] = {}
    for file in sorted(folder.glob("smaps.*")):
        text, _, image = file.read_text(encoding="utf-8", errors="replace").rpartition("\nOf: ")
        kinds = by_kind(parse(text), page)
        if kinds:
            samples.note(image, sum(usage.resident for usage in kinds.values()))
            by_process.setdefault(file.name.split(".")[1], []).append(kinds)
    return by_process


def memory_by_rank(
    ranks: Ranks, sampler: Sampler, written: Mapping[str, list[dict[str, Usage]]]
) -> tuple[Memory | None, ...]:
    """The memory of each rank: from its samples, and from what its processes wrote (see read_snapshots)."""
    processes = ranks.processes()
    snapshots = ([written.get(str(processes.get(number)), [])] for number in range(ranks.number))
    return tuple(
        observed_memory(sampler.by_rank.get(number, Samples()), of_rank)
        for number, of_rank in enumerate(snapshots)
    )
