"""Several programs in one session: codes of the suites, and builds of each, interleaved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from pagewise.core.manifest import Manifest
from pagewise.core.plan import Step, Subject, order_of_round
from pagewise.core.units import count_text
from pagewise.machine.placement import Placement
from pagewise.session.manifest import new_manifest
from pagewise.session.planner import ComparisonPlanner
from pagewise.session.session import Session, goal_text
from pagewise.session.workload import Outcome, Trials
from pagewise.stack.provenance import software
from pagewise.stack.setup import setup_facts
from pagewise.workloads.program.launch import ProgramLauncher
from pagewise.workloads.program.prepare import Tools, described, entries_of, runs_of, varied_cells
from pagewise.workloads.program.program import Program
from pagewise.workloads.program.workload import ProgramOptions, ProgramRuns, prepared_together


@dataclass(frozen=True)
class Named:
    """A program, and the name of its build if several builds are compared."""

    program: Program
    build: str = ""

    @property
    def key(self) -> str:
        """Its name in the session: `npb_cg_b/tuned`."""
        return f"{self.program.name}/{self.build}" if self.build else self.program.name


@dataclass(frozen=True)
class _Launcher:
    """Runs each step by the launcher of its program."""

    by_module: Mapping[str, ProgramLauncher]

    def run(self, step: Step) -> Outcome:
        """Runs the program once."""
        return self.by_module[step.cell.measured.module].run(step)


@dataclass(frozen=True)
class SeveralRuns:
    """The runs of several programs; the builds of a code are configurations of one subject."""

    options: ProgramOptions
    programs: Sequence[ProgramRuns]
    subjects: list[Subject]
    placements: list[Placement]

    @property
    def planner(self) -> ComparisonPlanner:
        """Every configuration of every program once per round."""
        by_module = {module: runs for runs in self.programs for module in runs.policies}
        return ComparisonPlanner(
            self.subjects,
            self.options.runs.seed,
            self.options.runs.aa,
            starts=lambda step: by_module[step.cell.measured.module].is_available(step),
        )

    def watched_files(self) -> dict[str, tuple[Path, ...]]:
        """The files of each program, by module."""
        return {module: files for runs in self.programs for module, files in runs.watched_files().items()}

    def launcher(self, scratch: Path) -> _Launcher:
        """Launches the programs; they share the scratch folder because one runs at a time."""
        return _Launcher(
            {
                module: launcher
                for runs in self.programs
                for launcher in [runs.launcher(scratch)]
                for module in runs.policies
            }
        )

    def prepared(self, session: Trials) -> AbstractContextManager[None]:
        """Trial runs of all programs."""
        return prepared_together(self.programs, session)


def prepare_several(
    options: ProgramOptions, several: Sequence[Named], console: Console, began: float
) -> Session:
    """Prepares a comparison of several programs; nothing is run or written yet.

    Raises SetupError or SelectionError.
    """
    tools = Tools.find(options, console)
    programs = [
        runs_of(options, each.program, tools, console, key=each.key, build=each.build) for each in several
    ]
    subjects = varied_cells(_merged([runs.subject for runs in programs]), options, tools.places)
    runs = SeveralRuns(options, [_with_cells(one, subjects) for one in programs], subjects, tools.places)
    console.print(_intended(runs), highlight=False, soft_wrap=True)
    return Session.of(options, runs, _manifest(options, programs, subjects, tools), console, began)


def _manifest(
    options: ProgramOptions, programs: Sequence[ProgramRuns], subjects: Sequence[Subject], tools: Tools
) -> Manifest:
    """The manifest; `programs` have their configurations without what only runs have."""
    first = programs[0]
    return new_manifest(
        replace(options, baseline=first.baseline),
        "programs",
        entries=[entry for runs in programs for entry in entries_of(runs)],
        subjects=subjects,
        placements=tools.places,
        tree=first.program.binary.program.parent,
        environment=None,
        host=tools.host,
        facts=setup_facts(),
        software=software(tools.hyperfine),
        suites={runs.key: described(runs) for runs in programs},
    )


def _merged(subjects: Sequence[Subject]) -> list[Subject]:
    """A subject for each code with the configurations of all its builds; the first has the baseline."""
    by_name: dict[str, Subject] = {}
    for subject in subjects:
        first = by_name.setdefault(subject.kernel.name, subject)
        if first is not subject:
            more = tuple(replace(cell, is_baseline=False) for cell in subject.cells)
            by_name[subject.kernel.name] = replace(first, cells=(*first.cells, *more))
    return list(by_name.values())


def _with_cells(runs: ProgramRuns, subjects: Sequence[Subject]) -> ProgramRuns:
    """The runs with the cells of their program, in all placements."""
    name = runs.subject.kernel.name
    (subject,) = (subject for subject in subjects if subject.kernel.name == name)
    cells = tuple(cell for cell in subject.cells if cell.measured.module in runs.policies)
    return replace(runs, subject=replace(subject, cells=cells))


def _intended(runs: SeveralRuns) -> str:
    """What will be run, and which policies are unavailable."""
    options = runs.options
    unavailable = {
        module: failure
        for each in runs.programs
        if not each.program.starts_others
        for module, failure in each.unavailable.items()
    }
    runnable = [
        replace(
            subject, cells=tuple(cell for cell in subject.cells if cell.measured.module not in unavailable)
        )
        for subject in runs.subjects
    ]
    per_round = len(order_of_round(runnable, 1, options.runs.seed, options.runs.aa))
    lines = [f"To measure: {', '.join(str(each.key) for each in runs.programs)}."]
    lines.append(
        f"{count_text(options.runs.rounds, 'round')} of {count_text(per_round, 'run')}, and "
        f"{count_text(sum(len(subject.cells) for subject in runnable), 'trial run')} before them."
        f"{goal_text(options)}"
    )
    lines += [f"unavailable: {module}: {failure.message}" for module, failure in unavailable.items()]
    return "\n".join(lines)
