"""Prepares a comparison of the user's program under page policies; nothing is run or written yet."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from pagewise.core.configuration import Configuration
from pagewise.core.environment import influences
from pagewise.core.errors import SelectionError
from pagewise.core.host import Host
from pagewise.core.kernel import SCHEMA as KERNEL_SCHEMA
from pagewise.core.kernel import Kernel
from pagewise.core.manifest import Kind, Manifest
from pagewise.core.plan import Cell, Subject, order_of_round, placed
from pagewise.core.record_parts import PEAK_MEMORY
from pagewise.core.units import count_text
from pagewise.machine.host import read_host
from pagewise.machine.placement import Placement, placements
from pagewise.session.launch import find_hyperfine, print_placements
from pagewise.session.manifest import new_manifest
from pagewise.session.session import Session, goal_text
from pagewise.session.settings import MachineSettings, in_all_states
from pagewise.session.standard_input import StandardInput, take_input
from pagewise.stack import launcher as of_ranks
from pagewise.stack.binary import files_of
from pagewise.stack.catalog import Entry
from pagewise.stack.provenance import software
from pagewise.stack.setup import setup_facts
from pagewise.workloads.program.applied import AppliedPolicy, Launcher, default_policies
from pagewise.workloads.program.production import find_launcher
from pagewise.workloads.program.program import Program
from pagewise.workloads.program.workload import ProgramOptions, ProgramRuns

#: The `compiler` of a program that was not built by pagewise.
UNCHANGED = "unchanged binary"
# The metrics of every program.
_METRICS = (
    {"field": PEAK_MEMORY, "label": "Peak memory", "unit": "GiB", "better": "lower"},
    {"field": "mean_memory_gib", "label": "Mean memory", "unit": "GiB", "better": "lower"},
    {"field": "page_tables_mib", "label": "Page tables", "unit": "MiB", "better": "lower"},
    {"field": "system_seconds", "label": "Time in the kernel", "unit": "s", "better": "lower"},
    {"field": "user_seconds", "label": "Time in the program", "unit": "s", "better": "lower"},
)


def prepare(options: ProgramOptions, program: Program, console: Console, began: float) -> Session:
    """Prepares a comparison; nothing is run or written yet. Raises SetupError or SelectionError."""
    workload, manifest = arrange(options, program, "program", console)
    console.print(_intended(workload), highlight=False, soft_wrap=True)
    return Session.of(options, workload, manifest, console, began)


def arrange(
    options: ProgramOptions, program: Program, kind: Kind, console: Console, **further: Any
) -> tuple[ProgramRuns, Manifest]:
    """The runs of the program, and the manifest of a session of this kind, with `further` parts.

    Raises SetupError or SelectionError.
    """
    tools = Tools.find(options, console)
    runs = runs_of(options, program, tools, console)
    # The manifest has the configurations without what only their runs have.
    entries = entries_of(runs)
    (subject,) = varied_cells([runs.subject], options, tools.places)
    runs = replace(runs, subject=subject)
    manifest = new_manifest(
        replace(options, baseline=runs.baseline),
        kind,
        entries=entries,
        subjects=[subject],
        placements=tools.places,
        tree=program.binary.program.parent,
        environment=None,
        host=tools.host,
        facts=setup_facts(),
        software=software(tools.hyperfine),
        program=described(runs),
        **further,
    )
    return runs, manifest


@dataclass(frozen=True)
class Tools:
    """What all programs of a session share: stopwatch, launcher, machine, placements, standard input."""

    hyperfine: str
    host: Host
    launcher: Launcher
    places: list[Placement]
    settings: MachineSettings
    given: StandardInput

    @classmethod
    def find(cls, options: ProgramOptions, console: Console) -> Tools:
        """Finds them, and prints the placements. Raises SetupError or SelectionError."""
        hyperfine = find_hyperfine()
        host = read_host()
        launcher = launcher_for(options.machine.set_thp_sizes, options.machine.reserve)
        places = placements(None, options.where)
        if "first-thread" in options.where.memory and not places[0].pinned:
            raise SelectionError(
                "the first thread may run on any NUMA node",
                where="--memory first-thread",
                remedy="bind it: --threads N, --cores N or --cpus",
            )
        print_placements(console, places)
        _check_settings(options.settings, launcher)
        settings = MachineSettings.find(options, places)
        return cls(hyperfine, host, launcher, places, settings, take_input(console))


def launcher_for(set_thp_sizes: bool, reserve: bool) -> Launcher:
    """What starts programs under policies, if the settings of the machine are changed as the user asks.

    Raises SetupError.
    """
    given = {"thp": set_thp_sizes, "pool": reserve}
    return Launcher(find_launcher(), tuple(name for name, is_given in given.items() if is_given))


def runs_of(
    options: ProgramOptions,
    program: Program,
    tools: Tools,
    console: Console,
    *,
    key: str | None = None,
    build: str = "",
) -> ProgramRuns:
    """The runs of a program in its page policies, not yet in several placements.

    key: its name among several programs; build: that of its build. Raises SetupError or SelectionError.
    """
    binary, environment = tools.launcher.examined(program.binary, program.environment), program.environment
    program = replace(program, binary=binary)
    baseline = AppliedPolicy(options.baseline, tools.launcher, binary, environment)
    if baseline.unavailable is not None:
        raise SelectionError(
            f"the baseline {baseline.answer.policy} is unavailable: {baseline.unavailable.message}",
            where="--baseline",
            remedy=baseline.unavailable.remedy,
        )
    names = options.policies or default_policies(baseline, starts_others=program.starts_others)
    every = [baseline, *(replace(baseline, name=name) for name in names)]
    policies = {
        f"{key}/{applied.answer.policy}" if key else applied.answer.policy: applied for applied in every
    }
    launcher = None
    if options.where.ranks:
        launcher = of_ranks.find_launcher(files_of(binary.program, environment), environment)
    subject = _subject(program, policies, build)
    return ProgramRuns(
        options,
        program,
        policies,
        subject,
        tools.places,
        tools.hyperfine,
        console,
        rank_launcher=launcher,
        settings=tools.settings,
        given=tools.given,
        key=key,
    )


def entries_of(runs: ProgramRuns) -> list[Entry]:
    """The configurations of a program, for the manifest."""
    return [Entry(cell.measured, dict(runs.program.environment), {}) for cell in runs.subject.cells]


def varied_cells(
    subjects: Sequence[Subject], options: ProgramOptions, places: Sequence[Placement]
) -> list[Subject]:
    """The subjects in all settings, states of the machine and placements."""
    return placed(in_all_states(subjects, options), [place.name for place in places])


def described(runs: ProgramRuns) -> dict[str, Any]:
    """The program, its policies and what the caller's environment decides, for the manifest."""
    environment = _environment(runs.program, runs.placements[0], next(iter(runs.policies.values())))
    described = _described(runs.program, runs.policies, runs.options)
    if runs.program.relation is not None:
        described |= {"relative_to": asdict(runs.program.relation)}
    return described | {"environment": environment, "standard_input": runs.given.to_dict()}


def _described(
    program: Program, policies: Mapping[str, AppliedPolicy], options: ProgramOptions
) -> dict[str, Any]:
    """The program and its policies for the manifest."""
    return {
        "command": list(program.command),
        "service": None if program.service is None else program.service.to_dict(),
        "setup": list(program.setup) or None,
        "folder": None if program.folder is None else str(program.folder),
        "inputs": [*map(str, program.inputs), *program.texts],
        "reads": list(program.reads),
        **program.binary.to_dict(),
        "metrics": [{**metric.described, **metric.source} for metric in program.metrics],
        "checks": [check.text for check in program.checks],
        "enough_coverage": options.checked.enough,
        "memory_budget": options.checked.memory_budget,
        "sample_interval_seconds": options.checked.interval,
        "policies": [applied.to_dict() for applied in policies.values()],
    }


def _check_settings(settings: Mapping[str, tuple[str, ...]], launcher: Launcher) -> None:
    """Raises SelectionError for a variable that page policies set."""
    for name, values in settings.items():
        for value in values:
            if launcher.ask("none", launcher.file, {name: value}).settings.removed:
                raise SelectionError(
                    f"{name}={value} is a page policy",
                    where="--vary",
                    remedy="compare page policies with --policies",
                )


def _environment(
    program: Program, placement: Placement, baseline: AppliedPolicy
) -> dict[str, dict[str, str]]:
    """What the caller's environment decides about memory, libraries and threads of the runs."""
    given = {name: text for name, text in program.environment.items() if name not in placement.environment}
    none = baseline.launcher.ask("none", baseline.binary.image, given).settings
    passed = {name: none.environment.get(name, text) for name, text in influences(given).items()}
    return {
        "passed": {name: text for name, text in passed.items() if text is not None},
        "removed": dict(none.removed),
    }


def _subject(program: Program, policies: Mapping[str, AppliedPolicy], build: str) -> Subject:
    """The program as a kernel, with a configuration for each policy; the first is the baseline."""
    kernel = Kernel.from_dict(_kernel(program, several=bool(build)), program.binary.program)
    (baseline, applied), *_ = policies.items()
    libraries = " ".join(Path(name).name for name in program.binary.libraries)
    unchanged = Configuration.of_program(
        program.binary.program,
        program.binary.sha256,
        module=baseline,
        package=program.name,
        compiler=UNCHANGED,
        hugepages=applied.answer.policy,
        target=platform.machine(),
        openmp="on" if re.search(r"\blib(g|i)?omp", libraries) else "off",
        papi="on" if "libpapi" in libraries else "off",
        flags=build,
    )
    configurations = [
        replace(unchanged, module=name, hugepages=applied.answer.policy) for name, applied in policies.items()
    ]
    return Subject(kernel, tuple(Cell(one, (one,), one.module == baseline) for one in configurations))


def _kernel(program: Program, *, several: bool) -> dict[str, Any]:
    """The program as a kernel.yaml describes kernels. several: whether it has several builds."""
    return {
        "schema": KERNEL_SCHEMA,
        "name": program.name,
        "group": "program",
        "title": program.binary.program.name,
        "summary": f"The user's own program, unchanged: {program.binary.text}.",
        "executable": program.binary.program.name,
        "program": True,
        "sensitive_to": ["compiler", "hugepages"] if several else ["hugepages"],
        "metrics": [*(metric.described for metric in program.metrics), *_METRICS],
        "compare": {"arguments": list(program.command[1:])},
    }


def _intended(runs: ProgramRuns) -> str:
    """What will be run, and which policies are unavailable."""
    program, subject, options = runs.program, runs.subject, runs.options
    unavailable = {} if program.starts_others else runs.unavailable
    runnable = [cell for cell in subject.cells if cell.measured.module not in unavailable]
    of_round = order_of_round(
        [replace(subject, cells=tuple(runnable))], 1, options.runs.seed, options.runs.aa
    )
    text = f"To measure: {program.binary.program} ({program.binary.text}).\n"
    text += f"Page policies: {', '.join(cell.measured.hugepages for cell in runnable)}. "
    text += f"{count_text(options.runs.rounds, 'round')} of {count_text(len(of_round), 'run')}, "
    text += f"and {count_text(len(runnable), 'trial run')} before them.{goal_text(options)}"
    if program.starts_others:
        text += "\nIts trial run shows which programs it starts; they decide which policies are available."
    for name, failure in unavailable.items():
        text += f"\nunavailable: {name}: {failure.message}"
    return text
