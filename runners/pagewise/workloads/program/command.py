"""What `pagewise compare -- PROGRAM` does with its options, before anything is measured."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pagewise.core.errors import SelectionError
from pagewise.core.page_policy import size_name
from pagewise.core.units import parse_bytes
from pagewise.machine.host import read_host
from pagewise.session.session import Session
from pagewise.workloads.program.launch import Program
from pagewise.workloads.program.options import ProgramOptions
from pagewise.workloads.program.output import distinct, parse_check, parse_metric
from pagewise.workloads.program.policy import DEFAULT, PARTS, Lack, Policy, parse_policy
from pagewise.workloads.program.prepare import (
    look_at_machine,
    memory_line,
    prepare,
    program_of,
    survey,
)
from pagewise.workloads.program.suite import find_code, find_program, known_codes


def prepare_command(chosen: Mapping[str, Any], console: Console, began: float) -> Session:
    """The comparison that the options ask for. Raises SelectionError, SetupError, RefusedError."""
    return prepare(*chosen_program(chosen, console), console, began)


def chosen_program(chosen: Mapping[str, Any], console: Console) -> tuple[ProgramOptions, Program]:
    """The session's options and the program, from a command's options. Raises SelectionError, SetupError."""
    program = _program(chosen, console)
    given = {field.name: chosen[field.name] for field in fields(ProgramOptions) if field.name in chosen}
    given["pool_memory"] = _pool_memory(chosen["pool_memory"])
    given["name"] = chosen["name"] or program.name
    return ProgramOptions(**given), program


def look(
    chosen: Mapping[str, Any], console: Console
) -> tuple[Program | None, list[tuple[Policy, Lack | None]]]:
    """The program, and each policy with why it cannot have it here, or None; without one all policies."""
    if not chosen["command"] and not chosen["suite"]:
        return None, [(parse_policy(part), None) for part in PARTS]
    program = _program(chosen, console)
    machine = look_at_machine(read_host(), chosen["set_thp_sizes"], chosen["reserve"])
    further = [f"thp:{size_name(size)}" for size in sorted(machine.modes) if size != machine.pmd]
    further += [f"hugetlbfs:{size_name(size)}" for size in sorted(machine.free)]
    names = chosen["policies"] or dict.fromkeys((*DEFAULT, "text", "bss", "libhugetlbfs", *further))
    return program, survey(program, tuple(names), machine)


def survey_data(program: Program | None, rows: Sequence[tuple[Policy, Lack | None]]) -> dict[str, Any]:
    """Schema pagewise.survey/1."""
    return {
        "schema": "pagewise.survey/1",
        "program": None if program is None else str(program.binary.program),
        "policies": [
            {
                "policy": policy.name,
                "meaning": policy.meaning,
                "lack": None if lack is None else lack.reason,
                "remedy": None if lack is None else lack.remedy,
            }
            for policy, lack in rows
        ],
        "suites": list(known_codes()),
        "default": list(DEFAULT),
    }


def print_survey(
    console: Console, program: Program | None, rows: Sequence[tuple[Policy, Lack | None]]
) -> None:
    """Prints the policies; without a program how they are joined, and what else can be named."""
    if program is not None:
        console.print(
            f"{program.binary.program}: {program.binary.text}; {memory_line(program.binary)}",
            highlight=False,
            soft_wrap=True,
        )
    for policy, lack in rows:
        style, text = (
            ("bold green", policy.meaning) if lack is None else ("bold yellow", f"no: {lack.reason}")
        )
        remedy = "" if lack is None or lack.remedy is None else f"\n{'':<15}remedy: {lack.remedy}"
        console.print(Text.assemble((f"{policy.name:<15}", style), text + remedy), soft_wrap=True)
    if program is None:
        console.print(
            "Joined with +, as reuse+thp or text+bss+glibc; thp and hugetlbfs take a size: hugetlbfs:1g.\n"
            f"Known codes (--suite): {', '.join(known_codes()) or 'none'}.\n"
            f"By default: {', '.join(DEFAULT)}. Name a program after -- to learn which it can have.",
            highlight=False,
        )


def _program(chosen: Mapping[str, Any], console: Console) -> Program:
    command = list(chosen["command"])
    if command and command[0] == "--":
        command = command[1:]
    code = None if chosen["suite"] is None else find_code(chosen["suite"])
    environment = dict(os.environ)
    if code is not None and not command:
        program, environment, place = find_program(code, chosen["environment"], chosen["modules"])
        console.print(f"{code.title}: {program} (by {place})", highlight=False, soft_wrap=True)
        command = [program, *code.arguments]
    if not command:
        raise SelectionError(
            "there is no program to compare",
            where="compare",
            remedy="pagewise compare -- ./my_app args",
        )
    metrics = [parse_metric(text) for text in chosen.get("metrics", ())]
    checks = [parse_check(text) for text in chosen["checks"]]
    fresh = bool(chosen["inputs"] or (code and (code.input or code.reads)))
    return program_of(
        command,
        folder=None if fresh else Path.cwd(),
        inputs=chosen["inputs"],
        texts={} if code is None else code.input,
        reads=[*chosen["reads"], *(code.reads if code else ())],
        metrics=distinct([*metrics, *(code.metrics if code else ())]),
        checks=[*checks, *(code.checks if code else ())],
        ok=chosen["ok"] or (code.exit_codes if code else (0,)),
        environment=environment,
        name=None if code is None else code.name,
    )


def _pool_memory(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_bytes(text)
    except ValueError as fault:
        raise SelectionError(str(fault), where="--pool-memory", remedy="write it like 4GiB") from fault
