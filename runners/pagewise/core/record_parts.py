"""The parts of a record, as core/schema/record-1.json describes them; None is what a record does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pagewise.core.node_state import NodeChange

Option = float | str | bool | None
#: The metric of a program that is the most memory that a run used.
PEAK_MEMORY = "peak_memory_gib"
#: The metrics of a run's energy in joules, and of its mean power in watts (docs/explanation/energy.md).
ENERGY, POWER = "energy_joules", "power_watts"


@dataclass(frozen=True)
class Failure:
    """Why a run gave nothing valid, and what to do."""

    exit_code: int
    message: str
    remedy: str | None = None


@dataclass(frozen=True, kw_only=True)
class BuildReport:
    """How the program was built, by its own report."""

    version: str | None = None
    compiler: str
    compiler_version: str | None = None
    compiler_options: str | None = None
    hugepages: str
    prefetch: str
    stores: str
    loop: str = "explicit"
    simd: str | None = None
    sector: str | None = None
    library: str | None = None
    library_file: str | None = None
    openmp: bool | None = None
    runtime: str | None = None
    runtime_file: str | None = None
    runtime_version: str | None = None
    runtime_build: str | None = None
    papi: bool | None = None
    finalizers: bool | None = None

    @property
    def code_options(self) -> list[str]:
        """The compiler's options that affect the code, sorted; paths differ by build."""
        return sorted(set(self.options_in_order))

    @property
    def options_in_order(self) -> list[str]:
        """The same in the order of the command: the last of contradicting options counts."""
        words = (self.compiler_options or "").split()
        return [word for word in words if re.match(r"-[Omf][^/]*$", word)]


@dataclass(frozen=True)
class ProblemSize:
    """The arrays that a kernel works on. warning: memory was short for the default working set."""

    elements: int
    element_bytes: int
    arrays: int
    working_set_bytes: int
    array_spacing_bytes: int | None = None
    warning: str | None = None


@dataclass(frozen=True, kw_only=True)
class Times:
    """Seconds of each repetition, and apart from them the first-touch time (`populate`)."""

    populate: float | None = None
    repetitions: tuple[float, ...]


@dataclass(frozen=True)
class Traffic:
    """Bytes by convention and floating-point operations of a repetition."""

    bytes_stream: float | None = None
    bytes_hardware: float | None = None
    flops: float | None = None


@dataclass(frozen=True)
class Check:
    """One of several checks of a result."""

    name: str
    error: float
    tolerance: float


@dataclass(frozen=True)
class Validation:
    """Whether the result is right, and how that was checked.

    error, tolerance: with several checks those of the one nearest to failing.
    """

    passed: bool
    method: str
    error: float | None = None
    tolerance: float | None = None
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class ArrayPages:
    """The observed pages of an array."""

    name: str
    bytes: int
    huge_bytes: int
    page_size_observed_bytes: int


@dataclass(frozen=True, kw_only=True)
class PageUse:
    """Requested and observed pages. `enough_coverage`: the least that ranks, if not that of kernels."""

    policy: str
    page_size_requested_bytes: int
    page_size_observed_bytes: int
    huge_coverage: float
    enough_coverage: float | None = None
    base_page_size_bytes: int | None = None
    method: str | None = None
    arrays: tuple[ArrayPages, ...]


@dataclass(frozen=True)
class PageFaults:
    """Page faults of first touch and of computing."""

    populate_minor: int | None = None
    populate_major: int | None = None
    compute_minor: int | None = None
    compute_major: int | None = None

    @property
    def total(self) -> int | None:
        """All of them, None where none are reported."""
        return _sum(self.populate, self.compute)

    @property
    def populate(self) -> int | None:
        """Those of first touch, None where none are reported."""
        return _sum(self.populate_minor, self.populate_major)

    @property
    def compute(self) -> int | None:
        """Those of computing, None where none are reported."""
        return _sum(self.compute_minor, self.compute_major)


@dataclass(frozen=True)
class PowerInterval:
    """The mean power of an interval of a run, up to `end` from its start; None: a sensor failed in it."""

    end_seconds: float
    watts: float | None


@dataclass(frozen=True)
class RegionCounts:
    """A marked region: times and counts of all threads. `path` names the regions around it, too.

    imbalance: of each count, the most of a thread divided by the mean of the threads.
    """

    name: str
    path: str
    calls: int
    threads: int
    seconds: float
    seconds_mean_of_threads: float
    seconds_exclusive: float
    counts: Mapping[str, float] | None = None
    imbalance: Mapping[str, float] | None = None


@dataclass(frozen=True)
class SimulatedRegion:
    """The simulated counts of a region."""

    name: str
    calls: int
    counts: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """Counts of the TLB and cache simulator; a record with these holds nothing measured."""

    geometry: str
    tool: str
    pages: str
    observed_by: str | None = None
    unclear_extents: int | None = None
    whole: bool
    open_regions: int | None = None
    accesses_of_other_threads: int | None = None
    passes: int | None = None
    counts: Mapping[str, int]
    regions: tuple[SimulatedRegion, ...]
    functions: tuple[Mapping[str, int | str], ...] | None = None


@dataclass(frozen=True)
class ThreadPlaces:
    """Where the threads ran and the memory lay, by the program's own report.

    cpus and numa_nodes: as the timed part began, by thread. migrated: how many threads were on another CPU
    after some repetition; None where the program does not report it.
    """

    threads: int
    cpus: tuple[int, ...]
    numa_nodes: tuple[int, ...] | None = None
    cpus_at_end: tuple[int, ...] | None = None
    numa_nodes_at_end: tuple[int, ...] | None = None
    migrated: int | None = None
    last_level_cache_bytes: int | None = None
    cpus_allowed: str | None = None
    memory_policy: str | None = None
    node_bytes: tuple[int, ...] | None = None

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
    base_page_size_bytes: int | None = None


@dataclass(frozen=True)
class MemoryUse:
    """Resident bytes, and those on huge pages."""

    resident_bytes: int
    huge_bytes: int
    huge_coverage: float


@dataclass(frozen=True)
class OverTime:
    """The peak of a use of memory, and its mean over time."""

    peak: MemoryUse
    mean: MemoryUse


@dataclass(frozen=True)
class GivenPages:
    """Pages of the size asked for that the machine had more than before the run (mTHP)."""

    mean: int
    peak: int


@dataclass(frozen=True)
class PageTables:
    """Bytes of the page tables of all processes: the peak, and the mean over time."""

    peak_bytes: int
    mean_bytes: int


@dataclass(frozen=True, kw_only=True)
class ProgramMemory:
    """The sampled memory of a program that is no kernel of pagewise."""

    method: str
    samples: int
    full_samples: int
    sampling_seconds: float
    sampled_seconds: float
    processes: int
    total: OverTime
    page_tables: PageTables | None = None
    given: GivenPages | None = None
    kinds: Mapping[str, OverTime]


@dataclass(frozen=True)
class ProcessPlacement:
    """What the kernel reports of a process: its CPUs, and the policy of its memory; None: unknown."""

    cpus: tuple[int, ...] | None
    memory: str | None


@dataclass(frozen=True)
class Binding:
    """Where a run was to be, and what its process had. `ranks`: None without a launcher of MPI ranks."""

    name: str
    threads: int
    cpus: tuple[int, ...]
    memory: str
    had: ProcessPlacement
    ranks: int | None = None


@dataclass(frozen=True)
class RankUse:
    """An MPI rank of a run: what its process had as it started, and its observed pages if known."""

    rank: int
    cpus: tuple[int, ...]
    memory: str | None
    pages: PageUse | None = None


@dataclass(frozen=True)
class LeftProcess:
    """A process that a run left behind; `ended`: pagewise ended it."""

    pid: int
    command: str
    ended: bool


@dataclass(frozen=True, kw_only=True)
class RunOf:
    """The run that a record is of: its place in the plan, its settings, and how it ended."""

    kernel: str | None = None
    module: str
    hash: str
    builder: str
    round: int
    position: int
    series: str
    wall_seconds: float | None
    exit_code: int
    command: tuple[str, ...]
    pages: str | None = None
    placement: str | None = None
    options: str | None = None
    bound: Binding | None = None
    sweep: str | None = None
    started: str | None = None
    involuntary_switches: int | None = None
    group: str | None = None
    settings: Mapping[str, str] | None = None
    left_behind: tuple[LeftProcess, ...] | None = None
    node: NodeChange | None = None
    log: str | None = None


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
