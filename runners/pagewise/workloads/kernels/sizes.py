"""The working set of kernels whose kernel.yaml sets none: the program's default, from the machine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.plan import Subject
from pagewise.machine.memory import SIZES
from pagewise.machine.placement import Placement
from pagewise.session.options import Method
from pagewise.stack.catalog import Catalog

_SECONDS = 60


def with_sizes(subjects: Sequence[Subject], catalog: Catalog, places: Iterable[Placement]) -> list[Subject]:
    """The subjects, whose arguments then all name a working set; the same for all placements.

    A program's default depends on the caches of its CPUs, and placements of different sizes cannot be
    compared: each program is asked once, with the CPUs of all placements. Raises SetupError.
    """
    entries = catalog.by_module
    cpus = tuple(sorted({cpu for place in places for cpu in place.cpus}))
    result = []
    for subject in subjects:
        kernel, entry = subject.benchmark, entries[subject.cells[0].measured.module]
        program = entry.program(kernel.executable)
        lists = kernel.argument_lists
        if program is not None and not all(map(_has_size, lists)):
            size = default_values(program, entry.environment, cpus).get("working-set")
            if size is not None:
                sized = (each if _has_size(each) else (*each, "--working-set", size) for each in lists)
                kernel = kernel.with_arguments(*sized)
        result.append(replace(subject, benchmark=kernel))
    return result


def default_values(program: str, environment: Mapping[str, str], cpus: tuple[int, ...]) -> dict[str, str]:
    """The options of a program on these CPUs with their defaults, by its own report. Raises SetupError."""
    command = [program, "--list-options"]
    try:
        with Placement(len(cpus), cpus).bind():
            output = subprocess.run(
                command, env=dict(environment), capture_output=True, text=True, check=True, timeout=_SECONDS
            ).stdout
        return {option["name"]: str(option.get("default", "")) for option in json.loads(output)}
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError, AttributeError) as fault:
        raise SetupError(
            f"the program does not list its options: {fault}",
            where=" ".join(command),
            remedy="run that command, and build the environment again",
        ) from fault


def turn_takers(
    subjects: Sequence[Subject], catalog: Catalog, places: Sequence[Placement], method: Method
) -> frozenset[str]:
    """The names of the kernels whose programs take turns. Raises SetupError.

    Raises SelectionError if turns are requested, and a program does not take them.
    """
    if method == "runs":
        return frozenset()
    entries, able = catalog.by_module, set()
    for subject in subjects:
        entry = entries[subject.cells[0].measured.module]
        program = entry.program(subject.benchmark.executable)
        if program is not None and "turns" in default_values(program, entry.environment, places[0].cpus):
            able.add(subject.benchmark.name)
        elif method == "turns":
            raise SelectionError(
                f"{subject.benchmark.name} does not take turns", where="--method", remedy="use --method runs"
            )
    return frozenset(able)


def _has_size(arguments: Iterable[str]) -> bool:
    return any(argument.partition("=")[0] in SIZES for argument in arguments)
