"""The user's programs, unchanged, as a workload of a session: each page policy is a configuration.

One program is a list of one; the builds of a code are configurations of one subject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pagewise.core.plan import Step, Subject
from pagewise.core.record_parts import Failure
from pagewise.machine.memory import available
from pagewise.machine.placement import Placement
from pagewise.machine.settings import hugepages
from pagewise.session.launch import Stopwatch, by_name
from pagewise.session.options import SessionOptions
from pagewise.session.settings import MachineSettings, Needs, pools_used
from pagewise.session.standard_input import StandardInput
from pagewise.session.workload import ComparisonPlanner, Decision, Launcher, Planner, Trial
from pagewise.stack.binary import files_of
from pagewise.workloads.program.applied import PolicyLauncher
from pagewise.workloads.program.launch import ProgramLauncher
from pagewise.workloads.program.memory import Memory
from pagewise.workloads.program.runs import CheckOptions, ProgramRuns

# What malloc maps is rounded up to pages, and each thread has its own arena.
_POOL_MARGIN = 1.25
_PAGES_PER_CPU = 2


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
    checked: CheckOptions = field(default_factory=CheckOptions)


@dataclass(frozen=True)
class Programs:
    """Programs as a workload: their runs, the subjects with all configurations, and what they share.

    given: their standard input.
    """

    options: ProgramOptions
    hyperfine: str
    policy_launcher: PolicyLauncher
    placements: list[Placement]
    settings: MachineSettings
    given: StandardInput
    programs: tuple[ProgramRuns, ...]
    subjects: list[Subject]

    @property
    def by_module(self) -> dict[str, ProgramRuns]:
        """The runs of the program that a module is of."""
        return {module: runs for runs in self.programs for module in runs.policies}

    @property
    def unavailable(self) -> dict[str, Failure]:
        """Why policies are unavailable, by module."""
        return {module: failure for runs in self.programs for module, failure in runs.unavailable.items()}

    @property
    def planner(self) -> Planner:
        """Every policy of every program once per round."""
        unavailable, whole = self.unavailable, self._whole()
        names = {runs.program.key: runs.program.name for runs in self.programs}
        relations = {runs.program.name: runs.program.relation for runs in self.programs}
        return ComparisonPlanner(
            self.subjects,
            self.options.runs.seed,
            self.options.runs.aa,
            can_run=lambda step: step.cell.measured.module not in unavailable,
            whole_because=lambda step: (
                "settings of the machine differ" if step.cell.settings.machine else whole[step.benchmark.name]
            ),
            related={name: names[other.program] for name, other in relations.items() if other is not None},
        )

    def _whole(self) -> dict[str, str | None]:
        """By program, why its runs are not in slices; None: they wait for nothing, and fit into memory.

        All builds and policies of a program are measured in the same way.
        """
        names = [subject.benchmark.name for subject in self.subjects]
        if self.options.runs.method == "runs":
            return dict.fromkeys(names, "")
        room, number = available(), self.options.runs.aa + max(len(each.cells) for each in self.subjects)
        whole: dict[str, str | None] = dict.fromkeys(names)
        for runs in self.programs:
            reason = runs.not_sliced
            if room is not None and number * runs.peak_bytes > room // 2:
                reason = reason or "its runs do not fit into memory together"
            whole[runs.program.name] = whole[runs.program.name] or reason or None
        return whole

    def describe(self) -> dict[str, dict[str, object]]:
        """The programs for the manifest, by name."""
        place, checked = self.placements[0], self.options.checked
        return {runs.program.key: runs.describe(checked, place, self.given) for runs in self.programs}

    def watched_files(self) -> dict[str, tuple[Path, ...]]:
        """The files and inputs of each program, for every policy."""
        watched: dict[str, tuple[Path, ...]] = {}
        for runs in self.programs:
            program = runs.program
            files = files_of(program.binary.program, program.environment)
            inputs = [file for file in program.inputs if file.is_file()]
            watched |= dict.fromkeys(runs.policies, (*files, *inputs, *self.given.watched))
        return watched

    def references(self) -> dict[str, str]:
        """The baseline of each program."""
        return {module: runs.baseline for module, runs in self.by_module.items()}

    def launcher(self, scratch: Path) -> Launcher:
        """Launches the runs."""
        return self.program_launcher(scratch)

    def program_launcher(self, scratch: Path) -> ProgramLauncher:
        """Launches programs through hyperfine, and samples their memory."""
        options = self.options
        stopwatch = Stopwatch(
            self.hyperfine,
            options.runs.limit,
            scratch,
            options.runs.end_leftovers,
            given=self.given.path,
            starter=tuple(self.policy_launcher.starter()),
        )
        return ProgramLauncher(
            self.by_module, by_name(self.placements), stopwatch, options.checked, self.settings
        )

    def trials(self, *, of_baselines: bool) -> list[Step]:
        """The trial run of a program's baseline shows how large pools must be, and which programs run."""
        steps: list[Step] = []
        for runs in self.programs:
            every = [
                (subject.benchmark, cell)
                for subject in self.subjects
                for cell in subject.cells
                if cell.measured.module in runs.policies
            ]
            every.sort(key=lambda pair: pair[1].measured.module != runs.baseline)
            of_program = [Step(*pair, "trial", 1, at) for at, pair in enumerate(every, start=1)]
            steps += of_program[:1] if of_baselines else of_program[1:]
        return steps

    def decide(self, trials: Sequence[Trial]) -> Decision[Programs]:
        """The programs with what trial runs showed of their memory, and of the programs that ran."""
        decisions = [runs.decide(trials, self.options.runs.method) for runs in self.programs]
        workload = replace(self, programs=tuple(runs for runs, _ in decisions))
        lines = [line for _, lines in decisions for line in lines]
        if self.options.runs.method == "turns":
            whole = workload._whole().items()
            lines += [f"{name} is measured in whole runs: {reason}" for name, reason in whole if reason]
        text = "\n".join(lines)
        return Decision(workload, {"programs": workload.describe()} if text else {}, text)

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
