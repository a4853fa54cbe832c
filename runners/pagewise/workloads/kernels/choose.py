"""Which kernels and configurations run: by names, globs and the baseline, in sizes that fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import LOOP, PREFETCH, Configuration
from pagewise.core.dimensions import differ_only_in
from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.kernel import Kernel
from pagewise.core.manifest import Scaled
from pagewise.core.page_policy import PagePolicy, normal_name
from pagewise.core.plan import Subject, baselines, fitting, with_options
from pagewise.core.plan import subject as planned
from pagewise.core.text import choose_of
from pagewise.machine import memory
from pagewise.machine.placement import Placement
from pagewise.session.options import SessionOptions
from pagewise.stack.binary import files_of
from pagewise.stack.catalog import Catalog, Entry
from pagewise.stack.launcher import RankLauncher, find_launcher, links_mpi

# All options of the chosen kernels.
_ALL = "all"


@dataclass(frozen=True, kw_only=True)
class KernelOptions(SessionOptions):
    """Which kernels and configurations are measured, and how; see `pagewise kernels --help`.

    policies: page policies with a size, in addition to the built-in ones.
    """

    environment: str
    kernels: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    sweep: bool = False
    policies: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()
    scale: str | None = None


def choose(catalog: Catalog, options: KernelOptions) -> list[Subject]:
    """The kernels and their distinct configurations, always with those that they are compared with.

    Raises SelectionError when a name, filter or baseline matches nothing, SetupError when no module has a
    kernel.
    """
    kernels = catalog.select_kernels(options.kernels)
    if not kernels:
        raise SetupError(
            "no module here has a kernel", where=catalog.tree, remedy="build the environment again"
        )
    kernels = _scale(kernels, options.scale)
    policies = _sized_policies(options.policies)
    selected = catalog.select_entries(options.configurations)
    compilers = {entry.configuration.compiler for entry in selected}
    compared = {module for kernel in kernels for module in _baselines(kernel, catalog, options.baseline)}
    compared |= _without_prefetch(selected, catalog)
    needed = [
        entry
        for entry in catalog.entries
        if entry in selected
        or (entry.configuration.compiler in compilers and entry.configuration.module in compared)
    ]
    subjects = [
        planned(kernel.benchmark, _with_kernel(kernel, needed), options.baseline, policies)
        for kernel in kernels
    ]
    subjects = [subject for subject in subjects if subject.cells]
    if not subjects:
        raise SelectionError(
            "the chosen configurations have none of these kernels",
            where="--kernels, --configurations",
            remedy="`pagewise list` shows both; other kernels may be in another environment: --env",
        )
    used = {cell.pages for subject in subjects for cell in subject.cells}
    for policy in policies:
        if policy not in used:
            raise SelectionError(
                f"{policy} needs a configuration built with hugepages={PagePolicy(policy).kind}",
                where="--policies",
                remedy="choose such configurations, and kernels sensitive to hugepages; see `pagewise list`",
            )
    subjects = with_options(
        subjects, _option_values(options.varied, [subject.benchmark for subject in subjects])
    )
    if without := [subject.benchmark for subject in subjects if not subject.cells]:
        names = ", ".join(dict.fromkeys(name for kernel in without for name in kernel.options_of_threads))
        raise SelectionError(
            f"{', '.join(kernel.name for kernel in without)}: "
            f"builds without OpenMP have only the first value of {names}",
            where="--vary",
            remedy="choose a build with OpenMP (--configurations), or that value",
        )
    return subjects


def _scale(kernels: list[Kernel], scale: str | None) -> list[Kernel]:
    """The kernels at a scale. Raises SelectionError if one of them does not have it."""
    if scale is None:
        return kernels
    without = [kernel.name for kernel in kernels if scale not in (kernel.scales or {})]
    if without:
        known = sorted({name for kernel in kernels for name in kernel.scales or {}})
        raise SelectionError(
            f"{', '.join(without)}: no scale {scale!r}",
            where=f"--scale {scale}",
            remedy=choose_of(scale, known) if known else "choose kernels with scales: --kernels",
        )
    return [kernel.at_scale(scale) for kernel in kernels]


def _option_values(texts: Sequence[str], kernels: Sequence[Benchmark]) -> dict[str, list[str]]:
    """The values of each option to vary; a name alone stands for all of them, and `all` for all options.

    Raises SelectionError.
    """
    selected: dict[str, list[str]] = {}
    every = dict.fromkeys(name for kernel in kernels for name in kernel.options)
    for text in chain.from_iterable(every if given == _ALL else (given,) for given in texts):
        name, is_given, values = text.partition("=")
        known = list(dict.fromkeys(value for kernel in kernels for value in kernel.options.get(name, ())))
        if not known:
            raise SelectionError(
                f"no chosen kernel has an option {name!r} to vary",
                where=f"--vary {text}",
                remedy=f"choose one of {', '.join(sorted(every))}"
                if every
                else "choose kernels with options: --kernels",
            )
        named = [value.strip() for value in values.split(",")] if is_given else known
        for value in named:
            if value not in known:
                raise SelectionError(
                    f"{value!r} is not a value of {name}",
                    where=f"--vary {text}",
                    remedy=choose_of(value, known),
                )
        selected.setdefault(name, []).extend(value for value in named if value not in selected.get(name, ()))
    return selected


def _without_prefetch(selected: Iterable[Entry], catalog: Catalog) -> set[str]:
    """The modules with which prefetching in the compiler's loop is compared: that loop without it."""
    prefetching = [
        entry.configuration
        for entry in selected
        if entry.configuration.loop != LOOP[0] and entry.configuration.prefetch != PREFETCH[0]
    ]
    return {
        entry.configuration.module
        for entry in catalog.entries
        for one in prefetching
        if entry.configuration.prefetch == PREFETCH[0]
        and differ_only_in("prefetch", entry.configuration, one)
    }


def _with_kernel(kernel: Kernel, entries: Iterable[Entry]) -> list[Configuration]:
    return [entry.configuration for entry in entries if kernel.name in entry.kernels]


def _baselines(kernel: Kernel, catalog: Catalog, pattern: str) -> list[str]:
    """The modules of a kernel's baselines, one per compiler: of several libraries or targets the first.

    Raises SelectionError.
    """
    built = _with_kernel(kernel, catalog.entries)
    matches = fitting(built, pattern)
    if len({configuration.plain for configuration in matches}) == 1:
        return [configuration.module for configuration in baselines(built, pattern)]
    labels = ", ".join(sorted({configuration.label for configuration in matches})) or "none"
    raise SelectionError(
        f"one configuration of {kernel.name} must match the baseline {pattern!r}; these do: {labels}",
        where="--baseline",
        remedy="name one as in `pagewise list`: none/hardware-regular",
    )


def _sized_policies(policies: Iterable[str]) -> list[str]:
    """The policies in one spelling. Raises SelectionError for one without a size."""
    names = list(dict.fromkeys(map(normal_name, policies)))
    for policy in names:
        try:
            size = PagePolicy(policy).size
        except ValueError:
            size = None
        if size is None:
            raise SelectionError(
                f"{policy!r} is not a page policy with a size",
                where="--policies",
                remedy="name it like thp:64k or hugetlbfs:1g; built-in policies are always measured",
            )
    return names


def room_for(places: Iterable[Placement]) -> int | None:
    """Bytes of memory that are available to a run in every placement; None if unknown."""
    bound = {place.memory.nodes for place in places if place.memory.binds}
    known = [memory.available(), *map(memory.available_on, bound)]
    return min((room for room in known if room is not None), default=None)


def fit(
    subjects: Sequence[Subject], options: KernelOptions, room: int | None
) -> tuple[list[Subject], list[Scaled]]:
    """The subjects with kernels that fit into this many bytes of memory, and which were scaled down.

    A reserved pool holds the working set while other runs need it, too. Raises RefusedError.
    """
    fitted, scaled = [], []
    for subject in subjects:
        pooled = any(PagePolicy(cell.measured.hugepages).kind == "hugetlbfs" for cell in subject.cells)
        kernel, change = memory.fit_kernel(
            subject.benchmark, room, 2 if "pool" in options.machine.provided and pooled else 1
        )
        fitted.append(replace(subject, benchmark=kernel))
        if change is not None:
            scaled.append(change)
    return fitted, scaled


def check_programs(catalog: Catalog, subjects: Sequence[Subject]) -> None:
    """Raises SetupError if the program of a chosen kernel is missing."""
    entries = catalog.by_module
    for subject in subjects:
        name, executable = subject.benchmark.name, subject.benchmark.executable
        for cell in subject.cells:
            if entries[cell.measured.module].program(executable) is None:
                raise SetupError(
                    f"the module names {name}, but {executable} is missing",
                    where=cell.measured.module,
                    remedy="build the environment again",
                )


def find_launchers(catalog: Catalog, subjects: Sequence[Subject]) -> dict[str, RankLauncher]:
    """By module, what starts the ranks of its programs.

    Raises SelectionError for a kernel that runs in one process, SetupError if a launcher is missing.
    """
    entries, launchers = catalog.by_module, {}
    for subject in subjects:
        kernel = subject.benchmark
        if not catalog.kernels[kernel.name].ranks:
            raise SelectionError(
                f"{kernel.name} runs in one process, not as MPI ranks",
                where="--ranks",
                remedy="choose kernels with ranks (--kernels ember), or omit --ranks",
            )
        for module in dict.fromkeys(cell.measured.module for cell in subject.cells):
            entry = entries[module]
            program = Path(entry.program(kernel.executable) or kernel.executable)
            files = files_of(program, entry.environment)
            is_script = len(files) > 1 and files[1] != program.resolve()
            if not is_script and not links_mpi(files):
                raise SelectionError(
                    f"{kernel.executable} was built without MPI",
                    where=module,
                    remedy="build it with +mpi, as in make stack ENV=mini-apps, or omit --ranks",
                )
            launchers[module] = find_launcher(files, entry.environment)
    return launchers
