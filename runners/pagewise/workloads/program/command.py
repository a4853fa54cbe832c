"""From the options of `pagewise compare -- PROGRAM` and `pagewise list policies` to a session or a list."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from rich.text import Text

from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.page_policy import size_name
from pagewise.core.text import identifier
from pagewise.core.units import bytes_text
from pagewise.machine.host import read_host, thp_size
from pagewise.session.session import Session
from pagewise.stack.binary import Binary, examine
from pagewise.workloads.program.applied import AppliedPolicy, PolicyLauncher
from pagewise.workloads.program.output import distinct, parse_check, parse_metric
from pagewise.workloads.program.policy import DEFAULT, PARTS, meaning
from pagewise.workloads.program.prepare import prepare
from pagewise.workloads.program.production import find_launcher
from pagewise.workloads.program.program import WITHOUT_CASE, Program, Relation, checked_input
from pagewise.workloads.program.service import Service
from pagewise.workloads.program.suite import (
    ProgramBuild,
    SuiteCode,
    SuiteFile,
    find_code,
    find_program,
    known_codes,
    parse_builds,
    read_code,
)
from pagewise.workloads.program.workload import ProgramOptions


def prepare_command(options: ProgramOptions, console: Console) -> Session:
    """The comparison that the options ask for. Raises SelectionError, SetupError, RefusedError."""
    codes, builds = _codes(options), parse_builds(options.builds)
    if len(codes) < 2 and not builds and not any(code.part.relative_to for code in codes):
        programs = [_program(options, codes[0] if codes else None, console)]
    else:
        programs = _builds_of(options, codes, builds, console)
    name = programs[0].name if len(codes) < 2 else "suites"
    return prepare(_complete(options, name, codes), programs, console)


def _codes(options: ProgramOptions) -> list[SuiteCode]:
    """The codes and cases that the options name. Raises SelectionError, FormatError."""
    cases = [read_code(file.absolute(), option=f"--case {file}") for file in options.cases]
    return [*map(find_code, options.suite), *cases]


def _builds_of(
    options: ProgramOptions, codes: Sequence[SuiteCode], builds: Sequence[ProgramBuild], console: Console
) -> list[Program]:
    """Each build of each code, and what they are relative to. Raises SelectionError, SetupError."""
    if options.command or not codes:
        raise SelectionError(
            "several programs are codes of --suite or files of --case, each with its own input",
            where="--suite, --case, --build",
            remedy="compare --suite hpcc,npb; or one program after --, without --build",
        )
    others = [(code, find_code(code.part.relative_to)) for code in codes if code.part.relative_to]
    every = {code.label: (code, options, builds or (None,)) for code in codes}
    for code, other in others:
        _check_targets(code, other)
        elsewhere = replace(options, environment=None, modules=None)
        every.setdefault(other.label, (other, elsewhere, (None,)))
    programs = {
        label: [_program(where, code, console, build) for build in of_code]
        for label, (code, where, of_code) in every.items()
    }
    if service := next((code for code, *_ in every.values() if code.part.service), None):
        raise SelectionError(
            f"{service.title} is a service", where=service.option, remedy="compare it alone, without --build"
        )
    if not options.policies and len({code.part.policies for code in codes}) > 1:
        raise SelectionError(
            "these codes have different page policies by default", where="--suite", remedy="name --policies"
        )
    for code, other in others:
        relation = Relation(programs[other.label][0].key, code.targets)
        programs[code.label] = [replace(each, relation=relation) for each in programs[code.label]]
    return [each for of_code in programs.values() for each in of_code]


def _check_targets(code: SuiteCode, other: SuiteCode) -> None:
    """Raises FormatError for a metric with a target that the other code does not have."""
    known = {metric.metric for metric in other.metrics}
    for metric in (each.metric for each in code.metrics):
        if metric.field in code.targets and metric not in known:
            raise FormatError(
                f"{other.name} has no metric {metric.label} [{metric.unit}, {metric.better}]",
                where=code.file,
                remedy="name a metric that both codes have",
            )


def single_program(options: ProgramOptions, console: Console) -> tuple[ProgramOptions, Program]:
    """The options with their defaults and the program, which is not a service.

    Raises SelectionError, SetupError.
    """
    codes = _codes(options)
    if len(codes) > 1:
        raise SelectionError(
            "this command takes one program",
            where="--suite, --case",
            remedy="name one, or use pagewise compare",
        )
    for code in codes:
        if code.part.service is not None:
            raise SelectionError(
                f"{code.title} is a service",
                where=code.option,
                remedy=f"pagewise compare {code.option}; only compare measures services",
            )
    program = _program(options, codes[0] if codes else None, console)
    return _complete(options, program.name, codes), program


def _complete(options: ProgramOptions, name: str, codes: Sequence[SuiteCode]) -> ProgramOptions:
    """The options with the defaults of the result's name and of the page policies."""
    return replace(
        options.with_defaults_of_name(name),
        policies=options.policies or (codes[0].part.policies if codes else ()),
    )


@dataclass(frozen=True)
class SurveyedPolicy:
    """A page policy, and why it is unavailable (`unavailable_reason`)."""

    policy: str
    meaning: str
    unavailable_reason: str | None
    remedy: str | None


@dataclass(frozen=True)
class SurveyDocument:
    """Which page policies a program can have here (list policies --json)."""

    schema: Literal["pagewise.survey/1"]
    program: str | None
    starts_others: Annotated[bool, "a script or launcher: the programs that it starts decide"]
    policies: tuple[SurveyedPolicy, ...]
    suites: tuple[str, ...]
    default: tuple[str, ...]


def survey(options: ProgramOptions, console: Console) -> tuple[SurveyDocument, Binary | None]:
    """The policies that the options name, or all, and the program. Raises SelectionError, SetupError."""
    if not (options.command or options.suite or options.cases):
        rows = tuple(SurveyedPolicy(part, meaning(part), None, None) for part in PARTS)
        return SurveyDocument("pagewise.survey/1", None, False, rows, tuple(known_codes()), DEFAULT), None
    _, program = single_program(options, console)
    launcher, host = PolicyLauncher(find_launcher(), options.machine.provided), read_host()
    binary = launcher.examine(program.binary, program.environment)
    sizes = {
        "thp": sorted(int(name[:-2]) * 1024 for name in (host.thp.sizes if host.thp else ())),
        "pool": [pool.page_bytes for pool in host.pools],
    }
    further = [
        f"{name}:{size_name(size)}"
        for name, part in PARTS.items()
        if part.size and "heap" in part.targets
        for size in sizes[part.source]
        if (part.source, size) != ("thp", thp_size())
    ]
    names = options.policies or dict.fromkeys((*DEFAULT, *PARTS, *further))
    rows = tuple(
        SurveyedPolicy(
            applied.answer.policy,
            meaning(applied.answer.policy),
            getattr(applied.unavailable, "message", None),
            getattr(applied.unavailable, "remedy", None),
        )
        for applied in (AppliedPolicy(name, launcher, binary, program.environment) for name in names)
    )
    path, starts = str(binary.program), program.starts_others
    return SurveyDocument("pagewise.survey/1", path, starts, rows, tuple(known_codes()), DEFAULT), binary


def print_survey(document: SurveyDocument, binary: Binary | None, console: Console) -> None:
    """Prints the policies; without a program how they are joined, and what else can be named."""
    if binary is not None:
        sizes = f"text {bytes_text(binary.elf.text_bytes)}, .bss {bytes_text(binary.elf.zeroed_bytes)}"
        console.print(f"{binary.program}: {binary.text}; {sizes}", soft_wrap=True)
    if document.starts_others:
        console.print("It starts other programs, which decide what is available when they are measured.")
    for row in document.policies:
        style, text = "bold green", row.meaning
        if row.unavailable_reason is not None:
            style, text = "bold yellow", f"unavailable: {row.unavailable_reason}"
            text += "" if row.remedy is None else f"\n{'':<17}remedy: {row.remedy}"
        console.print(Text.assemble((f"{row.policy:<17}", style), text), soft_wrap=True)
    if binary is None:
        console.print(
            "Join them with +, as in reuse+thp; some take a size: thp:64k, hugetlbfs:1g.\n"
            f"Known codes (--suite): {', '.join(document.suites) or 'none'}.\n"
            "Your own (--case): `pagewise list case` prints an example of such a file.\n"
            f"Default: {', '.join(DEFAULT)}. Name a program after -- to list what is available to it.",
        )


def _program(
    options: ProgramOptions, code: SuiteCode | None, console: Console, build: ProgramBuild | None = None
) -> Program:
    """The program that the options name, examined. Raises SelectionError, SetupError, FormatError."""
    command, environment, folder = options.command, dict(os.environ), None
    if code is not None and not command:
        path, environment, place = find_program(code, options.environment, options.modules, build)
        console.print(f"{code.title}: {path} (by {place})", soft_wrap=True)
        file = Path(path).absolute()
        folder = file.parent
        command = (*code.part.start, str(file), *code.with_folder(folder).arguments)
    binary = examine(command[0], environment)
    name = code.label if code else binary.program.name
    code = code or SuiteCode(binary.program, "", WITHOUT_CASE, "", (), ())
    part = code.with_folder(folder or binary.program.parent)
    service = _service(code, part, environment)
    if service is not None and options.where.ranks:
        raise SelectionError("a service has no MPI ranks", where="--ranks", remedy="omit --ranks")
    is_fresh = service or part.setup or part.input or part.inputs or part.reads
    return Program(
        name=identifier(name),
        command=command,
        binary=binary,
        environment=environment,
        folder=None if is_fresh else Path.cwd(),
        case=part,
        inputs=tuple(checked_input(code.file.parent / name) for name in code.part.inputs),
        metrics=distinct([*map(parse_metric, options.checked.metrics), *code.metrics]),
        checks=(*map(parse_check, options.checked.checks), *code.checks),
        service=service,
        build="" if build is None else build.name,
    )


def _service(code: SuiteCode, part: SuiteFile, environment: Mapping[str, str]) -> Service | None:
    """How the program of a case is loaded, None if it does not serve. Raises SelectionError."""
    if part.service is None:
        return None
    first, *rest = shlex.split(part.service.load) or [""]
    program = shutil.which(first, path=environment.get("PATH"))
    if program is None:
        raise SelectionError(f"there is no program {first!r}", where=code.file, remedy=code.obtain)
    load = (str(Path(program).absolute()), *rest)
    return Service(load, part.service.ready, part.setup, part.service.fill)
