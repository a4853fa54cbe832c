"""Simulations as a workload of a session: one program, and a configuration for each page policy."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console

import pagewise
from pagewise.core.benchmark import Benchmark, Metric
from pagewise.core.configuration import Configuration
from pagewise.core.environment import without_influences
from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.kernel import read_source
from pagewise.core.manifest_parts import SimulationPart
from pagewise.core.plan import Cell, Step, Subject
from pagewise.core.reading import read_end
from pagewise.core.record import Record, Status
from pagewise.core.record_parts import Failure
from pagewise.core.result import utc_text
from pagewise.core.structure import to_data
from pagewise.core.text import choose_of, identifier
from pagewise.machine.placement import Placement, placements
from pagewise.session.launch import LONGEST_OUTPUT, about_run, build_of, failed_record
from pagewise.session.options import SessionOptions
from pagewise.session.recorder import Recorder, new_manifest
from pagewise.session.session import Session
from pagewise.session.settings import MachineSettings, Needs
from pagewise.session.standard_input import NO_INPUT, StandardInput, take_input
from pagewise.session.workload import Launcher, Outcome, Planner, WithoutTrials
from pagewise.stack.binary import files_of
from pagewise.stack.catalog import Entry
from pagewise.stack.files import sha256
from pagewise.stack.paths import project_root
from pagewise.stack.setup import setup_facts
from pagewise.workloads.simulation.build import COSTS, PLUGIN, PRELOAD, TracedBuild
from pagewise.workloads.simulation.figures import simulated_record
from pagewise.workloads.simulation.forecast import with_forecast
from pagewise.workloads.simulation.geometry import Geometry, Sector, find_geometry
from pagewise.workloads.simulation.node import KERNEL, NODE, kept_file, node_geometry
from pagewise.workloads.simulation.sampled import sample
from pagewise.workloads.simulation.tracer import (
    OUTPUT,
    PAGES,
    PagesUnavailableError,
    ProgramRun,
    TracedProgram,
    Tracer,
    find_file,
    find_program,
    find_tracer,
    native_seconds,
    trace,
)

#: Policies that no program implements: the simulator assumes the pages of each address.
ASSUMED = PAGES[1:]
#: The policy of a program that is not ours: it runs unchanged.
UNCHANGED = "as it is"
_DEFAULT = ("none", "thp")
_NATIVE_RUNS = 2  # for a forecast; the fastest counts


@dataclass(frozen=True, kw_only=True)
class SimulationOptions(SessionOptions):
    """What is simulated: a kernel with its arguments, or a program; see `pagewise simulate --help`.

    functions, origins: how many the report shows; origins None: not recorded. measures: compare them, too.
    fast: sample the time instead of simulating.
    sector: each a sector of the caches as text; every policy is simulated without and with all of them.
    """

    kernel: str | None = None
    arguments: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    geometry: str
    policies: tuple[str, ...] = ()
    compiler: str = "gcc"
    build: Path | None = None
    functions: int = 5
    sector: tuple[str, ...] = ()
    origins: int | None = None
    measures: bool = False
    fast: bool = False


@dataclass(frozen=True)
class Simulator:
    """What simulates a program."""

    geometry: Geometry
    tracer: Tracer
    plugin: Path


@dataclass(frozen=True)
class TraceTarget:
    """The traced program, and what traces it; without a simulator, its time is sampled.

    title: the kernel's or program's name. is_kernel: it has page policies and writes records. given: a
    program's standard input. preload: the library that reports allocations, where origins are recorded.
    """

    title: str
    program: TracedProgram
    arguments: tuple[str, ...]
    is_kernel: bool
    simulator: Simulator | None
    sectors: tuple[Sector, ...] = ()
    given: StandardInput = NO_INPUT
    preload: Path | None = None

    @property
    def name(self) -> str:
        """The name of the kernel or program."""
        return identifier(self.title)

    @property
    def sector_text(self) -> str:
        """All sectors as one text."""
        return " ".join(sector.text for sector in self.sectors)


@dataclass(frozen=True)
class SimulationPlanner(Planner):
    """Every policy once, in the order in which they were named: simulations do not scatter."""

    subject: Subject

    def steps_of_round(self, number: int, records: Sequence[Record]) -> list[Step]:
        """One run for each policy."""
        return [
            Step(self.subject.benchmark, cell, "simulate", number, position)
            for position, cell in enumerate(self.subject.cells, start=1)
        ]


@dataclass(frozen=True)
class TraceLauncher(Launcher):
    """Runs the program in the emulator. `limit`: seconds per run; `scratch`: folder for temporary files."""

    target: TraceTarget
    limit: float
    scratch: Path

    def run(self, step: Step) -> Outcome:
        """Simulates one policy. What goes wrong is in the record."""
        started, began = datetime.now(timezone.utc), time.monotonic()
        output, target = self.scratch / OUTPUT, self.target
        output.unlink(missing_ok=True)
        exit_code = 0
        try:
            record = self._simulate(step, started)
        except (PagesUnavailableError, RefusedError) as fault:
            exit_code = fault.exit_code
            failure = Failure(exit_code, fault.message, fault.remedy)
            status: Status = "pages_unavailable" if isinstance(fault, PagesUnavailableError) else "failed"
            record = failed_record(step, started, status, failure)
        wall = time.monotonic() - began
        run = about_run(step, wall, exit_code, [str(target.program.file), *target.arguments])
        return Outcome([replace(record, run=run)], wall, read_end(output, LONGEST_OUTPUT), [])

    def _simulate(self, step: Step, started: datetime) -> Record:
        target, policy = self.target, step.cell.measured.hugepages
        requested = "none" if policy in ASSUMED else policy
        run = ProgramRun(
            target.program,
            target.arguments + (("--threads", "1", "--pages", requested) if target.is_kernel else ()),
            self.scratch,
            # A kernel depends on nothing but its options; the user's program runs as it would by itself.
            None if target.is_kernel else Path.cwd(),
            self.limit,
            without_influences(os.environ) if target.is_kernel else os.environ,
            target.given.path,
        )
        record = Record(
            kernel=target.name,
            started=utc_text(started),
            status="ok",
            configuration=build_of(step.cell.measured),
        )
        if target.simulator is None:
            assert target.preload is not None
            return simulated_record(record, sample(run, target.preload), None)
        geometry, tracer = target.simulator.geometry, target.simulator.tracer
        sectors = target.sectors if step.cell.measured.sector else ()
        traced = trace(
            tracer,
            target.simulator.plugin,
            # Caches take most of the time, and do not change the TLBs.
            geometry.lines(sectors, caches=target.preload is None),
            run,
            pages=_pages(policy, target.preload is not None),
            without_thp=target.is_kernel and requested == "none",
            records=target.is_kernel,
            preload=target.preload,
        )
        record = simulated_record(traced.record or record, traced.simulated, tracer.name)
        here = target.program.machine == platform.machine()
        if target.preload is None or record.simulated is None or geometry.costs is None or not here:
            return record
        seconds = [max(native_seconds(run)) for _ in range(_NATIVE_RUNS)]
        return replace(record, simulated=with_forecast(record.simulated, geometry.costs, seconds))


@dataclass(frozen=True)
class Simulation(WithoutTrials):
    """One program under several policies."""

    options: SimulationOptions
    target: TraceTarget
    subjects: list[Subject]
    placements: list[Placement]
    planner: SimulationPlanner
    settings: MachineSettings

    def watched_files(self) -> dict[str, tuple[Path, ...]]:
        """The program's files and the simulator, for every policy."""
        program, given = self.target.program.file, self.target.given.watched
        simulator = self.target.simulator
        tools = (self.target.preload, simulator.plugin if simulator is not None else None)
        files = (program, *files_of(program, os.environ), *filter(None, tools), *given)
        return {cell.measured.module: files for cell in self.planner.subject.cells}

    def launcher(self, scratch: Path) -> TraceLauncher:
        """Launches the program in the emulator."""
        return TraceLauncher(self.target, self.options.runs.limit, scratch)

    def needs(self) -> Needs:
        """Nothing."""
        return Needs()


def prepare(options: SimulationOptions, console: Console) -> Session:
    """Finds or builds the program, the simulator and the emulator; nothing is run or written yet.

    Raises SetupError, SelectionError, FormatError, RefusedError.
    """
    target = _target(options, console)
    single = bool(target.sectors) or options.origins is not None
    policies = _policies(options.policies, target.is_kernel, ("none",) if single else _DEFAULT)
    subject = _subject(target, policies, options.compiler)
    simulator = target.simulator
    if simulator is not None:
        text = (
            f"To simulate: {target.name} on {simulator.geometry.title}. Page policies: {', '.join(policies)}."
        )
        if target.sectors:
            text += f" Each without and with sectors: {target.sector_text}."
        console.print(text, soft_wrap=True)
    verb = "simulate" if options.origins is None else "where"
    options = replace(options.with_defaults_of_name(f"{verb}-{target.name}"), baseline=policies[0])
    places = placements()
    manifest = new_manifest(
        options,
        "simulation",
        entries=[Entry(cell.measured, {}, {}) for cell in subject.cells],
        subjects=[subject],
        placements=places,
        tree=target.program.file.parent,
        software={"pagewise": pagewise.__version__, "python": platform.python_version()},
        simulation=SimulationPart(
            None if simulator is None else to_data(simulator.geometry),
            None if simulator is None else simulator.tracer.name,
            options.functions,
            target.given.to_dict(),
            options.origins,
        ),
    )
    planner = SimulationPlanner(subject)
    workload = Simulation(options, target, [subject], places, planner, MachineSettings())
    return Session(options, workload, Recorder(manifest), console)


def _pages(policy: str, origins: bool) -> str:
    """The pages that are simulated. With origins, huge pages are simulated next to base pages."""
    if policy in ASSUMED:
        return policy
    return "base" if origins else PAGES[0]


def _target(options: SimulationOptions, console: Console) -> TraceTarget:
    known = None if options.geometry == NODE else find_geometry(options.geometry)
    root = project_root()
    build = TracedBuild.of_checkout(root, options.compiler)
    if options.build is not None:
        build = replace(build, folder=options.build)
    else:
        build.check_sources()
    if options.fast:
        return _target_of_samples(build, options, console)
    name, *arguments = options.command or (options.kernel or "", *options.arguments)
    kernel = None if options.command or "/" in name else name.removeprefix("pw-")
    file = None if kernel is None else build.description(kernel)
    description = {} if file is None else read_source(file)
    # Several descriptions may share the program of their folder.
    folder = kernel if file is None else file.parent.name
    if folder is None:
        program = find_program(name)
    if options.build is None:
        find_tracer("x86_64" if folder is not None else program.machine)
        targets = [PLUGIN] if folder is None else [PLUGIN, f"pw-{folder}"]
        targets += [] if options.origins is None else [PRELOAD]
        targets += [f"pw-{KERNEL}", COSTS] if known is None and not kept_file().exists() else []
        with console.status(f"building {', '.join(targets)} for the tracer ..."):
            build.make(targets, setup_facts())
    if folder is not None:
        program = find_program(str(build.existing_program(folder)))
        # At the default size, tracing takes too long.
        smoke = description.get("smoke", {}).get("arguments", [])
        arguments = arguments or [str(argument) for argument in smoke]
    if not build.plugin.is_file():
        raise SelectionError(
            "this build has no simulator", where=build.folder, remedy="configure it with -DPAGEWISE_MODEL=ON"
        )
    is_kernel = kernel is not None or (program.marked and program.file.name.startswith("pw-"))
    geometry = known or node_geometry(build.program(KERNEL), build.costs, console)
    sectors = tuple(map(Sector.parse, options.sector))
    geometry.check(sectors)
    tracer = find_tracer(program.machine)
    title = kernel or (program.file.name.removeprefix("pw-") if is_kernel else program.file.name)
    given = NO_INPUT if is_kernel else take_input(console)
    preload = None if options.origins is None else build.preload
    simulator = Simulator(geometry, tracer, build.plugin)
    return TraceTarget(title, program, tuple(arguments), is_kernel, simulator, sectors, given, preload)


def _target_of_samples(build: TracedBuild, options: SimulationOptions, console: Console) -> TraceTarget:
    """A program whose time is sampled, also a script."""
    if options.build is None:
        with console.status(f"building {PRELOAD} ..."):
            build.make([PRELOAD], setup_facts())
    name, *arguments = options.command
    program = TracedProgram(find_file(name), platform.machine(), marked=False)
    given = take_input(console)
    return TraceTarget(program.file.name, program, tuple(arguments), False, None, (), given, build.preload)


def _subject(target: TraceTarget, policies: Sequence[str], compiler: str) -> Subject:
    program = target.program
    first = Configuration.of_program(
        program.file,
        sha256(program.file) or "",
        module=policies[0],
        package=target.name,
        compiler=compiler if target.is_kernel else "unknown",
        hugepages=policies[0],
        target=program.machine,
    )
    cells = []
    for policy in dict.fromkeys(policies):
        measured = replace(first, module=policy, hugepages=policy)
        cells.append(Cell(measured, (measured,), policy == policies[0]))
        if target.sectors:
            named = target.sector_text
            measured = replace(measured, module=f"{policy}, sectors {named}", sector=named)
            cells.append(Cell(measured, (measured,), False))
    benchmark = Benchmark(
        name=target.name,
        group="simulation",
        title=program.file.name,
        summary="A program whose memory accesses are simulated.",
        executable=program.file.name,
        unit="run",
        sensitive_to=("hugepages", "sector") if target.sectors else ("hugepages",),
        metrics=(Metric("l1d_tlb_refill", "L1 DTLB misses", "1", "lower"),),
        arguments=target.arguments,
    )
    return Subject(benchmark, tuple(cells))


def _policies(policies: Sequence[str], is_kernel: bool, default: tuple[str, ...]) -> tuple[str, ...]:
    """The policies to simulate, or the default ones.

    A program that is not ours has no page policy: policies are only assumed.
    """
    if is_kernel:
        return tuple(policies) or default
    for policy in policies:
        if policy not in ASSUMED:
            raise SelectionError(
                f"your program is simulated unchanged, and cannot use the page policy {policy}",
                where="--policies",
                remedy=f"{choose_of(policy, ASSUMED)}; or measure others: pagewise compare -- PROGRAM",
            )
    return (UNCHANGED, *policies)
