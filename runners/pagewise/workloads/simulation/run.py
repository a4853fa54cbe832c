"""`pagewise simulate`: one program under the tracer for each page policy."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from pagewise.core.environment import without_influences
from pagewise.core.errors import PagewiseError, RefusedError, SelectionError
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.record import Record
from pagewise.core.record_parts import BuildReport
from pagewise.core.result import utc_text
from pagewise.core.suggestions import choose_of, nearest
from pagewise.stack.binary import files_of
from pagewise.stack.files import Watch
from pagewise.stack.paths import project_root
from pagewise.stack.setup import setup_facts
from pagewise.workloads.simulation.build import PLUGIN_TARGET, Build, kernels_of
from pagewise.workloads.simulation.figures import simulated_record
from pagewise.workloads.simulation.geometry import Geometry, find_geometry
from pagewise.workloads.simulation.tracer import (
    PAGES,
    PagesUnavailableError,
    Program,
    Tracer,
    find_program,
    find_tracer,
    trace,
)

#: Policies that no program is told: which pages addresses lie on is then assumed.
ASSUMED = PAGES[1:]
AS_IT_IS = "as it is"
_DEFAULT = ("none", "thp")
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Options:
    """What the command line asked for; see its help. No policies: those that the subject has by default."""

    geometry: str
    policies: tuple[str, ...]
    compiler: str
    build: Path | None
    limit: float


@dataclass(frozen=True)
class Subject:
    """What is traced. `ours`: it has page policies and writes records."""

    name: str
    program: Program
    arguments: tuple[str, ...]
    ours: bool


@dataclass(frozen=True)
class Modelling:
    """A subject, the machine that it is modelled on, with what, and the runs to make: one a policy."""

    options: Options
    geometry: Geometry
    subject: Subject
    tracer: Tracer
    plugin: Path
    policies: tuple[str, ...]

    def record(self, policy: str) -> Record:
        """Runs the subject under one policy. Raises PagesUnavailableError and other errors of ours."""
        subject, assumed = self.subject, policy in ASSUMED
        told = "none" if assumed else policy
        arguments = list(subject.arguments)
        if subject.ours:
            arguments += ["--threads", "1", "--pages", told]
        with tempfile.TemporaryDirectory(prefix="pagewise-model-") as scratch:
            done = trace(
                self.tracer,
                self.plugin,
                self.geometry,
                subject.program,
                arguments,
                scratch=Path(scratch),
                pages=policy if assumed else PAGES[0],
                without_thp=subject.ours and told == "none",
                records=subject.ours,
                limit=self.options.limit,
                # Of a kernel its module and options decide all; a user's program runs as it would by itself.
                environment=without_influences(os.environ) if subject.ours else os.environ,
            )
        record = done.record if done.record is not None else _foreign(subject.name)
        return simulated_record(record, done.modelled, self.tracer.name)


def prepare(options: Options, command: Sequence[str], console: Console) -> Modelling:
    """Finds or builds all that is needed, and checks it. Raises errors of ours."""
    geometry = find_geometry(options.geometry)
    root = project_root()
    build = Build.of_checkout(root, options.compiler)
    if options.build is not None:
        build = replace(build, folder=options.build)
    named, *arguments = command
    kernel = named.removeprefix("pw-")
    foreign = "/" in named or (kernel not in kernels_of(root) and build.program(kernel) is None)
    if foreign:
        if "/" not in named:
            _refuse_unknown(kernel, root)
        program, targets = find_program(named), [PLUGIN_TARGET]
        find_tracer(program.machine)
    else:
        targets = [f"pw-{kernel}", PLUGIN_TARGET]
    if options.build is None:
        find_tracer("x86_64")
        with console.status(f"building {', '.join(targets)} for the tracer ..."):
            build.make(targets, setup_facts())
    if not foreign:
        built = build.program(kernel)
        if built is None:
            raise SelectionError(
                f"this build has no program of {kernel}",
                where=build.folder,
                remedy=f"build it there: ninja pw-{kernel}; or leave --build out",
            )
        program = find_program(str(built))
        arguments = arguments or _smoke(root, kernel)
    if not build.plugin.is_file():
        raise SelectionError(
            "this build has no model", where=build.folder, remedy="configure it with -DPAGEWISE_MODEL=ON"
        )
    ours = not foreign or (program.marked and program.file.name.startswith("pw-"))
    name = program.file.name.removeprefix("pw-") if ours else program.file.name
    subject = Subject(name, program, tuple(arguments), ours)
    tracer = find_tracer(program.machine)
    return Modelling(options, geometry, subject, tracer, build.plugin, _runs(options.policies, ours))


def model(modelling: Modelling, console: Console) -> tuple[dict[str, Record], dict[str, PagewiseError]]:
    """The record of each policy; and why others are unavailable, which is no fault of the program.

    Raises RefusedError when the program changed in between: the policies would not be those of one program.
    """
    program = modelling.subject.program.file
    watch = Watch({AS_IT_IS: (program, *files_of(program, os.environ), modelling.plugin)})
    records: dict[str, Record] = {}
    missing: dict[str, PagewiseError] = {}
    for policy in modelling.policies:
        try:
            with console.status(f"{modelling.subject.name}: {policy} ..."):
                records[policy] = modelling.record(policy)
        except PagesUnavailableError as fault:
            missing[policy] = fault
        if changed := watch.verify().get(AS_IT_IS):
            raise RefusedError(
                f"the program changed while it was simulated: {', '.join(map(str, changed))}",
                where=program,
                remedy="simulate it again when nothing rebuilds or replaces it",
            )
    return records, missing


def _runs(policies: Sequence[str], ours: bool) -> tuple[str, ...]:
    """The policies to run under: a program that is not ours can be told none, they are only assumed."""
    if ours:
        return tuple(policies) or _DEFAULT
    for policy in policies:
        if policy not in ASSUMED:
            raise SelectionError(
                f"a program of your own is modelled as it runs, and cannot be told the page policy {policy}",
                where="--policies",
                remedy=f"{choose_of(policy, ASSUMED)}; or measure others: pagewise compare -- PROGRAM",
            )
    return (AS_IT_IS, *policies)


def _foreign(name: str) -> Record:
    """The record of a program that writes none."""
    unknown = BuildReport(compiler=_UNKNOWN, hugepages=_UNKNOWN, prefetch=_UNKNOWN, stores=_UNKNOWN)
    return Record(kernel=name, started=utc_text(), status="ok", configuration=unknown)


def _smoke(root: Path, kernel: str) -> list[str]:
    """The small arguments of the kernel's description: a traced run at the default size takes too long."""
    for room in ("micro", "mini"):
        file = root / "kernels" / room / kernel / "kernel.yaml"
        if file.is_file():
            described = parse_yaml(read_file(file))
            return [str(one) for one in described.get("smoke", {}).get("arguments", [])]
    return []


def _refuse_unknown(kernel: str, root: Path) -> None:
    known = kernels_of(root)
    near = nearest(kernel, known)
    raise SelectionError(
        f"no kernel is called {kernel}",
        where=root / "kernels",
        remedy=(f"nearest: {', '.join(near)}; " if near else "")
        + "a program of your own is named by its path",
    )
