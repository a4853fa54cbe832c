"""Compares the user's program under page policies, as `pagewise compare` does kernels."""

from __future__ import annotations

import ctypes.util
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

import pagewise
from pagewise.core.configuration import Configuration
from pagewise.core.environment import influences
from pagewise.core.errors import SelectionError
from pagewise.core.host import Host
from pagewise.core.kernel import SCHEMA as KERNEL_SCHEMA
from pagewise.core.kernel import Kernel
from pagewise.core.plan import Cell, Subject, order_of_round, placed
from pagewise.core.result import Kind
from pagewise.core.text import identifier
from pagewise.core.units import bytes_text, count_text
from pagewise.machine.host import read, read_host
from pagewise.machine.placement import Placement, placements
from pagewise.session.launch import find_hyperfine, print_placements
from pagewise.session.manifest import new_manifest
from pagewise.session.session import Session, goal_text
from pagewise.stack.binary import Binary, examine
from pagewise.stack.c_code import find_compiler
from pagewise.stack.catalog import Entry
from pagewise.stack.elf import read_elf
from pagewise.stack.provenance import hyperfine_version
from pagewise.stack.setup import setup_facts
from pagewise.workloads.program.launch import UNCHANGED, Program
from pagewise.workloads.program.options import ProgramOptions
from pagewise.workloads.program.output import Pattern
from pagewise.workloads.program.policy import (
    Lack,
    Machine,
    Policy,
    advises,
    default_policies,
    lack,
    parse_policy,
    preloaded_actions,
    removed,
    settings,
)
from pagewise.workloads.program.transparent import pmd_bytes
from pagewise.workloads.program.workload import ProgramRuns

_HUGETLBFS_PLACES = ("/usr/lib/libhugetlbfs.so", "/usr/lib64/libhugetlbfs.so")


def prepare(options: ProgramOptions, program: Program, console: Console, began: float) -> Session:
    """Prepares a comparison; nothing is run or written yet. Raises SetupError or SelectionError."""
    workload, manifest = arrange(options, program, "program", console)
    console.print(_intended(workload), highlight=False, soft_wrap=True)
    return Session.of(options, workload, manifest, console, began)


def arrange(
    options: ProgramOptions, program: Program, kind: Kind, console: Console, **further: Any
) -> tuple[ProgramRuns, dict[str, Any]]:
    """The runs of the program, and the manifest of a session of this kind, with `further` parts.

    Raises SetupError or SelectionError.
    """
    hyperfine = find_hyperfine()
    host = read_host()
    machine = look_at_machine(host, options.set_thp_sizes, options.reserve)
    baseline = parse_policy(options.baseline)
    named = list(map(parse_policy, options.policies or default_policies(program.binary, machine)))
    policies = {policy.name: policy for policy in (*(() if baseline in named else (baseline,)), *named)}
    lacks = {
        name: reason
        for name, policy in policies.items()
        if (reason := lack(policy, program.binary, machine)) is not None
    }
    if baseline.name in lacks:
        raise SelectionError(
            f"the baseline {baseline.name} is unavailable: {lacks[baseline.name].reason}",
            where="--baseline",
            remedy=lacks[baseline.name].remedy,
        )
    places = placements(options.threads, options.where)
    print_placements(console, places)
    (subject,) = placed([_subject(program, policies, baseline.name)], [place.name for place in places])
    manifest = new_manifest(
        replace(options, baseline=baseline.name),
        kind,
        entries={
            cell.measured.module: Entry(cell.measured, dict(program.environment), {})
            for cell in subject.cells
        }.values(),
        subjects=[subject],
        placements=places,
        tree=program.binary.program.parent,
        environment=None,
        host=host,
        facts=setup_facts(),
        software={
            "pagewise": pagewise.__version__,
            "python": platform.python_version(),
            "hyperfine": hyperfine_version(hyperfine),
        },
        program=_about(program, policies, lacks, machine, options)
        | {"environment": _environment(program, places[0], machine)},
        **further,
    )
    workload = ProgramRuns(options, program, policies, machine, lacks, subject, places, hyperfine, console)
    return workload, manifest


def _about(
    program: Program,
    policies: Mapping[str, Policy],
    lacks: Mapping[str, Lack],
    machine: Machine,
    options: ProgramOptions,
) -> dict[str, Any]:
    """What the manifest says of the program and its policies."""
    return {
        "command": list(program.command),
        "folder": None if program.folder is None else str(program.folder),
        "inputs": [*map(str, program.inputs), *program.texts],
        "reads": list(program.reads),
        **program.binary.to_dict(),
        "metrics": [metric.to_dict() for metric in program.metrics],
        "checks": [check.text for check in program.checks],
        "enough_coverage": options.enough,
        "sample_interval_seconds": options.interval,
        "policies": [
            {
                "name": name,
                "meaning": policy.meaning,
                "preloaded": preloaded_actions(policy, machine, program.binary),
                "advised": advises(policy, machine),
                "lack": None if name not in lacks else lacks[name].reason,
            }
            for name, policy in policies.items()
        ],
    }


def _environment(program: Program, placement: Placement, machine: Machine) -> dict[str, dict[str, str]]:
    """What the caller's environment decides about memory, libraries and threads of the runs."""
    given = {name: text for name, text in program.environment.items() if name not in placement.environment}
    gone = removed(given)
    base = settings(parse_policy("none"), machine, given)
    passed = {name: base.get(name, text) for name, text in influences(given).items()}
    return {"passed": {name: text for name, text in passed.items() if text is not None}, "removed": gone}


def look_at_machine(host: Host, settable: bool, reserving: bool) -> Machine:
    """What page policies need to know of this machine."""
    pool = re.search(r"^Hugepagesize:\s+(\d+) kB", read(Path("/proc/meminfo")) or "", re.MULTILINE)
    named = [place for place in _HUGETLBFS_PLACES if Path(place).exists()]
    return Machine.from_host(
        host,
        pmd=pmd_bytes(),
        default_pool=int(pool[1]) * 1024 if pool else 2 << 20,
        settable=settable,
        reserving=reserving,
        compiler=find_compiler() is not None,
        hugetlbfs_library=named[0] if named else ctypes.util.find_library("hugetlbfs"),
        elf_machine=read_elf(Path(sys.executable).resolve()).machine,
    )


def program_of(
    command: Sequence[str],
    *,
    folder: Path | None,
    inputs: Sequence[Path] = (),
    texts: Mapping[str, str] | None = None,
    reads: Sequence[str] = (),
    metrics: Sequence[Pattern] = (),
    checks: Sequence[Any] = (),
    ok: Sequence[int] = (0,),
    environment: Mapping[str, str] = os.environ,
    name: str | None = None,
) -> Program:
    """The program that a command line names, examined. Raises SelectionError."""
    binary = examine(command[0], environment)
    return Program(
        identifier(name or binary.program.name),
        tuple(command),
        binary,
        dict(environment),
        folder,
        tuple(file.absolute() for file in inputs),
        tuple(reads),
        tuple(metrics),
        tuple(checks),
        tuple(ok),
        dict(texts or {}),
    )


def _subject(program: Program, policies: Mapping[str, Policy], base: str) -> Subject:
    kernel = Kernel.from_dict(_kernel(program), program.binary.program)
    first = _configuration(program, base)
    cells = []
    for name in policies:
        measured = replace(first, module=name, hugepages=name)
        cells.append(Cell(measured, (measured,), name == base))
    return Subject(kernel, tuple(sorted(cells, key=lambda cell: not cell.is_baseline)))


def _configuration(program: Program, policy: str) -> Configuration:
    libraries = " ".join(Path(name).name for name in program.binary.libraries)
    return Configuration.of_program(
        program.binary.program,
        program.binary.sha256,
        module=policy,
        package=program.name,
        compiler=UNCHANGED,
        hugepages=policy,
        target=platform.machine(),
        openmp="on" if re.search(r"\blib(g|i)?omp", libraries) else "off",
        papi="on" if "libpapi" in libraries else "off",
    )


def _kernel(program: Program) -> dict[str, Any]:
    """The program as kernels are described."""
    own = [
        {"field": "peak_memory_gib", "label": "Peak memory", "unit": "GiB", "better": "lower"},
        {"field": "system_seconds", "label": "Time in the kernel", "unit": "s", "better": "lower"},
        {"field": "user_seconds", "label": "Time in the program", "unit": "s", "better": "lower"},
    ]
    told = [
        {"field": one.field, "label": one.label, "unit": one.unit, "better": one.better}
        for one in program.metrics
    ]
    return {
        "schema": KERNEL_SCHEMA,
        "name": program.name,
        "group": "program",
        "title": program.binary.program.name,
        "summary": f"The user's own program, unchanged: {program.binary.text}.",
        "executable": program.binary.program.name,
        "program": True,
        "feels": ["hugepages"],
        "metrics": [*told, *own],
        "compare": {"arguments": list(program.command[1:])},
    }


def _intended(runs: ProgramRuns) -> str:
    program, subject, options, lacks = runs.program, runs.subject, runs.options, runs.lacks
    runnable = [cell for cell in subject.cells if cell.measured.hugepages not in lacks]
    per_round = len(order_of_round([replace(subject, cells=tuple(runnable))], 1, options.seed, options.aa))
    names = ", ".join(cell.measured.hugepages for cell in runnable)
    text = f"To measure: {program.binary.program} ({program.binary.text}).\nPage policies: {names}. "
    text += f"{count_text(options.rounds, 'round')} of {count_text(per_round, 'run')}, "
    text += f"and {count_text(len(runnable), 'trial run')} before them."
    text += goal_text(options)
    for name, reason in lacks.items():
        text += f"\nunavailable: {name}: {reason.reason}"
    return text


def survey(program: Program, policies: Sequence[str], machine: Machine) -> list[tuple[Policy, Lack | None]]:
    """Each policy with why it is unavailable to this program here, or None."""
    return [(one, lack(one, program.binary, machine)) for one in map(parse_policy, policies)]


def memory_line(binary: Binary) -> str:
    """The static sizes of a program."""
    return f"text {bytes_text(binary.elf.text_bytes)}, .bss {bytes_text(binary.elf.zeroed_bytes)}"
