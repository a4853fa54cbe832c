"""What a comparison of kernels is made with: tools, modules, kernels that fit into memory, placements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pagewise.core.errors import SetupError
from pagewise.core.page_policy import policy_kind
from pagewise.core.plan import Subject, placed
from pagewise.core.result import Kind
from pagewise.machine import memory
from pagewise.machine.host import read_host
from pagewise.machine.placement import Placement, placements
from pagewise.machine.settings import prefetchers
from pagewise.session.launch import find_hyperfine, print_placements
from pagewise.session.manifest import new_manifest
from pagewise.stack import lmod
from pagewise.stack.catalog import Catalog, Entry, read_catalog
from pagewise.stack.paths import module_tree
from pagewise.stack.provenance import software
from pagewise.stack.setup import SetupFacts, setup_facts
from pagewise.workloads.kernels.choose import choose
from pagewise.workloads.kernels.options import KernelOptions


@dataclass(frozen=True)
class Arrangement:
    """What a comparison is made with: tools, modules, what is measured and where."""

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
        """The configurations that are measured or stood for, by module."""
        cells = [cell for subject in self.subjects for cell in subject.cells]
        measured = {configuration.module for cell in cells for configuration in cell.stands_for}
        by_module = {entry.configuration.module: entry for entry in self.catalog.entries}
        return {module: entry for module, entry in by_module.items() if module in measured}

    def manifest(self, options: KernelOptions, kind: Kind, **more: Any) -> dict[str, Any]:
        """The manifest of a session that begins; `more` are its further entries."""
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
            scaled=[asdict(one) for one in self.scaled],
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


def room_for(places: Iterable[Placement]) -> int | None:
    """Bytes of memory that are available to a run in each of these placements; None if not known."""
    bound = {place.memory.nodes for place in places if place.memory.binds}
    known = [memory.available(), *map(memory.available_on, bound)]
    return min((room for room in known if room is not None), default=None)


def fit(
    subjects: Sequence[Subject], options: KernelOptions, room: int | None
) -> tuple[list[Subject], list[memory.Scaled]]:
    """The subjects with kernels that fit into this many bytes of memory, and which were made smaller.

    A reserved pool holds the working set while other runs need it too. Raises RefusedError.
    """
    fitting, scaled = [], []
    for subject in subjects:
        pooled = any(policy_kind(cell.measured.hugepages) == "hugetlbfs" for cell in subject.cells)
        kernel, change = memory.fitted(subject.kernel, room, 2 if options.reserve and pooled else 1)
        fitting.append(replace(subject, kernel=kernel))
        scaled += [change] if change is not None else []
    return fitting, scaled


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
