"""The manifest of a session: what was run and how, on which machine, from which sources.

None is what a manifest does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import Configuration, RunSettings
from pagewise.core.fields import (
    Count,
    CpuNumber,
    Moment,
    PolicyName,
    Positive,
    PositiveSeconds,
    RankCount,
    Seconds,
    Sha256,
    SomeText,
    Threads,
)
from pagewise.core.host import Host
from pagewise.core.manifest_parts import CountersPart, Described, SimulationPart
from pagewise.core.structure import OPEN, Form, Limits
from pagewise.core.text import command_text
from pagewise.core.units import bytes_text, percent_text

PathText = Annotated[str, Form(r"[^\x00]*")]
#: What a session runs.
ResultKind = Literal["kernels", "programs", "counters", "simulation"]
SessionState = Literal["running", "complete", "interrupted", "failed"]


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

    lines: Annotated[int, Limits(0)]
    sha256: Sha256


@dataclass(frozen=True)
class RecordsDigest(Digest):
    """The records that were written. `replaced`: those that resuming replaces, until it has."""

    replaced: Digest | None = None


def goal_of(width: float, clear_suffices: bool) -> str:
    """The goal of adding rounds, see Until."""
    narrow = f"narrower than {percent_text(width)}"
    return f"each difference clear or its interval {narrow}" if clear_suffices else f"all intervals {narrow}"


@dataclass(frozen=True)
class Last:
    """The last round of a configuration that needed no more, see Cell.key."""

    kernel: str
    module: str
    pages: str | None
    placement: str | None
    options: str | None
    round: Positive


@dataclass(frozen=True)
class Until:
    """How adding rounds ended: rounds by kernel, and the widest intervals of kernels that need more."""

    width: Annotated[float, Limits(above=0), "of the widest interval, as a share"]
    clear_suffices: Annotated[bool, "whether a clear difference (p at most 0.001) needs no narrow interval"]
    budget_seconds: PositiveSeconds
    ended: Literal["narrow", "budget"] | None
    rounds: Annotated[Mapping[str, int], "by kernel"]
    widest: Annotated[
        Mapping[str, float | None], "of the kernels that are not narrow enough; null: no interval"
    ]
    last: Annotated[tuple[Last, ...], "rounds of configurations that needed no more"] = ()


@dataclass(frozen=True)
class Scaled:
    """A kernel that was scaled down because too little memory was available."""

    kernel: str
    asked_bytes: Positive
    taken_bytes: Positive
    available_bytes: Count

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

    state: Annotated[Literal["running", "interrupted", "failed"], "running: it was killed"]
    stopped: Moment
    resumed: Moment
    rounds_done: Count
    runs: Count
    aside: Annotated[int, Limits(0), "runs of a round begun, measured again"]


@dataclass(frozen=True)
class PlannedPlacement:
    """Where runs were to be: the CPU of each thread, the memory policy, and the settings of OpenMP.

    ranks: the number of MPI ranks, each with `threads` of the CPUs in their order. order: close or spread.
    cores: how many cores the CPUs are of. policy: the memory policy as it was requested.
    """

    name: str
    threads: Threads
    cpus: Annotated[tuple[CpuNumber, ...], Limits(1), "by thread"]
    memory: Annotated[str, "the policy, as numa_maps reports it"]
    environment: Mapping[str, str]
    ranks: RankCount | None = None
    order: Annotated[str, Form("close|spread"), "absent: listed CPUs, or none bound"] | None = None
    cores: Annotated[Threads, "how many cores the CPUs are of"] | None = None
    policy: Annotated[str, "the memory policy as it was requested"] | None = None


@dataclass(frozen=True)
class Reservation:
    """A change of hugetlb pools: pages before, requested in addition to the free ones, and now."""

    page_bytes: Positive
    before: Count
    needed: Count
    now: Count


@dataclass(frozen=True)
class Switched:
    """A THP switch, or a setting of clocks, that was changed."""

    file: str
    before: str
    now: str


@dataclass(frozen=True)
class SwitchValue:
    """The value of a place that switches the hardware prefetchers of a CPU."""

    cpu: Count
    place: str
    value: str


@dataclass(frozen=True)
class SwitchedOff:
    """Hardware prefetchers that were off, or adjusted. `read_back`: whether that was verified."""

    off: tuple[str, ...]
    method: str
    read_back: bool
    before: tuple[SwitchValue, ...]
    adjusted: Annotated[tuple[str, ...], Limits(1)] = ()


@dataclass(frozen=True)
class Modules:
    """The module tree, and the environment that it belongs to."""

    environment: str | None
    tree: PathText


@dataclass(frozen=True)
class BrokenModule:
    """A module of pagewise that could not be used, and why."""

    module: str
    reason: str


@dataclass(frozen=True)
class ChangedFile:
    """A file that changed during the session, in which round."""

    module: str
    file: str
    round: Annotated[int, Limits(0)]


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
    stands_for: Annotated[tuple[str, ...], Limits(1)]
    is_baseline: bool
    pages: Annotated[PolicyName, "what its runs request; else the built one"] | None = None
    placement: Annotated[str, "the name of that of its runs, where there are several"] | None = None
    settings: Annotated[RunSettings, "of its runs, where they are compared"] | None = None


@dataclass(frozen=True)
class PlannedSubject:
    """A kernel or program, with its cells."""

    kernel: Benchmark
    cells: Annotated[tuple[PlannedCell, ...], Limits(1)]


@dataclass(frozen=True)
class Timing:
    """How long the session took, its runs, and the rest as a share (the runner overhead)."""

    wall_seconds: Seconds
    kernel_seconds: Seconds
    overhead_share: float
    runs: Count


@dataclass(frozen=True)
class EnergyPart:
    """What measures the energy of runs: powercap, hwmon energy (before: hwmon power), or why nothing does."""

    source: Annotated[str, Form("powercap|hwmon energy|hwmon power"), "absent: unavailable"] | None = None
    sensors: tuple[str, ...] = ()
    unavailable: Annotated[str, "why no energy was measured"] | None = None
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

    programs: the user's own, by their names in the session: a code of a suite with its build.
    compared_prefetchers: settings of the hardware prefetchers that are compared, by their names in
    cells; each is restored after each run.
    """

    # Of earlier versions: those of the first placement.
    IGNORED: ClassVar = ("placement", "threads")
    schema: Literal["pagewise.manifest/2"] = "pagewise.manifest/2"
    kind: Annotated[ResultKind, "what was run"]
    id: Annotated[str, Form("[0-9a-f]{16,32}"), "the same wherever the folder is copied to"]
    name: SomeText
    created: Moment
    finished: Moment | None
    state: SessionState
    command: tuple[str, ...]
    started_in: Annotated[PathText | None, "the folder"]
    seed: int
    rounds: Annotated[int, Limits(1, 100_000)]
    rounds_done: Count
    aa: Annotated[int, Limits(1, 1000), "A/A pairs per round"]
    until: Annotated[Until | None, "what --until did; null: as many rounds as were requested"]
    scaled: Annotated[
        tuple[Scaled, ...], "kernels that were made smaller to fit into memory; absent: none"
    ] = ()
    breaks: Annotated[tuple[Break, ...], "interruptions after which it was resumed (--resume)"]
    baseline: Annotated[str, "a glob over hugepages/prefetch-stores"]
    sweep: bool
    limit_seconds: PositiveSeconds
    placements: Annotated[
        tuple[PlannedPlacement, ...], Limits(1), "all that were compared; the first is that of baselines"
    ]
    pool: Annotated[tuple[Reservation, ...] | None, "what --prepare-pages reserved, pool by pool"]
    switches: Annotated[tuple[Switched, ...], "what --prepare-pages switched on"] | None = None
    clocks: Annotated[tuple[Switched, ...], "what --vary clocks did; `host` has the old values"] | None = None
    prefetchers: Annotated[SwitchedOff | None, "off or adjusted during all runs; null: as found"]
    compared_prefetchers: Annotated[Mapping[str, SwitchedOff], "by names in settings of cells"] | None = None
    software: Mapping[str, str | None]
    provenance: Provenance
    modules: Modules
    configurations: Annotated[tuple[Configuration, ...], Limits(1)]
    executables: Annotated[tuple[ProgramDigest, ...], "digests of the kernels' programs that were run"] = ()
    records: Annotated[RecordsDigest, "the records that were written"]
    files: Annotated[
        Mapping[str, str | None], "digests of all files that were measured, at the beginning, by path"
    ]
    changed_files: Annotated[tuple[ChangedFile, ...], "what was measured with them is not ranked"] = ()
    differing_work: tuple[WorkDifference, ...] = ()
    subjects: Annotated[tuple[PlannedSubject, ...], Limits(1)]
    broken_modules: tuple[BrokenModule, ...]
    timing: Timing | None
    energy: Annotated[EnergyPart, "absent: not examined"] | None = None
    programs: Annotated[Mapping[str, Described], "the user's own, by name"] = field(default_factory=dict)
    counters: Annotated[CountersPart, "where events were counted"] | None = None
    simulation: Annotated[SimulationPart, "what simulated the program"] | None = None
    host: Annotated[Host, OPEN]

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """What a session of its kind must have, and modules that are not listed."""
        if self.kind != "kernels" and not getattr(self, self.kind):
            yield "", f"{self.kind!r} is missing"
        if self.kind == "simulation" and len(self.subjects) != 1:
            yield "subjects", "a simulation is of one program"
        cells = [cell for subject in self.subjects for cell in subject.cells]
        measured = {module for cell in cells for module in (cell.measured, *cell.stands_for)}
        for module in sorted(measured - {each.module for each in self.configurations}):
            yield "subjects", f"{module!r} is not one of the configurations"

    @property
    def placement(self) -> PlannedPlacement:
        """The placement of baselines: the first."""
        return self.placements[0]

    @property
    def last_rounds(self) -> tuple[Last, ...]:
        """See Until."""
        return () if self.until is None else self.until.last

    @property
    def threads(self) -> int:
        """The threads of a run in that placement; of each rank, if there are several."""
        return self.placement.threads

    def command_line(self, *options: str) -> str:
        """The command that began it with its folder and environment, for a shell; `options` are added to it.

        Text of the result: its author decides what the line executes.
        """
        described = next(iter(self.programs.values()), {})
        environment = dict((described.get("environment") or {}).get("passed") or {})
        if not self.programs:
            modules = self.modules
            environment |= {"PAGEWISE_ENV": modules.environment or "", "PAGEWISE_MODULES": modules.tree}
        variables = [f"{name}={value}" for name, value in environment.items()]
        words = [*(("env", *variables) if variables else ()), *self.command[:2], *options, *self.command[2:]]
        folder = "" if self.started_in is None else command_text(("cd", self.started_in)) + " && "
        return folder + command_text(words)
