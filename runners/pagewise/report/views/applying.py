"""How advice is applied: the module, Spack spec and compiler options of a build, a command for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.choices import AGAINST, Best, alone, loop_of
from pagewise.core.configuration import LOOP, PREFETCH, STORES, Configuration
from pagewise.core.dimensions import BY_NAME, COMPILER, PAGES, Dimension
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import Cell
from pagewise.core.result import Result
from pagewise.core.text import command_text
from pagewise.report.model import Recommendation
from pagewise.report.views.advice import Answer, answers, first_answers
from pagewise.workloads.program.policy import PARTS, module_of

_MATH_LIBRARIES = ("libmvec", "sleef", "armpl", "mass", "fujitsu")
#: The word in a command that stands for the user's program.
PROGRAM = "PROGRAM"


@dataclass(frozen=True)
class Build:
    """A configuration that was measured, and how kernels get it.

    `command` loads its module, `spec` installs it, `compiler_options` are those of its build; `arguments` are
    those that its programs need in addition. `kernels` are those for which it is advised.
    """

    compiler: str
    module: str
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    spec: str | None
    compiler_options: str | None
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class Policy:
    """A page policy for programs: a command for one, and a module for a job script, None without one."""

    policy: str
    command: tuple[str, ...]
    module: str | None


def builds(result: Result, kernels: Sequence[KernelResult], answer: Answer) -> list[Build]:
    """The configurations that an answer advises, all else as in the baseline; none for a program."""
    advised: dict[tuple[str, tuple[str, ...]], tuple[Cell, list[str]]] = {}
    for of_kernel in kernels:
        for cell in _cells(of_kernel, answer):
            if not cell.measured.is_module:
                continue
            key = (cell.measured.module, cell.arguments)
            advised.setdefault(key, (cell, []))[1].append(of_kernel.kernel.name)
    return [_build(result, cell, names) for cell, names in advised.values()]


def best_build(result: Result, best: Best) -> Build | None:
    """The best configuration of a kernel and compiler; None for a program."""
    row = best.row or best.group.baseline
    if row is None or not row.cell.measured.is_module:
        return None
    return _build(result, row.cell, [best.kernel.kernel.name])


def advised_policy(kernels: Sequence[KernelResult]) -> str | None:
    """The policy to use, or to keep; None if none or several are advised."""
    advised: set[str] = set()
    for answer in first_answers(kernels):
        if answer.factor == PAGES.name and answer.outcome == "use":
            advised.add(answer.values[0])
        elif answer.factor == PAGES.name and answer.outcome == "keep":
            baselines = (group.baseline for of_kernel in kernels for group in of_kernel.groups)
            advised |= {row.cell.measured.hugepages for row in baselines if row is not None}
    return advised.pop() if len(advised) == 1 else None


def policy_of(result: Result, kernels: Sequence[KernelResult]) -> Policy | None:
    """The advised policy for the user's program, or for PROGRAM after a comparison of kernels.

    None without advice on one policy, and where kernels advise base pages, or a policy of theirs alone.
    """
    policy = advised_policy(kernels)
    if policy is None:
        return None
    programs = list(result.manifest.programs.values())
    if not programs and (policy == "none" or PagePolicy(policy).kind not in PARTS):
        return None
    command = programs[0]["command"] if len(programs) == 1 else (PROGRAM,)
    return Policy(policy, ("pagewise", "exec", policy, "--", *command), module_of(policy))


def recommendations(result: Result, kernels: Sequence[KernelResult]) -> Iterator[Recommendation]:
    """What to change, how sure that is, what it costs, and how it is applied, for each dimension."""
    of_program = bool(result.manifest.programs)
    for answer, in_headline in answered(kernels):
        of_pages = answer.factor == PAGES.name and answer.loop is None
        policy = policy_of(result, kernels) if of_pages else None
        applied = commands(policy, builds(result, kernels, answer), of_program=of_program)
        text = answer.lead + answer.text
        yield Recommendation(answer.question, text, answer.more, answer.cost, tuple(applied), in_headline)


def data(result: Result, kernels: Sequence[KernelResult]) -> list[dict[str, object]]:
    """The field `answers` of the JSON object."""
    names = ("factor", "compiler", "loop", "outcome", "values", "question", "lead", "text", "more", "cost")
    return [
        {
            **{name: getattr(answer, name) for name in names},
            "apply": builds(result, kernels, answer),
            "policy": policy_of(result, kernels) if answer.factor == PAGES.name and first else None,
        }
        for answer, first in answered(kernels)
    ]


def commands(
    policy: Policy | None, several: Sequence[Build], *, of_program: bool
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


def answered(kernels: Sequence[KernelResult]) -> list[tuple[Answer, bool]]:
    """All answers, each with whether it is in the headline."""
    known = answers(kernels)
    first = len(first_answers(kernels)) if known else 0
    return [(answer, place < first) for place, answer in enumerate(known)]


def spec_of(configuration: Configuration) -> str | None:
    """The Spack spec of a configuration, without defaults.

    None for one that Spack did not build, or whose flags (tuned, native) are those of a toolchain here.
    """
    if configuration.builder != "spack" or configuration.flags or configuration.target == "native":
        return None
    name, _, version = configuration.compiler.rpartition("-")
    library = configuration.library
    parts = [
        f"{configuration.package}@{configuration.version}",
        f"hugepages={configuration.hugepages}",
        *_unless("prefetch", configuration.prefetch, PREFETCH[0]),
        *_unless("stores", configuration.stores, STORES[0]),
        *_unless("loop", configuration.loop, LOOP[0]),
        *_unless("runtime", configuration.runtime, ""),
        *_unless("simd", configuration.simd, ""),
        *_unless("sector", configuration.sector, ""),
        *(["~openmp"] if configuration.openmp == "off" else []),
        *(["+papi"] if configuration.papi == "on" else []),
        *([f"mathlib={library}"] if library in _MATH_LIBRARIES else []),
        *([f"target={configuration.target}"] if configuration.names_target else []),
        f"%c,fortran={name}@{version}",
        *([f"^{library}"] if library and library not in _MATH_LIBRARIES else []),
    ]
    return " ".join(parts)


def _unless(name: str, value: str, default: str) -> list[str]:
    return [] if value == default else [f"{name}={value}"]


def _cells(result: KernelResult, answer: Answer) -> Iterator[Cell]:
    """What an answer advises for a kernel, by compiler."""
    if answer.outcome not in ("use", "keep", "choose"):
        return
    dimension = BY_NAME[answer.factor]
    if dimension is COMPILER:
        yield from _of_compiler(result, answer)
        return
    yield from _of_value(result, answer, dimension)


def _of_value(result: KernelResult, answer: Answer, dimension: Dimension) -> Iterator[Cell]:
    for row in alone(result, dimension, answer.values[0]):
        change = row.change
        if change is None or answer.compiler not in (None, row.cell.compiler):
            continue
        if loop_of(row, dimension) != answer.loop:
            continue
        takes = answer.outcome == "use" or (answer.outcome == "choose" and change.verdict == "faster")
        yield row.cell if takes else change.reference


def _of_compiler(result: KernelResult, answer: Answer) -> Iterator[Cell]:
    """With `choose`, the faster of two compilers for this kernel."""
    compiler, _, reference = answer.values[0].partition(AGAINST)
    for versus in result.versus:
        if (versus.compiler, versus.reference, versus.loop) != (compiler, reference, answer.loop):
            continue
        takes = answer.outcome == "use" or (answer.outcome == "choose" and versus.verdict == "faster")
        chosen = compiler if takes else reference
        group = next(group for group in result.groups if group.compiler == chosen)
        rows = (row for row in group.ranked if row.cell.is_baseline or row.differs == ("loop",))
        wanted = [row.cell for row in rows if versus.loop in (None, row.cell.measured.loop)]
        yield from wanted[:1]


def _build(result: Result, cell: Cell, kernels: Sequence[str]) -> Build:
    measured = cell.measured
    options = (
        " ".join(record.configuration.options_in_order)
        for record in result.records
        if record.run is not None and record.run.module == measured.module
    )
    return Build(
        measured.compiler,
        measured.module,
        ("module", "load", measured.module),
        cell.arguments,
        spec_of(measured),
        next(filter(None, options), None),
        tuple(kernels),
    )


def _options(several: Sequence[Build]) -> dict[str, list[str]]:
    """The compilers by their options."""
    compilers: dict[str, list[str]] = {}
    for build in several:
        names = compilers.setdefault(build.compiler_options or "", [])
        if build.compiler not in names:
            names.append(build.compiler)
    compilers.pop("", None)
    return compilers
