"""Arranges runs of kernels: tools, modules, chosen configurations that fit into memory, placements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pagewise.core.configuration import Configuration
from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.kernel import Kernel
from pagewise.core.page_policy import policy_kind, policy_size
from pagewise.core.plan import Subject, baselines, fitting, placed
from pagewise.core.plan import subject as planned
from pagewise.core.result import Kind
from pagewise.machine import memory
from pagewise.machine.host import read_host
from pagewise.machine.placement import Placement, placements
from pagewise.machine.settings import prefetchers
from pagewise.session.launch import find_hyperfine, print_placements
from pagewise.session.manifest import new_manifest
from pagewise.session.options import SessionOptions
from pagewise.stack import lmod
from pagewise.stack.catalog import Catalog, Entry, read_catalog
from pagewise.stack.paths import module_tree
from pagewise.stack.provenance import software
from pagewise.stack.setup import SetupFacts, setup_facts


@dataclass(frozen=True, kw_only=True)
class KernelOptions(SessionOptions):
    """Which kernels and configurations are measured, and how; see `pagewise compare --help`."""

    environment: str
    kernels: tuple[str, ...]
    configurations: tuple[str, ...]
    sweep: bool
    pages: tuple[str, ...] = ()
    prefetchers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arrangement:
    """The tools and modules of runs, what is measured and where."""

    facts: SetupFacts | None
    hyperfine: str
    init: Path
    catalog: Catalog
    placements: list[Placement]
    control: prefetchers.Control | None
    subjects: list[Subject]
    scaled: list[memory.Scaled]

    @property
    def entries(self) -> dict[str, Entry]:
        """By module, the configurations that are measured or equal to a measured one."""
        cells = [cell for subject in self.subjects for cell in subject.cells]
        measured = {configuration.module for cell in cells for configuration in cell.stands_for}
        by_module = {entry.configuration.module: entry for entry in self.catalog.entries}
        return {module: entry for module, entry in by_module.items() if module in measured}

    def manifest(self, options: KernelOptions, kind: Kind, **more: Any) -> dict[str, Any]:
        """The manifest of a new session, with further entries."""
        return new_manifest(
            options,
            kind,
            entries=self.entries.values(),
            subjects=self.subjects,
            placements=self.placements,
            tree=self.catalog.tree,
            environment=options.environment if options.modules is None else None,
            host=read_host(),
            facts=self.facts,
            software=software(self.hyperfine, self.init),
            broken=self.catalog.broken,
            sweep=options.sweep,
            scaled=[asdict(change) for change in self.scaled],
            **more,
        )


def arrange(options: KernelOptions, console: Console) -> Arrangement:
    """Finds modules, kernels and tools; nothing is measured or written yet.

    Raises SetupError, SelectionError or FormatError.
    """
    facts = setup_facts()
    hyperfine = find_hyperfine()
    init = lmod.find_init(facts)
    catalog = read_catalog(module_tree(options.environment, options.modules), init)
    for broken in catalog.broken:
        _print_note(console, "excluded:", f"{broken.module}: {broken.reason}")
    places = placements(options.threads, options.where)
    print_placements(console, places)
    cpus = tuple(sorted({cpu for place in places for cpu in place.cpus}))
    control = prefetchers.find_control(options.prefetchers, cpus) if options.prefetchers else None
    chosen = placed(choose(catalog, options), [place.name for place in places])
    subjects, scaled = fit(chosen, options, room_for(places))
    for kernel in scaled:
        _print_note(console, "smaller:", kernel.text)
    _check_programs(catalog, subjects)
    return Arrangement(facts, hyperfine, init, catalog, places, control, subjects, scaled)


def choose(catalog: Catalog, options: KernelOptions) -> list[Subject]:
    """The kernels and their distinct configurations, always with the baselines, which ratios need.

    Raises SelectionError when a name, filter or baseline matches nothing, SetupError when no module has a
    kernel.
    """
    kernels = catalog.select_kernels(options.kernels)
    if not kernels:
        raise SetupError(
            "no module here has a kernel", where=catalog.tree, remedy="build the environment again"
        )
    _check_policies(options.pages)
    chosen = catalog.select_entries(options.configurations)
    compilers = {entry.configuration.compiler for entry in chosen}
    compared = {module for kernel in kernels for module in _baselines(kernel, catalog, options.baseline)}
    needed = [
        entry
        for entry in catalog.entries
        if entry in chosen
        or (entry.configuration.compiler in compilers and entry.configuration.module in compared)
    ]
    subjects = [
        planned(kernel, _with_kernel(kernel, needed), options.baseline, options.pages) for kernel in kernels
    ]
    subjects = [subject for subject in subjects if subject.cells]
    if not subjects:
        raise SelectionError(
            "the chosen configurations have none of these kernels",
            where="--kernels, --configurations",
            remedy="`pagewise list` shows both; other kernels may be in another environment: --env",
        )
    used = {cell.pages for subject in subjects for cell in subject.cells}
    for policy in options.pages:
        if policy not in used:
            raise SelectionError(
                f"{policy} needs a configuration built with hugepages={policy_kind(policy)}",
                where="--policies",
                remedy="choose such configurations, and kernels sensitive to hugepages; see `pagewise list`",
            )
    return subjects


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


def _check_policies(policies: Sequence[str]) -> None:
    for policy in policies:
        try:
            size = policy_size(policy)
        except ValueError:
            size = None
        if size is None:
            raise SelectionError(
                f"{policy!r} is not a page policy with a size",
                where="--policies",
                remedy="name it like thp:64k or hugetlbfs:1g; built-in policies are always measured",
            )


def room_for(places: Iterable[Placement]) -> int | None:
    """Bytes of memory that are available to a run in every placement; None if unknown."""
    bound = {place.memory.nodes for place in places if place.memory.binds}
    known = [memory.available(), *map(memory.available_on, bound)]
    return min((room for room in known if room is not None), default=None)


def fit(
    subjects: Sequence[Subject], options: KernelOptions, room: int | None
) -> tuple[list[Subject], list[memory.Scaled]]:
    """The subjects with kernels that fit into this many bytes of memory, and which were scaled down.

    A reserved pool holds the working set while other runs need it, too. Raises RefusedError.
    """
    fitted, scaled = [], []
    for subject in subjects:
        pooled = any(policy_kind(cell.measured.hugepages) == "hugetlbfs" for cell in subject.cells)
        kernel, change = memory.fitted(subject.kernel, room, 2 if options.reserve and pooled else 1)
        fitted.append(replace(subject, kernel=kernel))
        if change is not None:
            scaled.append(change)
    return fitted, scaled


def _print_note(console: Console, what: str, text: str) -> None:
    console.print(Text.assemble((what, "yellow"), f" {text}"), soft_wrap=True)


def _check_programs(catalog: Catalog, subjects: Sequence[Subject]) -> None:
    entries = {entry.configuration.module: entry for entry in catalog.entries}
    for subject in subjects:
        for cell in subject.cells:
            if entries[cell.measured.module].program(subject.kernel.executable) is None:
                raise SetupError(
                    f"the module names {subject.kernel.name}, but {subject.kernel.executable} is missing",
                    where=cell.measured.module,
                    remedy="build the environment again",
                )
