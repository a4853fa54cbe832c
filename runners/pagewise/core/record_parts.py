"""The parts of a record; None is what a record does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pagewise.core.fields import (
    Amount,
    Builder,
    Count,
    CpuList,
    CpuNumber,
    ExitCode,
    FiniteNumber,
    Loop,
    NodeOfThread,
    PolicyName,
    Positive,
    PositiveSeconds,
    RankCount,
    Seconds,
    Share,
    SomeText,
    Threads,
    Utc,
)
from pagewise.core.node_state import NodeChange
from pagewise.core.structure import Form, Limits

Option = float | str | bool | None
#: The series of runs.
Series = Literal["compare", "aa", "sweep", "trial", "counters", "counters_aa", "simulate", "aside"]
#: Describes the options of a cell and of its runs.
OPTIONS_OF_RUNS = "beyond the kernel's own: layout=soa, variables as OMP_WAIT_POLICY=active, node-state=aged"
#: The metric of a program that is the most memory that a run used.
PEAK_MEMORY = "peak_memory_gib"
#: The metrics of a run's energy in joules, and of its mean power in watts (docs/explanation/energy.md).
ENERGY, POWER = "energy_joules", "power_watts"


@dataclass(frozen=True)
class Failure:
    """Why a run gave nothing valid, and what to do."""

    exit_code: ExitCode
    message: str
    remedy: Annotated[str | None, "null: as absent"] = None


@dataclass(frozen=True, kw_only=True)
class BuildReport:
    """How the program was built, by its own report."""

    version: str | None = None
    compiler: SomeText
    compiler_version: str | None = None
    compiler_options: str | None = None
    hugepages: PolicyName
    prefetch: SomeText
    stores: SomeText
    loop: Loop = "explicit"
    simd: Annotated[str, "SIMD width of timed code; absent: according to the compiler's flags"] | None = None
    sector: Annotated[str, "sectors of the caches: isolate; absent: none"] | None = None
    library: Annotated[str, "that it calls instead of the system's; absent: none"] | None = None
    library_file: Annotated[str, "of the library that computed, by the dynamic linker"] | None = None
    openmp: bool | None = None
    runtime: Annotated[str, "library that serves OpenMP's threads: libgomp, libomp"] | None = None
    runtime_file: Annotated[str, "its file, as the process has it mapped"] | None = None
    runtime_version: Annotated[str, "its newest interfaces: OMP_5.1 GOMP_5.1"] | None = None
    runtime_build: Annotated[str, "its build ID"] | None = None
    papi: bool | None = None

    @property
    def code_options(self) -> list[str]:
        """The compiler's options that affect the code, in order: the last of contradicting ones counts."""
        words = (self.compiler_options or "").split()
        return [word for word in words if re.match(r"-[Omf][^/]*$", word)]


@dataclass(frozen=True)
class ProblemSize:
    """The arrays that a kernel works on. warning: memory was short for the default working set."""

    elements: Count
    element_bytes: Count
    arrays: Count
    working_set_bytes: Count
    array_spacing_bytes: Count | None = None
    warning: str | None = None


@dataclass(frozen=True, kw_only=True)
class Times:
    """Seconds of each repetition, and apart from them the first-touch time (`first_touch`)."""

    first_touch: Seconds | None = None
    repetitions: Annotated[tuple[Annotated[float, Limits(1e-12, 1e9)], ...], Limits(1)]


@dataclass(frozen=True)
class Traffic:
    """Bytes by convention and floating-point operations of a repetition."""

    bytes_stream: Amount | None = None
    bytes_hardware: Amount | None = None
    flops: Amount | None = None


@dataclass(frozen=True)
class Check:
    """One of several checks of a result."""

    name: SomeText
    error: float
    tolerance: float


@dataclass(frozen=True)
class Validation:
    """Whether the result is right, and how that was checked.

    error, tolerance: with several checks those of the one nearest to failing.
    """

    passed: bool
    method: str
    error: Annotated[float | None, "null: as absent"] = None
    tolerance: Annotated[float | None, "null: as absent"] = None
    checks: Annotated[tuple[Check, ...], Limits(1)] = ()


@dataclass(frozen=True)
class ArrayPages:
    """The observed pages of an array."""

    name: str
    bytes: Count
    huge_bytes: Count
    page_size_observed_bytes: Count


@dataclass(frozen=True, kw_only=True)
class PageUse:
    """Requested and observed pages. `enough_coverage`: the least that ranks, if not that of kernels."""

    policy: PolicyName
    page_size_requested_bytes: Count
    page_size_observed_bytes: Count
    huge_coverage: Share
    enough_coverage: Share | None = None
    base_page_size_bytes: Count | None = None
    method: str | None = None
    arrays: tuple[ArrayPages, ...]


@dataclass(frozen=True)
class PageFaults:
    """Page faults of first touch and of computing."""

    first_touch_minor: Count | None = None
    first_touch_major: Count | None = None
    compute_minor: Count | None = None
    compute_major: Count | None = None

    @property
    def total(self) -> int | None:
        """All of them, None where none are reported."""
        return _sum(self.first_touch, self.compute)

    @property
    def first_touch(self) -> int | None:
        """Those of first touch, None where none are reported."""
        return _sum(self.first_touch_minor, self.first_touch_major)

    @property
    def compute(self) -> int | None:
        """Those of computing, None where none are reported."""
        return _sum(self.compute_minor, self.compute_major)


@dataclass(frozen=True)
class RegionCounts:
    """A marked region: times and counts of all threads. `path` names the regions around it, too.

    imbalance: of each count, the most of a thread divided by the mean of the threads.
    """

    name: Annotated[str, Form("[^/]{1,63}")]
    path: Annotated[str, "with the regions that it lies in: step/hydro"]
    calls: Annotated[Positive, "of all threads"]
    threads: Annotated[Threads, "that came here"]
    seconds: Annotated[Amount, "of the thread with the most"]
    seconds_mean_of_threads: Amount
    seconds_exclusive: Annotated[Amount, "mean of threads, without regions inside on the same thread"]
    counts: Annotated[Mapping[str, FiniteNumber], "of all threads"] | None = None
    imbalance: Mapping[str, Annotated[float, Limits(0, 65536)]] | None = None


@dataclass(frozen=True)
class ThreadPlaces:
    """Where the threads ran and the memory lay, by the program's own report.

    cpus and numa_nodes: as the timed part began, by thread. migrated: how many threads were on another CPU
    after some repetition; None where the program does not report it.
    """

    threads: Threads
    cpus: Annotated[tuple[CpuNumber, ...], "as the timed part began"]
    numa_nodes: tuple[NodeOfThread, ...] | None = None
    cpus_at_end: Annotated[tuple[CpuNumber, ...], "as the timed part ended"] | None = None
    numa_nodes_at_end: tuple[NodeOfThread, ...] | None = None
    migrated: Annotated[int, Limits(0, 65536)] | None = None
    last_level_cache_bytes: Annotated[Count, "of the CPUs that the program may use"] | None = None
    cpus_allowed: Annotated[CpuList, "what all threads of its process might use, as 0-3,8"] | None = None
    memory_policy: Annotated[str, "of its process, as numa_maps reports it"] | None = None
    node_bytes: Annotated[tuple[Count, ...], "its memory but for files, by NUMA node from 0"] | None = None

    @property
    def has_migrated(self) -> bool:
        """Whether a thread changed its CPU during the timed part."""
        return bool(self.migrated) or self.cpus_at_end not in (None, self.cpus)

    @property
    def has_left_node(self) -> bool:
        """Whether a thread ended the timed part on another NUMA node than it began on."""
        return self.numa_nodes_at_end not in (None, self.numa_nodes)


@dataclass(frozen=True, kw_only=True)
class RecordedHost:
    """The node that a program ran on, by its own report."""

    hostname: str
    cpu: str | None = None
    kernel: str
    base_page_size_bytes: Count | None = None


@dataclass(frozen=True)
class MemoryUse:
    """Resident bytes, and those on huge pages."""

    resident_bytes: Count
    huge_bytes: Count
    huge_coverage: Amount


@dataclass(frozen=True)
class OverTime:
    """The peak of a use of memory, and its mean over time."""

    peak: MemoryUse
    mean: MemoryUse


@dataclass(frozen=True)
class GivenPages:
    """Pages of the size asked for that the machine observed more than before the run (mTHP)."""

    mean: Count
    peak: Count


@dataclass(frozen=True)
class PageTables:
    """Bytes of the page tables of all processes: the peak, and the mean over time."""

    peak_bytes: Count
    mean_bytes: Count


@dataclass(frozen=True, kw_only=True)
class ProgramMemory:
    """The sampled memory of a program that is not a kernel of pagewise."""

    method: str
    samples: Count
    full_samples: Count
    sampling_seconds: Amount
    sampled_seconds: Amount
    processes: Count
    total: OverTime
    page_tables: PageTables | None = None
    given: GivenPages | None = None
    kinds: Mapping[str, OverTime]


@dataclass(frozen=True)
class ProcessPlacement:
    """What the kernel reports of a process: its CPUs, and the policy of its memory; None: unknown."""

    cpus: tuple[CpuNumber, ...] | None
    memory: str | None


@dataclass(frozen=True)
class Binding:
    """Where a run was to be, and what its process observed. `ranks`: None without a launcher of MPI ranks."""

    name: str
    threads: Threads
    cpus: Annotated[tuple[CpuNumber, ...], Limits(1), "by thread"]
    memory: Annotated[str, "the policy as numa_maps reports it: default, local, bind:0, interleave:0-3"]
    observed: ProcessPlacement
    ranks: RankCount | None = None


@dataclass(frozen=True)
class RankUse:
    """An MPI rank of a run: what its process observed as it started, and its observed pages if known."""

    rank: Annotated[int, Limits(0, 4095)]
    cpus: tuple[CpuNumber, ...]
    memory: str | None
    pages: PageUse | None = None


@dataclass(frozen=True)
class LeftProcess:
    """A process that a run left behind; `ended`: pagewise ended it."""

    pid: Count
    command: str
    ended: bool


@dataclass(frozen=True)
class TurnsOf:
    """The turns of a run that took turns with others; a repetition is a turn.

    baseline_seconds: of a pass, by turn, the geometric mean of the runs of baselines. reference_seconds: the
    geometric mean of these in the first group of the round.
    """

    baseline_seconds: Annotated[tuple[PositiveSeconds, ...], Limits(1)]
    reference_seconds: PositiveSeconds


@dataclass(frozen=True, kw_only=True)
class RunOf:
    """The run that a record is of: its place in the plan, its settings, and how it ended."""

    kernel: Annotated[str, "whose comparison it belongs to; a program may serve several"] | None = None
    module: str
    hash: str
    builder: Builder
    round: Annotated[int, Limits(1, 100_000)]
    position: Annotated[int, Limits(1, 10**9)]
    series: Annotated[Series, "aside: before a break, measured again, and not counted"]
    wall_seconds: Seconds | None
    exit_code: ExitCode
    command: Annotated[tuple[str, ...], Limits(1)]
    pages: Annotated[PolicyName, "what the run requested, if not the built one"] | None = None
    placement: Annotated[str, "the name of its placement, where several were compared"] | None = None
    options: Annotated[str, OPTIONS_OF_RUNS] | None = None
    bound: Binding | None = None
    sweep: Annotated[str, "what a run of the series `sweep` sweeps; absent: the first"] | None = None
    started: Annotated[Utc, "by the runner's clock"] | None = None
    ended: Annotated[Utc, "of a run in turns: by then it was over, by the runner's clock"] | None = None
    involuntary_switches: Annotated[int, Limits(0), "of its processes, to others"] | None = None
    group: Annotated[str, "the events that it was to count, a name in the event file"] | None = None
    settings: Annotated[Mapping[str, str], "environment variables in addition to the module's"] | None = None
    method: Annotated[
        Literal["turns", "runs"], "turns: it alternated with others; runs: it ran without interruption"
    ] = "runs"
    whole_because: Annotated[str, "why it took no turns, unless that was the request"] | None = None
    turns: Annotated[TurnsOf | None, "absent: of runs, slices and sweeps"] = None
    slices: Annotated[int | None, Limits(1), "in which a program without turns ran; absent: of others"] = None
    left_behind: Annotated[tuple[LeftProcess, ...], "outside of its group; absent: none"] | None = None
    node: Annotated[NodeChange, "of the memory of the whole node"] | None = None
    log: Annotated[str, "the output of a failed run, a file of the result folder"] | None = None


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
