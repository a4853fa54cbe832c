"""The user's programs, unchanged, as a workload of a session: each page policy is a configuration.

One program is a list of one; the builds of a code are configurations of one subject.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pagewise.core.environment import influences
from pagewise.core.errors import SelectionError
from pagewise.core.plan import CellKey, Step, Subject
from pagewise.core.record_parts import Failure
from pagewise.machine.placement import Placement
from pagewise.machine.settings import hugepages
from pagewise.session.launch import Stopwatch, by_name
from pagewise.session.options import SessionOptions
from pagewise.session.settings import MachineSettings, Needs, pools_used
from pagewise.session.standard_input import StandardInput
from pagewise.session.workload import ComparisonPlanner, Decision, Trial
from pagewise.stack.binary import Binary, examine, files_of
from pagewise.stack.launcher import RankLauncher
from pagewise.workloads.program.applied import AppliedPolicy, PolicyLauncher
from pagewise.workloads.program.launch import Launched, ProgramLauncher, ProgramOutcome
from pagewise.workloads.program.memory import Memory
from pagewise.workloads.program.program import Program

# What malloc maps is rounded up to pages, and each thread has its own arena.
_POOL_MARGIN = 1.25
_PAGES_PER_CPU = 2
# Programs with a smaller share of the largest one's memory do not decide on page policies.
_LEAST_MEMORY = 0.1


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """How runs of a program are judged, as the user wrote it.

    interval: seconds between samples of memory; None: adaptive. enough: the share of a policy's memory that
    must be on the requested pages.
    """

    metrics: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    interval: float | None = None
    enough: float = 0.8


@dataclass(frozen=True, kw_only=True)
class ProgramOptions(SessionOptions):
    """What is run: a program, or known codes and files of cases; under which page policies; how it is judged.

    See `pagewise compare --help`.
    """

    command: tuple[str, ...] = ()
    suite: tuple[str, ...] = ()
    cases: tuple[Path, ...] = ()
    builds: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    checked: CheckOptions = CheckOptions()


@dataclass(frozen=True)
class Tools:
    """What all programs of a session share: stopwatch, launcher, placements, settings, standard input."""

    hyperfine: str
    launcher: PolicyLauncher
    places: list[Placement]
    settings: MachineSettings
    given: StandardInput


@dataclass(frozen=True)
class ProgramRuns:
    """The runs of a program. `policies` are by the module of their configuration, the baseline's first.

    rank_launcher: what starts MPI ranks, None for one process. ran: the programs that ran in its trial run,
    None unless they decide on policies. memory: that of trial runs.
    """

    program: Program
    policies: Mapping[str, AppliedPolicy]
    rank_launcher: RankLauncher | None = None
    ran: tuple[Binary, ...] | None = None
    memory: Mapping[CellKey, Memory] = field(default_factory=dict)

    @property
    def baseline(self) -> str:
        """The module of the page policy to compare against."""
        return next(iter(self.policies))

    @property
    def unavailable(self) -> dict[str, Failure]:
        """Why policies are unavailable, by module."""
        reasons = {name: applied.unavailable for name, applied in self.policies.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    @property
    def from_pool(self) -> list[AppliedPolicy]:
        """The available policies that take pages of a pool."""
        every = self.policies.values()
        return [applied for applied in every if applied.from_pool and applied.unavailable is None]

    def described(self, options: ProgramOptions, tools: Tools) -> dict[str, object]:
        """The program, its policies and what the caller's environment decides, for the manifest."""
        program, service = self.program, self.program.service
        related = {} if program.relation is None else {"relative_to": asdict(program.relation)}
        ran = {} if self.ran is None else {"programs": [binary.to_dict() for binary in self.ran]}
        return {
            "command": list(program.command),
            "service": None if service is None else service.to_dict(),
            "setup": list(program.setup) or None,
            "folder": None if program.folder is None else str(program.folder),
            "inputs": [*map(str, program.inputs), *program.texts],
            "reads": list(program.reads),
            **program.binary.to_dict(),
            "metrics": [metric.to_dict() for metric in program.metrics],
            "checks": [check.text for check in program.checks],
            "enough_coverage": options.checked.enough,
            "memory_budget": program.memory_budget,
            "sample_interval_seconds": options.checked.interval,
            "policies": [applied.to_dict() for applied in self.policies.values()],
            "environment": self._environment(tools.places[0]),
            "standard_input": tools.given.to_dict(),
            **related,
            **ran,
        }

    def _environment(self, placement: Placement) -> dict[str, dict[str, str]]:
        """What the caller's environment decides about memory, libraries and threads of the runs."""
        every, baseline = self.program.environment, self.policies[self.baseline]
        given = {name: text for name, text in every.items() if name not in placement.environment}
        none = baseline.launcher.ask("none", baseline.binary.image, given).settings
        passed = {name: none.environment.get(name, text) for name, text in influences(given).items()}
        return {
            "passed": {name: text for name, text in passed.items() if text is not None},
            "removed": dict(none.removed),
        }

    def decided(self, trials: Sequence[Trial]) -> tuple[ProgramRuns, list[str]]:
        """The runs as trial runs decide them, and what of that is printed.

        The programs that a script or launcher started decide which policies are available.
        """
        outcomes = [
            (trial.step.cell, trial.outcome)
            for trial in trials
            if trial.step.cell.measured.module in self.policies and isinstance(trial.outcome, ProgramOutcome)
        ]
        memory = {cell.key: outcome.memory for cell, outcome in outcomes if outcome.memory is not None}
        runs = replace(self, memory=memory)
        images = outcomes[0][1].images if outcomes else {}
        least = max(images.values(), default=0) * _LEAST_MEMORY
        every = sorted(images, key=images.__getitem__, reverse=True)
        files = [file for file in every if images[file] >= least and Path(file).is_file()]
        if self.ran is not None or set(files) <= {str(self.program.binary.image)}:
            return runs, []
        binaries, unread = self._examined(files)
        policies = {name: replace(each, programs=binaries) for name, each in self.policies.items()}
        runs = replace(runs, ran=binaries, policies=policies)
        return runs, [
            "Page policies are decided by the programs that ran:",
            *(f"  {binary.image} ({binary.text})" for binary in binaries or [self.program.binary]),
            *unread,
            *(f"unavailable: {name}: {failure.message}" for name, failure in runs.unavailable.items()),
        ]

    def _examined(self, files: Iterable[str]) -> tuple[tuple[Binary, ...], list[str]]:
        """The programs of these files, and a line for each that cannot be examined."""
        binaries, unread, environment = [], [], self.program.environment
        launcher = self.policies[self.baseline].launcher
        for file in files:
            try:
                binaries.append(launcher.examined(examine(file, environment), environment))
            except SelectionError as fault:
                unread.append(f"  not examined: {file}: {fault.what}")
        return tuple(binaries), unread


@dataclass(frozen=True)
class Programs:
    """Programs as a workload: their runs, and the subjects with all configurations."""

    options: ProgramOptions
    tools: Tools
    programs: tuple[ProgramRuns, ...]
    subjects: list[Subject]

    @property
    def placements(self) -> list[Placement]:
        """Where they run."""
        return self.tools.places

    @property
    def settings(self) -> MachineSettings:
        """Those of the machine."""
        return self.tools.settings

    @property
    def by_module(self) -> dict[str, ProgramRuns]:
        """The runs of the program that a module is of."""
        return {module: runs for runs in self.programs for module in runs.policies}

    @property
    def unavailable(self) -> dict[str, Failure]:
        """Why policies are unavailable, by module."""
        return {module: failure for runs in self.programs for module, failure in runs.unavailable.items()}

    @property
    def planner(self) -> ComparisonPlanner:
        """Every policy of every program once per round."""
        unavailable = self.unavailable
        return ComparisonPlanner(
            self.subjects,
            self.options.runs.seed,
            self.options.runs.aa,
            starts=lambda step: step.cell.measured.module not in unavailable,
        )

    def described(self) -> dict[str, dict[str, object]]:
        """The programs for the manifest, by name."""
        return {runs.program.key: runs.described(self.options, self.tools) for runs in self.programs}

    def watched_files(self) -> dict[str, tuple[Path, ...]]:
        """The files and inputs of each program, for every policy."""
        watched: dict[str, tuple[Path, ...]] = {}
        for runs in self.programs:
            program = runs.program
            files = files_of(program.binary.program, program.environment)
            inputs = [file for file in program.inputs if file.is_file()]
            watched |= dict.fromkeys(runs.policies, (*files, *inputs, *self.tools.given.watched))
        return watched

    def references(self) -> dict[str, str]:
        """The baseline of each program."""
        return {module: runs.baseline for module, runs in self.by_module.items()}

    def launcher(self, scratch: Path) -> ProgramLauncher:
        """Launches programs through hyperfine, and samples their memory."""
        options, tools = self.options, self.tools
        stopwatch = Stopwatch(
            tools.hyperfine,
            options.runs.limit,
            scratch,
            options.runs.end_leftovers,
            given=tools.given.path,
            starter=tuple(tools.launcher.starter()),
        )
        return ProgramLauncher(
            {
                module: Launched(runs.program, runs.policies[module], runs.rank_launcher)
                for module, runs in self.by_module.items()
            },
            {key: memory for runs in self.programs for key, memory in runs.memory.items()},
            by_name(tools.places),
            stopwatch,
            options.checked.interval,
            options.checked.enough,
            tools.settings,
        )

    def trials(self, *, of_baselines: bool) -> list[Step]:
        """The trial run of a program's baseline shows how large pools must be, and which programs run."""
        steps: list[Step] = []
        for runs in self.programs:
            every = [
                (subject.kernel, cell)
                for subject in self.subjects
                for cell in subject.cells
                if cell.measured.module in runs.policies
            ]
            every.sort(key=lambda pair: pair[1].measured.module != runs.baseline)
            of_program = [Step(*pair, "trial", 1, at) for at, pair in enumerate(every, start=1)]
            steps += of_program[:1] if of_baselines else of_program[1:]
        return steps

    def decided(self, trials: Sequence[Trial]) -> Decision[Programs]:
        """The programs with what trial runs showed of their memory, and of the programs that ran."""
        decisions = [runs.decided(trials) for runs in self.programs]
        workload = replace(self, programs=tuple(runs for runs, _ in decisions))
        text = "\n".join(line for _, lines in decisions for line in lines)
        return Decision(workload, {"programs": workload.described()} if text else {}, text)

    def needs(self) -> Needs:
        """Huge pages for all programs: THP sizes, and pools for what the baselines' trial runs used."""
        policies = [applied for runs in self.programs for applied in runs.policies.values()]
        switches = {switch for applied in policies for switch in applied.switches}
        pages: dict[int, int] = {}
        for runs in self.programs:
            for size, count in self._pool_pages(runs).items():
                pages[size] = max(count, pages.get(size, 0))
        return Needs(switches, pages)

    def _pool_pages(self, runs: ProgramRuns) -> dict[int, int]:
        """By page size, what the baseline's trial run used, shared among the pools."""
        used = [memory for key, memory in runs.memory.items() if key[0] == runs.baseline][:1]
        sizes = {applied.answer.page_size_bytes for applied in runs.from_pool}
        return {
            size: -(-self._pages_needed(runs, memory, size) // len(pools_used(self.placements, size)))
            for memory in used
            for size in sizes
        }

    def _pages_needed(self, runs: ProgramRuns, memory: Memory, size: int) -> int:
        parts = (part for applied in runs.from_pool for part in applied.answer.parts)
        kinds = {kind for part in parts for kind in part.kinds}
        used = memory.peak(*kinds).resident
        most = max(place.threads for place in self.placements)
        arenas = _PAGES_PER_CPU * most if size <= hugepages.PAGE_BYTES else 0
        of_each = hugepages.margin_pages(size) + arenas
        return int(-(-used * _POOL_MARGIN // size)) + of_each * max(1, memory.processes)
