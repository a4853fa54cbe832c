"""From the options of `pagewise compare -- PROGRAM` and `pagewise list policies` to a session or a list."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.page_policy import size_name
from pagewise.core.record_parts import Failure
from pagewise.core.text import identifier
from pagewise.core.units import bytes_text, parse_bytes
from pagewise.machine.host import read_host, thp_size
from pagewise.session.session import Session
from pagewise.stack.binary import examine
from pagewise.workloads.program.applied import AppliedPolicy
from pagewise.workloads.program.output import distinct, parse_check, parse_metric
from pagewise.workloads.program.policy import DEFAULT, PARTS, meaning
from pagewise.workloads.program.prepare import launcher_for, prepare
from pagewise.workloads.program.program import Program, Relation, check_input
from pagewise.workloads.program.service import Service, parse_ready
from pagewise.workloads.program.several import Named, prepare_several
from pagewise.workloads.program.suite import (
    BIN,
    Build,
    Code,
    find_code,
    find_program,
    known_codes,
    parse_builds,
)
from pagewise.workloads.program.workload import ProgramOptions


def prepare_command(chosen: Mapping[str, Any], console: Console, began: float) -> Session:
    """The comparison that the options ask for. Raises SelectionError, SetupError, RefusedError."""
    codes, builds = [find_code(suite) for suite in chosen["suite"]], parse_builds(chosen["builds"])
    if len(codes) < 2 and not builds and not any(code.relative_to for code in codes):
        single = {**chosen, "suite": chosen["suite"][0] if codes else None}
        return prepare(*chosen_program(single, console), console, began)
    return prepare_several(*_chosen_programs(chosen, codes, builds, console), console, began)


def _chosen_programs(
    chosen: Mapping[str, Any], codes: Sequence[Code], builds: Sequence[Build], console: Console
) -> tuple[ProgramOptions, list[Named]]:
    """The session's options, each build of each code, and the codes that these are relative to.

    Raises SelectionError, SetupError.
    """
    if chosen["command"] or chosen["inputs"] or not chosen["suite"]:
        raise SelectionError(
            "several programs are codes of --suite, each with its own input",
            where="--suite, --build",
            remedy="compare --suite hpcc,npb; or one program after --, without --build",
        )
    elsewhere = {**chosen, "environment": None, "modules": None}
    named: dict[str, list[Named]] = {}
    for code in codes:
        if code.label not in named:
            named[code.label] = [_build(chosen, code, build, console) for build in builds or (None,)]
    for code in codes:
        if code.relative_to is not None:
            other = find_code(code.relative_to)
            _check_targets(code, other)
            if other.label not in named:
                named[other.label] = [_build(elsewhere, other, None, console)]
            relation = Relation(named[other.label][0].key, code.targets)
            named[code.label] = [
                replace(one, program=replace(one.program, relation=relation)) for one in named[code.label]
            ]
    if not chosen["policies"] and len({code.policies for code in codes}) > 1:
        raise SelectionError(
            "these codes have different page policies by default", where="--suite", remedy="name --policies"
        )
    programs = [one for of_code in named.values() for one in of_code]
    name = programs[0].program.name if len(codes) == 1 else "suites"
    return _options(chosen, name, codes[0].policies), programs


def _build(chosen: Mapping[str, Any], code: Code, build: Build | None, console: Console) -> Named:
    """A build of a code, or the only one. Raises SelectionError, SetupError."""
    program = _program({**chosen, "build": build}, code, console)
    if program.service is not None:
        raise SelectionError(
            f"{code.title} is a service", where="--suite", remedy="compare it alone, without --build"
        )
    return Named(program, "" if build is None else build.name)


def _check_targets(code: Code, other: Code) -> None:
    """Raises FormatError for a metric with a target that the other code does not have."""
    known = {(metric.field, metric.unit, metric.better) for metric in other.metrics}
    for metric in code.metrics:
        if metric.field in code.targets and (metric.field, metric.unit, metric.better) not in known:
            raise FormatError(
                f"{other.name} has no metric {metric.label} [{metric.unit}, {metric.better}]",
                where=f"envs/suites/codes/{code.name}.yaml",
                remedy="name a metric that both codes have",
            )


def chosen_program(chosen: Mapping[str, Any], console: Console) -> tuple[ProgramOptions, Program]:
    """The session's options and the program, from a command's options. Raises SelectionError, SetupError."""
    code = _code(chosen)
    program = _program(chosen, code, console)
    return _options(chosen, program.name, code.policies if code else ()), program


def _options(chosen: Mapping[str, Any], name: str, policies: Sequence[str]) -> ProgramOptions:
    """The session's options, with the defaults of its name and page policies."""
    given = {field.name: chosen[field.name] for field in fields(ProgramOptions) if field.name in chosen}
    given["pool_memory"] = _pool_memory(chosen["pool_memory"])
    given["name"] = chosen["name"] or name
    given["policies"] = chosen["policies"] or tuple(policies)
    return ProgramOptions(**given)


@dataclass(frozen=True)
class Survey:
    """Page policies, each with the reason if it is unavailable to the program; without one all policies."""

    program: Program | None
    rows: Sequence[tuple[str, Failure | None]]

    @classmethod
    def of(cls, chosen: Mapping[str, Any], console: Console) -> Survey:
        """The policies that the options name. Raises SelectionError, SetupError."""
        if not chosen["command"] and not chosen["suite"]:
            return cls(None, [(part, None) for part in PARTS])
        program = _program(chosen, _code(chosen), console)
        launcher, host = launcher_for(chosen["set_thp_sizes"], chosen["reserve"]), read_host()
        binary = launcher.examined(program.binary, program.environment)
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
        names = chosen["policies"] or dict.fromkeys((*DEFAULT, *PARTS, *further))
        every = (AppliedPolicy(name, launcher, binary, program.environment) for name in names)
        rows = [(applied.answer.policy, applied.unavailable) for applied in every]
        return cls(replace(program, binary=binary), rows)

    def to_dict(self) -> dict[str, Any]:
        """Schema pagewise.survey/1."""
        return {
            "schema": "pagewise.survey/1",
            "program": None if self.program is None else str(self.program.binary.program),
            "starts_others": self.program is not None and self.program.starts_others,
            "policies": [
                {
                    "policy": policy,
                    "meaning": meaning(policy),
                    "lack": None if unavailable is None else unavailable.message,
                    "remedy": None if unavailable is None else unavailable.remedy,
                }
                for policy, unavailable in self.rows
            ],
            "suites": list(known_codes()),
            "default": list(DEFAULT),
        }

    def print(self, console: Console) -> None:
        """Prints the policies; without a program how they are joined, and what else can be named."""
        if self.program is not None:
            binary = self.program.binary
            sizes = f"text {bytes_text(binary.elf.text_bytes)}, .bss {bytes_text(binary.elf.zeroed_bytes)}"
            console.print(f"{binary.program}: {binary.text}; {sizes}", highlight=False, soft_wrap=True)
            if self.program.starts_others:
                console.print(
                    "It starts other programs, which decide what is available when they are measured."
                )
        for policy, unavailable in self.rows:
            style, text = "bold green", meaning(policy)
            if unavailable is not None:
                style, text = "bold yellow", f"unavailable: {unavailable.message}"
                if unavailable.remedy is not None:
                    text += f"\n{'':<17}remedy: {unavailable.remedy}"
            console.print(Text.assemble((f"{policy:<17}", style), text), soft_wrap=True)
        if self.program is None:
            console.print(
                "Join them with +, as in reuse+thp; some take a size: thp:64k, hugetlbfs:1g.\n"
                f"Known codes (--suite): {', '.join(known_codes()) or 'none'}.\n"
                f"Default: {', '.join(DEFAULT)}. Name a program after -- to list what is available to it.",
                highlight=False,
            )


def _code(chosen: Mapping[str, Any]) -> Code | None:
    return None if chosen["suite"] is None else find_code(chosen["suite"])


def _program(chosen: Mapping[str, Any], code: Code | None, console: Console) -> Program:
    """The program that the options name, examined. Raises SelectionError, SetupError, FormatError."""
    command = list(chosen["command"]) or _words("--service", chosen.get("service") or "")
    if command and command[0] == "--":
        command = command[1:]
    environment, folder = dict(os.environ), None
    if code is not None and not command:
        path, environment, place = find_program(
            code, chosen["environment"], chosen["modules"], chosen.get("build")
        )
        console.print(f"{code.title}: {path} (by {place})", highlight=False, soft_wrap=True)
        command, folder = [*code.start, path, *code.arguments], Path(path).parent
    if code is not None and code.service is not None and "service" not in chosen:
        raise SelectionError(
            f"{code.title} is a service",
            where="--suite",
            remedy=f"pagewise compare --suite {code.name}; only compare measures services",
        )
    if not command:
        raise SelectionError(
            "no program was named", where="compare", remedy="name it after --: compare -- ./my_app args"
        )
    metrics, checks = map(parse_metric, chosen.get("metrics", ())), map(parse_check, chosen["checks"])
    binary = examine(command[0], environment)
    folder = folder or binary.program.parent
    service = _service(chosen, code, folder, environment)
    setup = () if service or not code else _placed(code.setup, folder)
    needs_folder = bool(chosen["inputs"] or service or setup or (code and (code.input or code.reads)))
    if service is not None:
        command = [word.replace(BIN, str(folder)) for word in command]
        if "where" in chosen and chosen["where"].ranks:
            raise SelectionError("a service has no MPI ranks", where="--ranks", remedy="omit --ranks")
    return Program(
        name=identifier(code.label if code else binary.program.name),
        command=tuple(command),
        binary=binary,
        environment=environment,
        folder=None if needs_folder else Path.cwd(),
        inputs=tuple(map(_input, chosen["inputs"])),
        texts=code.input if code else {},
        reads=(*map(_glob, chosen["reads"]), *(code.reads if code else ())),
        metrics=distinct([*metrics, *(code.metrics if code else ())]),
        checks=(*checks, *(code.checks if code else ())),
        ok=tuple(chosen["ok"]) or (code.exit_codes if code else (0,)),
        setup=setup,
        service=service,
    )


def _glob(text: str) -> str:
    """A file that the program writes. Raises SelectionError."""
    try:
        # In a file there are none.
        list(Path(os.devnull).glob(text.lstrip("/")))
    except (ValueError, NotImplementedError) as fault:
        remedy = "name a file, or a glob such as 'out/*.log'"
        raise SelectionError(f"{text!r} names no file: {fault}", where="--read", remedy=remedy) from fault
    return text


def _input(file: Path) -> Path:
    """A file or folder that is copied for each run. Raises SelectionError."""
    try:
        check_input(file)
    except OSError as fault:
        raise SelectionError(
            f"this input cannot be copied: {fault.strerror}",
            where=fault.filename or file,
            remedy="name files and folders that this user can read",
        ) from fault
    return file.absolute()


def _placed(commands: Sequence[str], folder: Path) -> tuple[str, ...]:
    """The commands with the folder of the program."""
    return tuple(command.replace(BIN, str(folder)) for command in commands)


def _service(
    chosen: Mapping[str, Any], code: Code | None, folder: Path, environment: Mapping[str, str]
) -> Service | None:
    """How the program is loaded, None if it does not serve; `folder` is that of the program.

    Raises SelectionError.
    """
    texts = chosen if code is None else code.service
    if texts is None or not texts.get("load"):
        return None
    load, ready = texts["load"].replace(BIN, str(folder)), texts.get("ready")
    setup = _placed(texts.get("setup", ()) if code is None else code.setup, folder)
    fill = _placed(texts.get("fill", ()), folder)
    words = _words("--load", load)
    program = shutil.which(words[0], path=environment.get("PATH"))
    if program is None:
        remedy = "name a program that is installed" if code is None else code.obtain
        raise SelectionError(f"there is no program {words[0]!r}", where="--load", remedy=remedy)
    ready = None if ready is None else ready.replace(BIN, str(folder))
    try:
        parse_ready(ready or "")
    except (ValueError, re.error) as fault:
        raise SelectionError(
            f"{ready!r} is neither tcp:PORT, nor '| command', nor a pattern: {fault}",
            where="--ready",
            remedy="write --ready tcp:6379",
        ) from fault
    return Service((str(Path(program).absolute()), *words[1:]), ready, setup, fill)


def _words(option: str, text: str) -> list[str]:
    """The words of a command, as a shell splits them. Raises SelectionError."""
    try:
        return shlex.split(text)
    except ValueError as fault:
        raise SelectionError(
            f"{text!r} is not a command: {fault}", where=option, remedy="quote its words as for a shell"
        ) from fault


def _pool_memory(text: str | None) -> int | None:
    try:
        return None if text is None else parse_bytes(text)
    except ValueError as fault:
        raise SelectionError(str(fault), where="--pool-memory", remedy="write it like 4GiB") from fault
