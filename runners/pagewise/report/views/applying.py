"""How advice is applied: the module, Spack spec and compiler options of a build, a command for programs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pagewise.analysis.choices import Best
from pagewise.analysis.rows import KernelResult
from pagewise.core.configuration import LOOP, PREFETCH, STORES, Configuration
from pagewise.core.dimensions import PAGES
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import Cell
from pagewise.core.record import Record
from pagewise.core.text import command_text
from pagewise.report.model import Recommendation
from pagewise.report.verdicts import AnswerRow, BestRow, BuildAdvice, PolicyAdvice
from pagewise.workloads.program.policy import PARTS, module_of

_MATH_LIBRARIES = ("libmvec", "sleef", "armpl", "mass", "fujitsu")
#: What the kernels of a library need (`needs=` of pagewise-micro), by the library's name.
_NEEDS = re.compile("(?P<fftw>fft)|(?P<blas>blas|blis|lapack|atlas)")
# The recipes' defaults.
_DEFAULTS = {"prefetch": PREFETCH[0], "stores": STORES[0], "loop": LOOP[0]} | dict.fromkeys(
    ("runtime", "simd", "sector"), ""
)
#: The word in a command that stands for the user's program.
PROGRAM = "PROGRAM"


def first_answers(given: Sequence[AnswerRow]) -> list[AnswerRow]:
    """The answers in the headline: those for the first dimension, by compiler if each has its own."""
    return [answer for answer in given if (answer.factor, answer.loop) == (given[0].factor, given[0].loop)]


def best_row(best: Best, records: Sequence[Record]) -> BestRow:
    """The best configuration of a kernel and compiler, and how kernels get it."""
    row, kernel = best.shown, best.benchmark
    return BestRow(
        compiler=best.group.compiler,
        hugepages=None if row is None else row.cell.measured.hugepages,
        is_baseline=best.row is None,
        equally_good=tuple(other.cell.measured.module for other in best.as_good),
        apply=build_of(row.cell, [kernel.name], records) if row and row.cell.measured.is_module else None,
    )


def advised_policy(kernels: Sequence[KernelResult], given: Sequence[AnswerRow]) -> str | None:
    """The policy to use, or to keep; None if none or several are advised."""
    advised: set[str] = set()
    for answer in first_answers(given):
        if answer.factor == PAGES.name and answer.outcome == "use":
            advised.add(answer.values[0])
        elif answer.factor == PAGES.name and answer.outcome == "keep":
            baselines = (group.baseline for of_kernel in kernels for group in of_kernel.groups)
            advised |= {row.cell.measured.hugepages for row in baselines if row is not None}
    return advised.pop() if len(advised) == 1 else None


def policy_of(
    programs: Mapping[str, Any], kernels: Sequence[KernelResult], given: Sequence[AnswerRow]
) -> PolicyAdvice | None:
    """The advised policy for the user's program, or for PROGRAM after a comparison of kernels.

    None without advice on one policy, and where kernels advise base pages, or a policy for kernels alone.
    """
    policy = advised_policy(kernels, given)
    if policy is None:
        return None
    if not programs and (policy == "none" or PagePolicy(policy).kind not in PARTS):
        return None
    command = next(iter(programs.values()))["command"] if len(programs) == 1 else (PROGRAM,)
    selection = ("--where", "RESULT") if "where" in policy.split("+") else ()
    words = ("pagewise", "exec", *selection, policy, "--", *command)
    return PolicyAdvice(policy=policy, command=words, module=module_of(policy))


def recommendations(given: Sequence[AnswerRow], *, of_program: bool) -> Iterator[Recommendation]:
    """What to change, how sure that is, what it costs, and how it is applied, for each dimension."""
    first = first_answers(given)
    for answer in given:
        shown = tuple(commands(answer.policy, answer.apply, of_program=of_program))
        text = answer.lead + answer.text
        yield Recommendation(answer.question, text, answer.more, answer.cost, shown, answer in first)


def commands(
    policy: PolicyAdvice | None, several: Sequence[BuildAdvice], *, of_program: bool
) -> Iterator[tuple[str, str]]:
    """Each command with what it is for."""
    if policy is not None:
        yield "For a program", command_text(policy.command)
        if policy.module:
            yield "For a job script", command_text(("module", "load", policy.module))
        if not of_program:
            check = ("pagewise", "compare", "--policies", f"none,{policy.policy}", "--", PROGRAM)
            yield "To measure your program first", command_text(check)
    for build in several:
        arguments = f"   # and {command_text(build.arguments)}" if build.arguments else ""
        yield f"For these kernels, {build.compiler}", command_text(build.command) + arguments
    for build in several:
        if build.spec:
            yield (
                f"In another Spack, {build.compiler}",
                command_text(("spack", "install", *build.spec.split())),
            )
    for options, names in _options(several).items():
        yield f"Compiler options, {', '.join(names)}", command_text(options.split())


def spec_of(configuration: Configuration) -> str | None:
    """The Spack spec of a configuration, without defaults.

    None for one that Spack did not build, whose flags (tuned, native) are those of a toolchain here, or that
    calls a library with both BLAS and FFTW's interface.
    """
    if configuration.builder != "spack" or configuration.flags or configuration.target == "native":
        return None
    name, _, version = configuration.compiler.rpartition("-")
    library = configuration.library
    called = bool(library) and library not in _MATH_LIBRARIES
    if called and not (needs := _NEEDS.search(library)):
        return None
    parts = [
        f"{configuration.package}@{configuration.version}",
        f"hugepages={configuration.hugepages}",
        *(
            f"{name}={value}"
            for name, default in _DEFAULTS.items()
            if (value := getattr(configuration, name)) != default
        ),
        *(["~openmp"] if configuration.openmp == "off" else []),
        *(["+papi"] if configuration.papi == "on" else []),
        *([f"mathlib={library}"] if library in _MATH_LIBRARIES else []),
        *([f"target={configuration.target}"] if configuration.names_target else []),
        *([f"needs={needs.lastgroup}"] if called and needs else []),
        f"%c,fortran={name}@{version}",
        *([f"^{library}"] if called else []),
    ]
    return " ".join(parts)


def build_of(cell: Cell, kernels: Sequence[str], records: Sequence[Record]) -> BuildAdvice:
    """How to get the configuration of a cell; the records have its compiler options."""
    measured = cell.measured
    options = (
        " ".join(record.configuration.code_options)
        for record in records
        if record.run is not None and record.run.module == measured.module
    )
    return BuildAdvice(
        compiler=measured.compiler,
        module=measured.module,
        command=("module", "load", measured.module),
        arguments=cell.arguments,
        spec=spec_of(measured),
        compiler_options=next(filter(None, options), None),
        kernels=tuple(kernels),
    )


def _options(several: Sequence[BuildAdvice]) -> dict[str, list[str]]:
    """The compilers by their options."""
    compilers: dict[str, list[str]] = {}
    for build in several:
        names = compilers.setdefault(build.compiler_options or "", [])
        if build.compiler not in names:
            names.append(build.compiler)
    compilers.pop("", None)
    return compilers
