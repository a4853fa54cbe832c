"""Kernels as a workload of a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from pagewise.core.page_policy import policy_kind, policy_size
from pagewise.core.plan import Subject, order_of_round, order_of_sweeps
from pagewise.core.units import count_text
from pagewise.machine.placement import Placement
from pagewise.machine.settings import hugepages
from pagewise.session.launch import Stopwatch, by_name
from pagewise.session.planner import ComparisonPlanner
from pagewise.session.session import Session, goal_text
from pagewise.session.settings import changed_settings
from pagewise.session.workload import Planner, Trials
from pagewise.stack.binary import files_of
from pagewise.stack.catalog import Catalog
from pagewise.workloads.kernels.arrange import Arrangement, KernelOptions, arrange
from pagewise.workloads.kernels.launch import KernelLauncher


@dataclass(frozen=True)
class Kernels:
    """The kernels of an arrangement, in the order of a planner."""

    options: KernelOptions
    arrangement: Arrangement
    planner: Planner

    @property
    def subjects(self) -> list[Subject]:
        """The kernels with their configurations."""
        return self.arrangement.subjects

    @property
    def placements(self) -> list[Placement]:
        """The placements that are compared."""
        return self.arrangement.placements

    def watched_files(self) -> dict[str, tuple[Path, ...]]:
        """By module, the module file, and the programs with their libraries."""
        tree, entries = self.arrangement.catalog.tree, self.arrangement.entries
        files: dict[str, list[Path]] = {}
        for subject in self.subjects:
            for module in {cell.measured.module for cell in subject.cells}:
                of_module = files.setdefault(module, [tree / f"{module}.lua"])
                if (program := entries[module].program(subject.kernel.executable)) is not None:
                    of_module += files_of(Path(program), entries[module].environment)
        return {module: tuple(dict.fromkeys(of_module)) for module, of_module in files.items()}

    def launcher(self, scratch: Path) -> KernelLauncher:
        """Launches kernels through hyperfine."""
        control = self.arrangement.control
        return KernelLauncher(
            self.arrangement.entries,
            Stopwatch(self.arrangement.hyperfine, self.options.limit, scratch, self.options.end_leftovers),
            by_name(self.placements),
            control.program if control else (),
        )

    @contextmanager
    def prepared(self, session: Trials) -> Iterator[None]:
        """With the settings of the machine that the user asked to change."""
        policies = {cell.measured.hugepages for subject in self.subjects for cell in subject.cells}
        with changed_settings(
            session.recorder.manifest,
            self.placements,
            thp_policies=policies if self.options.set_thp_sizes else None,
            pool_pages=self._pool_pages() if self.options.reserve else None,
            control=self.arrangement.control,
        ):
            yield

    def _pool_pages(self) -> dict[int, int]:
        """By page size, the pages to reserve in each pool."""
        arguments: dict[int, list[tuple[str, ...]]] = {}
        for subject in self.subjects:
            policies = {cell.measured.hugepages for cell in subject.cells}
            for policy in (policy for policy in policies if policy_kind(policy) == "hugetlbfs"):
                of_size = arguments.setdefault(policy_size(policy) or hugepages.PAGE_BYTES, [])
                of_size.append(subject.kernel.arguments)
                if self.options.sweep:
                    of_size += [sweep.arguments for sweep in subject.kernel.sweeps]
        return {size: hugepages.pages_needed(of_size, size) for size, of_size in arguments.items()}


def prepare(options: KernelOptions, console: Console, began: float) -> Session:
    """Prepares a comparison; nothing is measured or written yet.

    Raises SetupError, SelectionError or FormatError.
    """
    arrangement = arrange(options, console)
    subjects = arrangement.subjects
    console.print(intended(arrangement.catalog, subjects, options), highlight=False, soft_wrap=True)
    planner = ComparisonPlanner(subjects, options.seed, options.aa, options.sweep)
    manifest = arrangement.manifest(options, "kernels")
    return Session.of(options, Kernels(options, arrangement, planner), manifest, console, began)


def intended(catalog: Catalog, subjects: Sequence[Subject], options: KernelOptions) -> str:
    """The kernels and the number of runs, and how many kernels are not among them."""
    names = ", ".join(subject.kernel.name for subject in subjects)
    per_round = len(order_of_round(subjects, 1, options.seed, options.aa))
    sweeps = len(order_of_sweeps(subjects, options.seed)) if options.sweep else 0
    runs = f"{count_text(options.rounds, 'round')} of {count_text(per_round, 'run')}"
    if sweeps:
        runs += f" and {count_text(sweeps, 'sweep')}"
    text = f"To measure: {names}. {runs}: {count_text(options.rounds * per_round + sweeps, 'run')}."
    text += goal_text(options)
    left = len(catalog.kernels) - len(subjects)
    if left and not options.kernels:
        text += f"\n{count_text(left, 'more kernel')} can be chosen with --kernels"
        text += "; `pagewise list` lists them."
    return text
