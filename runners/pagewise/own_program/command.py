"""What `pagewise run-policies` does with its options, before anything is measured."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pagewise.configuration import size_name
from pagewise.errors import SelectionError
from pagewise.host import read_host
from pagewise.own_program.comparison import (
    ProgramComparison,
    ProgramOptions,
    look_at_machine,
    memory_line,
    prepare,
    program_of,
    survey,
)
from pagewise.own_program.launch import Program
from pagewise.own_program.output import distinct, parse_check, parse_metric
from pagewise.own_program.policy import DEFAULT, MEANINGS, PARTS
from pagewise.own_program.suite import find_code, find_program, known_codes
from pagewise.units import parse_bytes


def prepare_command(chosen: Mapping[str, Any], console: Console, began: float) -> ProgramComparison:
    """The comparison that the options ask for. Raises SelectionError, SetupError, RefusedError."""
    program = _program(chosen, console)
    options = ProgramOptions(
        environment=chosen["environment"] or "",
        modules=chosen["modules"],
        kernels=(),
        configurations=(),
        rounds=chosen["rounds"],
        threads=chosen["threads"] or 0,
        reserve=chosen["reserve"],
        baseline=chosen["baseline"],
        sweep=False,
        seed=chosen["seed"],
        name=chosen["name"] or program.name,
        results=chosen["results"],
        limit=chosen["limit"],
        set_thp_sizes=chosen["set_thp_sizes"],
        aa=chosen["aa"],
        until=chosen["until"],
        budget=chosen["budget"],
        resume=chosen["resume"],
        policies=chosen["policies"],
        interval=chosen["interval"],
        enough=chosen["enough"],
        pool_memory=_pool_memory(chosen["pool_memory"]),
    )
    return prepare(options, program, console, began)


def print_survey(console: Console, chosen: Mapping[str, Any]) -> None:
    """Tells of each policy whether the program can have it here; without a program all policies."""
    if not chosen["command"] and not chosen["suite"]:
        for part in PARTS:
            console.print(Text.assemble((f"{part:<13}", "bold"), MEANINGS[part]))
        console.print(
            "Joined with +, as reuse+thp or text+bss+glibc; thp and hugetlbfs take a size: hugetlbfs:1g.\n"
            f"Known codes (--suite): {', '.join(known_codes()) or 'none'}.\n"
            f"By default: {', '.join(DEFAULT)}. Name a program after -- to learn which it can have.",
            highlight=False,
        )
        return
    program = _program(chosen, console)
    machine = look_at_machine(read_host(), chosen["set_thp_sizes"], chosen["reserve"])
    console.print(
        f"{program.binary.program}: {program.binary.text}; {memory_line(program.binary)}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    further = [f"thp:{size_name(size)}" for size in sorted(machine.modes) if size != machine.pmd]
    further += [f"hugetlbfs:{size_name(size)}" for size in sorted(machine.free)]
    names = chosen["policies"] or (*DEFAULT, "text", "bss", "libhugetlbfs", *further)
    for policy, lack in survey(program, names, machine):
        if lack is None:
            console.print(Text.assemble((f"{policy.name:<15}", "bold green"), policy.meaning), soft_wrap=True)
            continue
        remedy = "" if lack.remedy is None else f"\n{'':<15}remedy: {lack.remedy}"
        console.print(
            Text.assemble((f"{policy.name:<15}", "bold yellow"), f"no: {lack.reason}{remedy}"), soft_wrap=True
        )


def _program(chosen: Mapping[str, Any], console: Console) -> Program:
    command = list(chosen["command"])
    if command and command[0] == "--":
        command = command[1:]
    code = None if chosen["suite"] is None else find_code(chosen["suite"])
    environment = dict(os.environ)
    if code is not None and not command:
        program, environment, place = find_program(code, chosen["environment"], chosen["modules"])
        console.print(f"{code.title}: {program} (by {place})", highlight=False, markup=False, soft_wrap=True)
        command = [program, *code.arguments]
    if not command:
        raise SelectionError(
            "there is no program to compare",
            where="run-policies",
            remedy="pagewise run-policies -- ./my_app args",
        )
    metrics = [parse_metric(text) for text in chosen["metrics"]]
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
        raise SelectionError(str(fault), where="--pool-memory") from fault
