"""The manifest of a session: what was run and how, on which machine, from which sources.

core/schema/manifest-1.json describes the file; None is what a manifest does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pagewise.core.configuration import Configuration
from pagewise.core.host import Host
from pagewise.core.text import command_text
from pagewise.core.units import bytes_text

SCHEMA = "pagewise.manifest/1"
#: What a session runs.
Kind = Literal["kernels", "program", "counters", "simulation", "programs"]
State = Literal["running", "complete", "interrupted", "failed"]


@dataclass(frozen=True)
class Provenance:
    """From which sources the programs come: Spack, its recipes, the project's commit, the lockfile."""

    spack_version: str | None
    spack_tree: str | None
    packages_commit: str | None
    project_commit: str | None
    project_dirty: bool | None
    lockfile: str | None
    lockfile_sha256: str | None


@dataclass(frozen=True)
class ProgramDigest:
    """The SHA-256 of a program of a module, None if it could not be read."""

    module: str
    program: str
    sha256: str | None


@dataclass(frozen=True)
class Digest:
    """The number of lines and the SHA-256 of a records file."""

    lines: int
    sha256: str


@dataclass(frozen=True)
class RecordsDigest(Digest):
    """The records that were written. `replaced`: those that resuming replaces, until it has."""

    replaced: Digest | None = None


@dataclass(frozen=True)
class Until:
    """How adding rounds ended: rounds by kernel, and the widest intervals of kernels that need more."""

    width: float
    budget_seconds: float
    ended: Literal["narrow", "budget"] | None
    rounds: Mapping[str, int]
    widest: Mapping[str, float | None]


@dataclass(frozen=True)
class Scaled:
    """A kernel that was scaled down because too little memory was available."""

    kernel: str
    asked_bytes: int
    taken_bytes: int
    available_bytes: int

    @property
    def text(self) -> str:
        """In a sentence, with the consequence."""
        return (
            f"{self.kernel} works on {bytes_text(self.taken_bytes)} instead of "
            f"{bytes_text(self.asked_bytes)} because {bytes_text(self.available_bytes)} of memory are "
            "available: do not compare its times with those of the full size."
        )


@dataclass(frozen=True)
class Break:
    """An interruption (`state` running: the session was killed). `aside`: runs that were measured again."""

    state: State
    stopped: str
    resumed: str
    rounds_done: int
    runs: int
    aside: int


@dataclass(frozen=True)
class PlannedPlacement:
    """Where runs were to be: the CPU of each thread, the memory policy, and the settings of OpenMP.

    ranks: the number of MPI ranks, each with `threads` of the CPUs in their order. order: compact or scatter.
    cores: how many cores the CPUs are of. policy: the memory policy as it was requested.
    """

    name: str
    threads: int
    cpus: tuple[int, ...]
    memory: str
    environment: Mapping[str, str]
    ranks: int | None = None
    order: str | None = None
    cores: int | None = None
    policy: str | None = None


@dataclass(frozen=True)
class Reservation:
    """A change of hugetlb pools: pages before, requested in addition to the free ones, and now."""

    page_bytes: int
    before: int
    needed: int
    now: int


@dataclass(frozen=True)
class Switched:
    """A THP switch, or a setting of clocks, that was changed."""

    file: str
    before: str
    now: str


@dataclass(frozen=True)
class SwitchValue:
    """The value of a place that switches the hardware prefetchers of a CPU."""

    cpu: int
    place: str
    value: str


@dataclass(frozen=True)
class SwitchedOff:
    """Hardware prefetchers that were off, or adjusted. `read_back`: whether that was verified."""

    off: tuple[str, ...]
    method: str
    read_back: bool
    before: tuple[SwitchValue, ...]
    adjusted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Modules:
    """The module tree, and the environment that it belongs to."""

    environment: str | None
    tree: str


@dataclass(frozen=True)
class BrokenModule:
    """A module of ours that could not be used, and why."""

    module: str
    reason: str


@dataclass(frozen=True)
class ChangedFile:
    """A file that changed during the session, in which round."""

    module: str
    file: str
    round: int


@dataclass(frozen=True)
class WorkDifference:
    """What a program did otherwise under a page policy than under the baseline: output lines, exit codes.

    missing: lines that only the baseline has. added: lines that only the policy has. Both are examples.
    """

    module: str
    placement: str | None = None
    options: str | None = None
    missing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    baseline_exit_codes: tuple[int, ...] = ()
    exit_codes: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlannedCell:
    """A cell, by modules: see core.plan.Cell."""

    measured: str
    stands_for: tuple[str, ...]
    is_baseline: bool
    pages: str | None = None
    placement: str | None = None
    options: str | None = None


@dataclass(frozen=True)
class PlannedSubject:
    """A kernel, by the content of its kernel.yaml, with its cells."""

    kernel: Mapping[str, Any]
    cells: tuple[PlannedCell, ...]


@dataclass(frozen=True)
class Timing:
    """How long the session took, its runs, and the rest as a share (the runner overhead)."""

    wall_seconds: float
    kernel_seconds: float
    own_share: float
    runs: int


@dataclass(frozen=True)
class CountersPart:
    """Which events were counted, how, and why so. `events` has the schema pagewise.events/1."""

    events: Mapping[str, Any]
    groups: tuple[str, ...]
    multiplexed: bool
    region: str | None
    reason: str
    remedy: str | None


@dataclass(frozen=True)
class SimulationPart:
    """What simulated a program: geometry (pagewise.geometry/1), emulator; how many functions to show.

    standard_input: that of the program, None: none.
    """

    geometry: Mapping[str, Any]
    tool: str
    functions: int
    standard_input: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class EnergyPart:
    """What measures the energy of runs: powercap, hwmon energy or hwmon power; or why nothing does."""

    source: str | None = None
    sensors: tuple[str, ...] = ()
    unavailable: str | None = None
    remedy: str | None = None

    @property
    def text(self) -> str:
        """As it is shown: `powercap: package-0, package-1`."""
        if self.unavailable is not None:
            return f"unavailable, because: {self.unavailable}"
        return f"{self.source}: {', '.join(self.sensors)}"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What was run, how, on which machine, from which sources. `files`: digests by path.

    suites: as `program`, by name, where several programs are compared (kind `programs`).
    compared_prefetchers: settings of the hardware prefetchers that are compared, as the options of cells name
    them; each is restored after each run.
    """

    schema: str = SCHEMA
    kind: Kind
    id: str
    name: str
    created: str
    finished: str | None
    state: State
    command: tuple[str, ...]
    started_in: str | None
    seed: int
    rounds: int
    rounds_done: int
    aa: int
    until: Until | None
    scaled: tuple[Scaled, ...] = ()
    breaks: tuple[Break, ...]
    threads: int
    baseline: str
    sweep: bool
    limit_seconds: float
    placement: PlannedPlacement
    placements: tuple[PlannedPlacement, ...]
    pool: tuple[Reservation, ...] | None
    switches: tuple[Switched, ...] | None = None
    clocks: tuple[Switched, ...] | None = None
    prefetchers: SwitchedOff | None
    compared_prefetchers: Mapping[str, SwitchedOff] | None = None
    software: Mapping[str, str | None]
    provenance: Provenance
    modules: Modules
    configurations: tuple[Configuration, ...]
    programs: tuple[ProgramDigest, ...]
    records: RecordsDigest
    files: Mapping[str, str | None]
    changed_files: tuple[ChangedFile, ...] = ()
    differing_work: tuple[WorkDifference, ...] = ()
    subjects: tuple[PlannedSubject, ...]
    broken_modules: tuple[BrokenModule, ...]
    timing: Timing | None
    energy: EnergyPart | None = None
    program: Mapping[str, Any] | None = None
    suites: Mapping[str, Mapping[str, Any]] | None = None
    counters: CountersPart | None = None
    simulation: SimulationPart | None = None
    host: Host

    def command_line(self, *options: str) -> str:
        """The command that began it with its folder and environment, for a shell; `options` are added to it.

        Text of the result: its author decides what the line executes.
        """
        environment = dict(((self.program or {}).get("environment") or {}).get("passed") or {})
        if self.program is None and self.suites is None:
            modules = self.modules
            environment |= {"PAGEWISE_ENV": modules.environment or "", "PAGEWISE_MODULES": modules.tree}
        variables = [f"{name}={value}" for name, value in environment.items()]
        words = [*(("env", *variables) if variables else ()), *self.command[:2], *options, *self.command[2:]]
        folder = "" if self.started_in is None else command_text(("cd", self.started_in)) + " && "
        return folder + command_text(words)
