"""Plans a comparison of the user's programs under page policies; nothing is run or written yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from pagewise.core.benchmark import Benchmark, Metric
from pagewise.core.configuration import Configuration
from pagewise.core.errors import SelectionError
from pagewise.core.manifest import Manifest, ResultKind
from pagewise.core.plan import Cell, Subject, at_placements, order_of_round
from pagewise.core.record_parts import PEAK_MEMORY
from pagewise.core.units import count_text
from pagewise.machine.placement import placements
from pagewise.session.launch import print_placements
from pagewise.session.recorder import Recorder, new_manifest
from pagewise.session.session import Session, goal_text
from pagewise.session.settings import MachineSettings, in_all_states
from pagewise.session.standard_input import take_input
from pagewise.stack import launcher as of_ranks
from pagewise.stack.binary import files_of
from pagewise.stack.catalog import Entry
from pagewise.stack.provenance import find_hyperfine, software
from pagewise.workloads.program.applied import AppliedPolicy, PolicyLauncher, default_policies
from pagewise.workloads.program.production import find_launcher
from pagewise.workloads.program.program import Program
from pagewise.workloads.program.runs import ProgramRuns
from pagewise.workloads.program.workload import ProgramOptions, Programs

#: The policy for chosen origins of memory, and the variable with their numbers in the selection.
SELECTED, ORIGINS = "where", "PAGEWISE_ORIGINS"
#: The `compiler` of a program that was not built by pagewise.
UNCHANGED = "unchanged binary"
# The metrics of every program.
_METRICS = (
    Metric(PEAK_MEMORY, "Peak memory", "GiB", "lower"),
    Metric("mean_memory_gib", "Mean memory", "GiB", "lower"),
    Metric("page_tables_mib", "Page tables", "MiB", "lower"),
    Metric("system_seconds", "Time in the kernel", "s", "lower"),
    Metric("user_seconds", "Time in the program", "s", "lower"),
)


def prepare(options: ProgramOptions, programs: Sequence[Program], console: Console) -> Session:
    """Prepares a comparison; nothing is run or written yet. Raises SetupError or SelectionError."""
    workload, manifest = arrange(options, programs, "programs", console)
    console.print(_plan_text(workload), soft_wrap=True)
    return Session(options, workload, Recorder(manifest), console)


def arrange(
    options: ProgramOptions, programs: Sequence[Program], kind: ResultKind, console: Console, **further: Any
) -> tuple[Programs, Manifest]:
    """The runs of programs, and the manifest of a session of this kind, with `further` parts.

    Raises SetupError or SelectionError.
    """
    hyperfine, launcher = find_hyperfine(), PolicyLauncher(find_launcher(), options.machine.provided)
    places = placements(options.where)
    print_placements(console, places)
    _check_settings(options.settings, launcher)
    settings, given = MachineSettings.find(options, places), take_input(console)
    every = [_runs_of(options, program, launcher) for program in programs]
    # The manifest has the configurations without what only their runs have.
    plain = _subjects(every)
    by_module = {module: runs for runs in every for module in runs.policies}
    measured = [cell.measured for subject in plain for cell in subject.cells]
    subjects = at_placements(without_equal(in_all_states(plain, options)), [place.name for place in places])
    workload = Programs(options, hyperfine, launcher, places, settings, given, tuple(every), subjects)
    first = every[0]
    manifest = new_manifest(
        replace(options, baseline=first.policies[first.baseline].answer.policy),
        kind,
        entries=[Entry(each, dict(by_module[each.module].program.environment), {}) for each in measured],
        subjects=subjects,
        placements=places,
        tree=first.program.binary.program.parent,
        software=software(hyperfine),
        programs=workload.describe(),
        **further,
    )
    return workload, manifest


def without_equal(subjects: Sequence[Subject]) -> list[Subject]:
    """The subjects; of cells that differ in chosen origins, which their policy does not use, the first."""
    reduced = []
    for subject in subjects:
        cells: dict[tuple[str, ...], Cell] = {}
        for cell in subject.cells:
            uses = SELECTED in cell.measured.hugepages.split("+")
            settings = [each for each in cell.settings.entries if uses or not each.startswith(f"{ORIGINS}=")]
            cells.setdefault((cell.measured.module, *settings), cell)
        reduced.append(replace(subject, cells=tuple(cells.values())))
    return reduced


def _check_settings(settings: Mapping[str, tuple[str, ...]], launcher: PolicyLauncher) -> None:
    """Raises SelectionError for a variable that page policies set."""
    for name, values in settings.items():
        for value in values:
            if launcher.ask("none", launcher.file, {name: value}).settings.removed:
                raise SelectionError(
                    f"{name}={value} is a page policy",
                    where="--vary",
                    remedy="compare page policies with --policies",
                )


def _runs_of(options: ProgramOptions, program: Program, launcher: PolicyLauncher) -> ProgramRuns:
    """The runs of a program in its page policies. Raises SetupError or SelectionError."""
    binary, environment = launcher.examine(program.binary, program.environment), program.environment
    program = replace(program, binary=binary)
    baseline = AppliedPolicy(options.baseline, launcher, binary, environment)
    if baseline.unavailable is not None:
        raise SelectionError(
            f"the baseline {baseline.answer.policy} is unavailable: {baseline.unavailable.message}",
            where="--baseline",
            remedy=baseline.unavailable.remedy,
        )
    names = options.policies or default_policies(baseline, starts_others=program.starts_others)
    every = [baseline, *(replace(baseline, name=name) for name in names)]
    rank_launcher = None
    if options.where.ranks:
        rank_launcher = of_ranks.find_launcher(files_of(binary.program, environment), environment)
    policies = {f"{program.key}/{applied.answer.policy}": applied for applied in every}
    return ProgramRuns(program, policies, rank_launcher)


def _subjects(every: Sequence[ProgramRuns]) -> list[Subject]:
    """A subject for each code with the configurations of all its builds; the first has the baseline."""
    by_name: dict[str, Subject] = {}
    for runs in every:
        name = runs.program.name
        baseline = None if name in by_name else runs.baseline
        subject = by_name.get(name) or Subject(_benchmark(runs.program), ())
        cells = list(subject.cells)
        for module, applied in runs.policies.items():
            measured = Configuration.of_program(
                runs.program.binary.program,
                runs.program.binary.sha256,
                module=module,
                package=name,
                compiler=UNCHANGED,
                hugepages=applied.answer.policy,
                flags=runs.program.build,
            )
            cells.append(Cell(measured, (measured,), module == baseline))
        by_name[name] = replace(subject, cells=tuple(cells))
    return list(by_name.values())


def _benchmark(program: Program) -> Benchmark:
    """The program as sessions compare it."""
    return Benchmark(
        name=program.name,
        group="program",
        title=program.binary.program.name,
        summary=f"The user's own program, unchanged: {program.binary.text}.",
        executable=program.binary.program.name,
        unit="run",
        sensitive_to=("compiler", "hugepages", "flags") if program.build else ("hugepages",),
        metrics=(*(metric.metric for metric in program.metrics), *_METRICS),
        arguments=program.command[1:],
    )


def _plan_text(workload: Programs) -> str:
    """What will be run, and which policies are unavailable."""
    options, by_module = workload.options, workload.by_module
    unavailable = {
        module: failure
        for module, failure in workload.unavailable.items()
        if not by_module[module].program.starts_others
    }
    runnable = [
        replace(
            subject, cells=tuple(cell for cell in subject.cells if cell.measured.module not in unavailable)
        )
        for subject in workload.subjects
    ]
    cells = [cell for subject in runnable for cell in subject.cells]
    policies = dict.fromkeys(cell.measured.hugepages for cell in cells)
    per_round = len(order_of_round(runnable, 1, options.runs.seed, options.runs.aa))
    lines = [
        f"To measure: {runs.program.key}, {runs.program.binary.program} ({runs.program.binary.text})."
        for runs in workload.programs
    ]
    lines.append(
        f"Page policies: {', '.join(policies)}. {count_text(options.runs.rounds, 'round')} of "
        f"{count_text(per_round, 'run')}, and {count_text(len(cells), 'trial run')} before them."
        f"{goal_text(options)}"
    )
    if any(runs.program.starts_others for runs in workload.programs):
        lines.append(
            "A trial run shows which programs a script or launcher starts; they decide which policies are "
            "available."
        )
    lines += [f"unavailable: {module}: {failure.message}" for module, failure in unavailable.items()]
    return "\n".join(lines)
