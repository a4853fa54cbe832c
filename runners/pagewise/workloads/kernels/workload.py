"""Kernels as a workload of a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pagewise.core.manifest import Manifest, ResultKind, Scaled
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import Step, Subject, at_placements, order_of_round, order_of_sweeps
from pagewise.core.units import count_text
from pagewise.machine.host import default_pool_size
from pagewise.machine.placement import Placement, placements
from pagewise.machine.settings import hugepages
from pagewise.session.launch import Stopwatch, by_name, print_placements
from pagewise.session.recorder import Recorder, new_manifest
from pagewise.session.session import Session, goal_text
from pagewise.session.settings import MachineSettings, Needs, in_all_states, pools_used
from pagewise.session.workload import ComparisonPlanner, Planner, WithoutTrials
from pagewise.stack import lmod
from pagewise.stack.binary import files_of
from pagewise.stack.catalog import Catalog, Entry, read_catalog
from pagewise.stack.launcher import RankLauncher
from pagewise.stack.paths import module_tree
from pagewise.stack.provenance import find_hyperfine, programs, software
from pagewise.stack.setup import setup_facts
from pagewise.workloads.kernels.choose import (
    KernelOptions,
    check_programs,
    choose,
    find_launchers,
    fit,
    room_for,
)
from pagewise.workloads.kernels.launch import KernelLauncher
from pagewise.workloads.kernels.sizes import turn_takers, with_sizes
from pagewise.workloads.kernels.turns import Room


@dataclass(frozen=True)
class Kernels(WithoutTrials):
    """Kernels as a workload: what is measured and where, in the order of a planner, and with which tools."""

    options: KernelOptions
    hyperfine: str
    init: Path
    catalog: Catalog
    placements: list[Placement]
    settings: MachineSettings
    subjects: list[Subject]
    scaled: list[Scaled]
    planner: Planner
    launchers: Mapping[str, RankLauncher]

    @property
    def entries(self) -> dict[str, Entry]:
        """By module, the configurations that are measured or equal to a measured one."""
        cells = [cell for subject in self.subjects for cell in subject.cells]
        measured = {configuration.module for cell in cells for configuration in cell.stands_for}
        return {module: entry for module, entry in self.catalog.by_module.items() if module in measured}

    def watched_files(self) -> dict[str, tuple[Path, ...]]:
        """By module, the module file, and the programs with their libraries."""
        tree, entries = self.catalog.tree, self.entries
        files: dict[str, list[Path]] = {}
        for subject in self.subjects:
            for module in {cell.measured.module for cell in subject.cells}:
                of_module = files.setdefault(module, [tree / f"{module}.lua"])
                if (program := entries[module].program(subject.benchmark.executable)) is not None:
                    of_module += files_of(Path(program), entries[module].environment)
        return {module: tuple(dict.fromkeys(of_module)) for module, of_module in files.items()}

    def launcher(self, scratch: Path) -> KernelLauncher:
        """Launches kernels through hyperfine."""
        return KernelLauncher(
            self.entries,
            Stopwatch(self.hyperfine, self.options.runs.limit, scratch, self.options.runs.end_leftovers),
            by_name(self.placements),
            self.settings,
            self.launchers,
            room=self._room,
        )

    def _room(self) -> Room:
        """The memory that is free now: half of it, and all pages of the pools that runs use."""
        memory = room_for(self.placements)
        pools = {size: pools_used(self.placements, size) for size in self._pool_pages()}
        free = {size: size * sum(pool.free() for pool in of_size) for size, of_size in pools.items()}
        return Room(None if memory is None else memory // 2, free)

    def needs(self) -> Needs:
        """Huge pages for the working sets."""
        policies = {cell.measured.hugepages for subject in self.subjects for cell in subject.cells}
        return Needs(policies, self._pool_pages())

    def _pool_pages(self) -> dict[int, int]:
        """By page size, the pages to reserve in each pool."""
        default = default_pool_size() or hugepages.PAGE_BYTES
        arguments: dict[int, list[tuple[str, ...]]] = {}
        for subject in self.subjects:
            policies = {cell.measured.hugepages for cell in subject.cells}
            for policy in (policy for policy in policies if PagePolicy(policy).kind == "hugetlbfs"):
                of_size = arguments.setdefault(PagePolicy(policy).size or default, [])
                of_size.append(subject.benchmark.arguments)
                if self.options.sweep:
                    of_size += [sweep.arguments for sweep in subject.benchmark.sweeps]
        # Each rank has arrays that end within a page.
        more = max(place.ranks or 1 for place in self.placements) - 1
        return {
            size: hugepages.pages_needed(of_size, size) + more * hugepages.margin_pages(size)
            for size, of_size in arguments.items()
        }

    def manifest(self, kind: ResultKind, **further: Any) -> Manifest:
        """The manifest of a new session of this kind, with further entries."""
        return new_manifest(
            self.options,
            kind,
            entries=self.entries.values(),
            subjects=self.subjects,
            placements=self.placements,
            tree=self.catalog.tree,
            environment=self.options.environment if self.options.modules is None else None,
            software=software(self.hyperfine, self.init),
            broken=self.catalog.broken,
            executables=programs(self.entries, self.subjects),
            sweep=self.options.sweep,
            scaled=tuple(self.scaled),
            **further,
        )


def prepare(options: KernelOptions, console: Console) -> Session:
    """Prepares a comparison; nothing is measured or written yet.

    Raises SetupError, SelectionError or FormatError.
    """
    kernels = arrange(options, console)
    console.print(plan_text(kernels.catalog, kernels.subjects, options), soft_wrap=True)
    return Session(options, kernels, Recorder(kernels.manifest("kernels")), console)


def arrange(options: KernelOptions, console: Console) -> Kernels:
    """Finds modules, kernels and tools for a comparison. Raises SetupError, SelectionError or FormatError."""

    def note(message: str, text: str) -> None:
        console.print(Text.assemble((message, "yellow"), f" {text}"), soft_wrap=True)

    hyperfine = find_hyperfine()
    init = lmod.find_init(setup_facts())
    catalog = read_catalog(module_tree(options.environment, options.modules), init)
    for broken in catalog.broken:
        note("excluded:", f"{broken.module}: {broken.reason}")
    where = options.where if options.where.counts else replace(options.where, threads=(1,))
    places = placements(where)
    print_placements(console, places)
    settings = MachineSettings.find(options, places)
    selected = in_all_states(choose(catalog, options), options)
    selected = at_placements(selected, [place.name for place in places])
    check_programs(catalog, selected)
    launchers = find_launchers(catalog, selected) if options.where.ranks else {}
    subjects, scaled = fit(with_sizes(selected, catalog, places), options, room_for(places))
    for kernel in scaled:
        note("smaller:", kernel.text)
    able = turn_takers(subjects, catalog, places, options.runs.method) if not launchers else frozenset()

    def whole(step: Step) -> str | None:
        reasons = {
            "": options.runs.method == "runs",
            "it runs as MPI ranks": bool(launchers),
            "its program does not take turns": step.benchmark.name not in able,
            "settings of the machine differ": bool(step.cell.settings.machine),
        }
        return next((reason for reason, applies in reasons.items() if applies), None)

    planner = ComparisonPlanner(
        subjects,
        options.runs.seed,
        options.runs.aa,
        options.sweep,
        whole_because=whole,
    )
    return Kernels(options, hyperfine, init, catalog, places, settings, subjects, scaled, planner, launchers)


def plan_text(catalog: Catalog, subjects: Sequence[Subject], options: KernelOptions) -> str:
    """The kernels and the number of runs, and how many kernels are not among them."""
    names = ", ".join(subject.benchmark.name for subject in subjects)
    per_round = len(order_of_round(subjects, 1, options.runs.seed, options.runs.aa))
    sweeps = len(order_of_sweeps(subjects, options.runs.seed)) if options.sweep else 0
    runs = f"{count_text(options.runs.rounds, 'round')} of {count_text(per_round, 'run')}"
    if sweeps:
        runs += f" and {count_text(sweeps, 'sweep')}"
    text = f"To measure: {names}. {runs}: {count_text(options.runs.rounds * per_round + sweeps, 'run')}."
    text += goal_text(options)
    left = len(catalog.kernels) - len(subjects)
    if left and not options.kernels:
        text += f"\n{count_text(left, 'more kernel')} can be chosen with --kernels"
        text += "; `pagewise list` lists them."
    return text
