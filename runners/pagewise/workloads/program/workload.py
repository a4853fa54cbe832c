"""The user's program, unchanged, as a workload of a session: each page policy is a configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from pagewise.core.errors import SelectionError
from pagewise.core.manifest import WorkDifference
from pagewise.core.plan import CellKey, Step, Subject
from pagewise.core.record_parts import Failure
from pagewise.machine.placement import Placement
from pagewise.machine.settings import hugepages
from pagewise.session.launch import Stopwatch, by_name
from pagewise.session.options import SessionOptions
from pagewise.session.planner import ComparisonPlanner
from pagewise.session.settings import MachineSettings, changed_settings, pools_used
from pagewise.session.standard_input import NO_INPUT, StandardInput
from pagewise.session.workload import Trials
from pagewise.stack.binary import examine, files_of
from pagewise.stack.launcher import RankLauncher
from pagewise.workloads.program.applied import AppliedPolicy
from pagewise.workloads.program.launch import ProgramLauncher, trial_text
from pagewise.workloads.program.memory import Memory
from pagewise.workloads.program.program import Program
from pagewise.workloads.program.work import Work

# What malloc maps is rounded up to pages, and each thread has its own arena.
_POOL_MARGIN = 1.25
_PAGES_PER_CPU = 2
# Programs with a smaller share of the largest one's memory do not decide on page policies.
_LEAST_MEMORY = 0.1


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """How runs of a program are made and judged, as the user wrote it.

    interval: seconds between samples of memory; None: adaptive. enough: the share of a policy's memory that
    must be on the requested pages. memory_budget: how much more of it an advised policy may need.
    """

    metrics: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    ok: tuple[int, ...] = ()
    inputs: tuple[Path, ...] = ()
    reads: tuple[str, ...] = ()
    interval: float | None = None
    enough: float = 0.8
    memory_budget: float | None = None


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """A service and what loads it, as the user wrote them."""

    service: str | None = None
    load: str | None = None
    ready: str | None = None
    setup: tuple[str, ...] = ()
    fill: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ProgramOptions(SessionOptions):
    """What is run: a program, codes of the suites or a service; under which page policies; how it is judged.

    See `pagewise compare --help`.
    """

    command: tuple[str, ...] = ()
    suite: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    checked: CheckOptions = CheckOptions()
    service: ServiceOptions = ServiceOptions()


@dataclass(frozen=True)
class ProgramRuns:
    """Runs of one program. `policies` are by the module of their configuration.

    settings: those of the machine. given: the standard input of runs. key: its name among several programs of
    a session. trials, images: the memory of trial runs, and the files of the programs that ran in them. work:
    what all runs printed.
    """

    options: ProgramOptions
    program: Program
    policies: dict[str, AppliedPolicy]
    subject: Subject
    placements: list[Placement]
    hyperfine: str
    console: Console
    trials: dict[CellKey, Memory] = field(default_factory=dict)
    images: dict[str, int] = field(default_factory=dict)
    work: Work = field(default_factory=Work)
    rank_launcher: RankLauncher | None = None
    settings: MachineSettings = field(default_factory=MachineSettings)
    given: StandardInput = NO_INPUT
    key: str | None = None

    @property
    def subjects(self) -> list[Subject]:
        """The program with its policies."""
        return [self.subject]

    @property
    def planner(self) -> ComparisonPlanner:
        """Every policy once per round."""
        return ComparisonPlanner(
            self.subjects, self.options.runs.seed, self.options.runs.aa, starts=self.is_available
        )

    @property
    def baseline(self) -> str:
        """The page policy to compare against."""
        return next(iter(self.policies.values())).answer.policy

    @property
    def unavailable(self) -> dict[str, Failure]:
        """Why policies are unavailable, by module."""
        reasons = {name: applied.unavailable for name, applied in self.policies.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def watched_files(self) -> dict[str, tuple[Path, ...]]:
        """The program's files and inputs, for every policy."""
        files = files_of(self.program.binary.program, self.program.environment)
        inputs = [file for file in self.program.inputs if file.is_file()]
        return dict.fromkeys(self.policies, (*files, *inputs, *self.given.watched))

    def launcher(self, scratch: Path) -> ProgramLauncher:
        """Launches the program through hyperfine, and samples its memory."""
        options, launcher = self.options, next(iter(self.policies.values())).launcher
        stopwatch = Stopwatch(
            self.hyperfine,
            options.runs.limit,
            scratch,
            options.runs.end_leftovers,
            given=self.given.path,
            starter=tuple(launcher.starter()),
        )
        return ProgramLauncher(
            self.program,
            self.policies,
            by_name(self.placements),
            stopwatch,
            options.checked.interval,
            options.checked.enough,
            self.trials,
            self.images,
            self.work,
            self.rank_launcher,
            self.settings,
        )

    def prepared(self, session: Trials) -> AbstractContextManager[None]:
        """Trial runs of all policies."""
        return prepared_together([self], session)

    @property
    def _trials(self) -> list[Step]:
        cells = sorted(self.subject.cells, key=lambda cell: not cell.is_baseline)
        return [Step(self.subject.kernel, cell, "trial", 1, at) for at, cell in enumerate(cells, start=1)]

    def try_baseline(self, session: Trials) -> None:
        """The trial run of the baseline shows how large pools must be, and which programs run."""
        self._try(self._trials[0], session)
        self._decide(session)

    def try_others(self, session: Trials) -> None:
        """The trial runs of the other configurations."""
        for step in self._trials[1:]:
            if self.is_available(step) and not session.is_ruled_out(step):
                self._try(step, session)

    def _decide(self, session: Trials) -> None:
        """The programs that a script or launcher started decide which policies are available."""
        least = max(self.images.values(), default=0) * _LEAST_MEMORY
        ran = sorted(self.images, key=self.images.__getitem__, reverse=True)
        files = [file for file in ran if self.images[file] >= least and Path(file).is_file()]
        if set(files) <= {str(self.program.binary.image)}:
            return
        programs, unread, launcher = [], [], next(iter(self.policies.values())).launcher
        for file in files:
            try:
                binary = examine(file, self.program.environment)
                programs.append(launcher.examined(binary, self.program.environment))
            except SelectionError as fault:
                unread.append(f"  not examined: {file}: {fault.what}")
        for name, applied in self.policies.items():
            self.policies[name] = replace(applied, programs=tuple(programs))
        described = {
            "programs": [binary.to_dict() for binary in programs],
            "policies": [applied.to_dict() for applied in self.policies.values()],
        }
        manifest = session.recorder.manifest
        if self.key is None:
            session.recorder.note(program={**(manifest.program or {}), **described})
        else:
            known = manifest.suites or {}
            session.recorder.note(suites={**known, self.key: {**known[self.key], **described}})
        text = "\n".join(
            (
                "Page policies are decided by the programs that ran:",
                *(f"  {binary.image} ({binary.text})" for binary in programs or [self.program.binary]),
                *unread,
                *(f"unavailable: {name}: {failure.message}" for name, failure in self.unavailable.items()),
            )
        )
        self.console.print(text, highlight=False, soft_wrap=True)

    def differing_work(self) -> tuple[WorkDifference, ...]:
        """What the program did otherwise under a policy than under the baseline."""
        return self.work.differences(self.subject.cells, next(iter(self.policies)))

    def is_available(self, step: Step) -> bool:
        """Whether the policy of a step can be applied here."""
        return self.policies[step.cell.measured.module].unavailable is None

    def _try(self, step: Step, session: Trials) -> None:
        record = session.run(step).records[0]
        text = trial_text(step.cell.measured.hugepages, record)
        self.console.print(f"trial run, {text}", highlight=False, soft_wrap=True)

    def pool_pages(self) -> dict[int, int]:
        """By page size, what the baseline's trial run used, shared among the pools."""
        memory = self.trials.get(self._trials[0].cell.key)
        if memory is None:
            return {}
        sizes = {applied.answer.page_size_bytes for applied in self._of_pools}
        return {
            size: -(-self._pages_needed(memory, size) // len(pools_used(self.placements, size)))
            for size in sizes
        }

    @property
    def _of_pools(self) -> list[AppliedPolicy]:
        """The available policies that take pages of a pool."""
        every = self.policies.values()
        return [applied for applied in every if applied.from_pool and applied.unavailable is None]

    def _pages_needed(self, memory: Memory, size: int) -> int:
        if self.options.machine.pool_memory is not None:
            return -(-self.options.machine.pool_memory // size)
        parts = (part for applied in self._of_pools for part in applied.answer.parts)
        kinds = {kind for part in parts for kind in part.kinds}
        used = memory.peak(*kinds).resident
        most = max(place.threads for place in self.placements)
        arenas = _PAGES_PER_CPU * most if size <= hugepages.PAGE_BYTES else 0
        of_each = hugepages.margin_pages(size) + arenas
        return int(-(-used * _POOL_MARGIN // size)) + of_each * max(1, memory.processes)


@contextmanager
def prepared_together(several: Sequence[ProgramRuns], session: Trials) -> Iterator[None]:
    """Trial runs of all policies of the programs, those of the baselines first.

    The settings of the machine are changed once, for what all of them need.
    """
    first = several[0]
    # Trial runs, too, start with the prefetchers set, so that what sets them is undone in any case.
    with first.settings.set_for_all(session.recorder):
        for runs in several:
            runs.try_baseline(session)
        policies = [applied for runs in several for applied in runs.policies.values()]
        switches = {switch for applied in policies for switch in applied.switches}
        pages: dict[int, int] = {}
        for runs in several:
            for size, count in runs.pool_pages().items():
                pages[size] = max(count, pages.get(size, 0))
        with changed_settings(
            session.recorder,
            first.placements,
            thp_policies=switches if first.options.machine.set_thp_sizes else None,
            pool_pages=pages if first.options.machine.reserve else None,
        ):
            session.recorder.save()
            for runs in several:
                runs.try_others(session)
            try:
                yield
            finally:
                differing = [part for runs in several for part in runs.differing_work()]
                known = session.recorder.manifest.differing_work
                session.recorder.note(differing_work=tuple(dict.fromkeys((*known, *differing))))
