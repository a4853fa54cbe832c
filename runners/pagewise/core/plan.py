"""Plans a comparison: the distinct configurations of a kernel, the order of runs. Pure functions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from pagewise.core.configuration import Configuration
from pagewise.core.kernel import Kernel, Sweep
from pagewise.core.manifest import PlannedCell, PlannedSubject
from pagewise.core.page_policy import policy_kind
from pagewise.core.record_parts import RunOf

Series = Literal["compare", "aa", "sweep", "trial", "counters", "counters_aa", "simulate"]


# See Cell.key.
CellKey: TypeAlias = tuple[str, str | None, str | None]


@dataclass(frozen=True)
class Cell:
    """A distinct configuration of a kernel: the one measured, and all it stands for (itself too).

    `pages` is the page policy that its runs are told, None where they take the one that they were built for.
    The configurations then have it as their `hugepages`. `placement` names that of its runs where there are
    several, and the configurations have it too.
    """

    measured: Configuration
    stands_for: tuple[Configuration, ...]
    is_baseline: bool
    pages: str | None = None
    placement: str | None = None

    @property
    def key(self) -> CellKey:
        """What tells it from the other cells of its kernel: the module, the policy told, the placement."""
        return self.measured.module, self.pages, self.placement

    @property
    def compiler(self) -> str:
        """The compiler, the same for all it stands for if the kernel is sensitive to it."""
        return self.measured.compiler


@dataclass(frozen=True)
class Subject:
    """A kernel with its cells, sorted by compiler and variants."""

    kernel: Kernel
    cells: tuple[Cell, ...]

    def compilers(self) -> list[str]:
        """The compilers among the cells, in order."""
        return list(dict.fromkeys(cell.compiler for cell in self.cells))

    def planned(self) -> PlannedSubject:
        """For the manifest: the content of the kernel.yaml, and modules by cell."""
        cells = (
            PlannedCell(
                cell.measured.module,
                tuple(configuration.module for configuration in cell.stands_for),
                cell.is_baseline,
                cell.pages,
                cell.placement,
            )
            for cell in self.cells
        )
        return PlannedSubject(self.kernel.data, tuple(cells))

    @classmethod
    def of(cls, planned: PlannedSubject, configurations: Mapping[str, Configuration]) -> Subject:
        """The subject of a manifest; configurations by module. Raises KeyError for an unknown module."""
        cells = []
        for entry in planned.cells:
            equal = tuple(configurations[module] for module in entry.stands_for)
            cell = Cell(configurations[entry.measured], equal, entry.is_baseline)
            if entry.pages is not None:
                cell = _with_pages(cell, entry.pages)
            if entry.placement is not None:
                cell = _placed(cell, entry.placement, entry.is_baseline)
            cells.append(cell)
        return cls(Kernel.from_dict(dict(planned.kernel), "manifest.json"), tuple(cells))


@dataclass(frozen=True)
class Step:
    """One run to be made: kernel and cell, series, round, and place in the round.

    `sweep` is the curve that it measures, for the series `sweep` alone. `group` names the events that it
    counts, `settings` are environment variables for it alone.
    """

    kernel: Kernel
    cell: Cell
    series: Series
    round: int
    position: int
    group: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    sweep: Sweep | None = None

    @property
    def swept(self) -> str | None:
        """What is swept, None for a run that is no sweep."""
        return None if self.sweep is None else self.sweep.name

    @property
    def arguments(self) -> tuple[str, ...]:
        """The kernel's arguments for this series, and the page policy where it is told one."""
        arguments = self.kernel.arguments if self.sweep is None else self.sweep.arguments
        return arguments if self.cell.pages is None else (*arguments, "--pages", self.cell.pages)


def subject(
    kernel: Kernel, configurations: Iterable[Configuration], baseline: str, pages: Sequence[str] = ()
) -> Subject:
    """Merges the configurations between which the kernel makes no difference.

    Configurations are equal when they agree in all dimensions to which the kernel is sensitive and come from
    one package, version and build of the rest; `baseline` is a glob over `hugepages/prefetch-stores` (see
    `baselines`). Of equals, the baseline is measured, else the first in order. Each policy in `pages`
    (`thp:64k`) adds a cell to each of its kind.
    """
    groups: dict[tuple[str, ...], list[Configuration]] = {}
    ordered = sorted(configurations, key=Configuration.order)
    for configuration in ordered:
        groups.setdefault(_sensitive_values(kernel, configuration), []).append(configuration)
    compared = set(baselines(ordered, baseline))
    cells = []
    for equal in groups.values():
        named = [configuration for configuration in equal if configuration in compared]
        cells.append(Cell((named or equal)[0], tuple(equal), bool(named)))
    if "hugepages" in kernel.sensitive_to:
        cells += [
            _with_pages(cell, policy)
            for policy in dict.fromkeys(pages)
            for cell in cells
            if cell.measured.hugepages == policy_kind(policy)
        ]
        cells.sort(key=lambda cell: cell.measured.order())
    return Subject(kernel, tuple(cells))


def placed(subjects: Sequence[Subject], names: Sequence[str]) -> list[Subject]:
    """The subjects with each cell once in each placement, baselines in the first; with one as they are."""
    if len(names) < 2:
        return list(subjects)
    return [
        replace(
            one,
            cells=tuple(
                _placed(cell, name, cell.is_baseline and name == names[0])
                for name in names
                for cell in one.cells
            ),
        )
        for one in subjects
    ]


def key_of(run: RunOf) -> CellKey:
    """The key of the cell that a record's run is of."""
    return run.module, run.pages, run.placement


def order_of_round(subjects: Sequence[Subject], number: int, seed: int, pairs: int = 1) -> list[Step]:
    """One round: every cell of every kernel once, the baselines `pairs` times more (A/A), shuffled.

    Kernels are shuffled, and cells within a kernel: what is paired lies close in time, whatever the machine
    does over the round. Another round has another order; the same seed gives the same orders.
    """
    shuffle = random.Random(f"pagewise:{seed}:{number}")
    planned: list[tuple[Kernel, Cell, Series]] = []
    for one in shuffle.sample(subjects, len(subjects)):
        runs: list[tuple[Kernel, Cell, Series]] = [(one.kernel, cell, "compare") for cell in one.cells]
        runs += [(one.kernel, cell, "aa") for cell in one.cells if cell.is_baseline for _ in range(pairs)]
        shuffle.shuffle(runs)
        planned += runs
    return list(_numbered(planned, number))


def order_of_groups(
    subjects: Sequence[Subject], groups: Mapping[str, tuple[tuple[str, str], ...]], number: int, seed: int
) -> list[Step]:
    """One round of counting: every cell of every kernel once per group of events, the baselines twice (A/A).

    Shuffled as in a comparison. `groups` gives the settings of a group's runs by its name.
    """
    shuffle = random.Random(f"pagewise:{seed}:{number}")
    steps: list[Step] = []
    for one in shuffle.sample(subjects, len(subjects)):
        runs: list[tuple[Cell, Series, str]] = []
        for group in groups:
            runs += [(cell, "counters", group) for cell in one.cells]
            runs += [(cell, "counters_aa", group) for cell in one.cells if cell.is_baseline]
        shuffle.shuffle(runs)
        steps += [
            Step(one.kernel, cell, series, number, len(steps) + place, group, groups[group])
            for place, (cell, series, group) in enumerate(runs, start=1)
        ]
    return steps


def order_of_sweeps(subjects: Sequence[Subject], seed: int) -> list[Step]:
    """Every sweep of each cell that has it, those of a kernel one after the other, cells shuffled within."""
    shuffle = random.Random(f"pagewise:{seed}:sweep")
    planned = []
    for one in subjects:
        for sweep in one.kernel.sweeps:
            cells = [cell for cell in one.cells if sweep.suits(cell.measured)]
            planned += [(one.kernel, cell, sweep) for cell in shuffle.sample(cells, len(cells))]
    return [
        Step(kernel, cell, "sweep", 1, position, sweep=sweep)
        for position, (kernel, cell, sweep) in enumerate(planned, start=1)
    ]


def _numbered(planned: Sequence[tuple[Kernel, Cell, Series]], number: int) -> Iterator[Step]:
    for position, (kernel, cell, series) in enumerate(planned, start=1):
        yield Step(kernel, cell, series, number, position)


def fitting(configurations: Iterable[Configuration], baseline: str) -> list[Configuration]:
    """Those whose label fits the glob; where none does, those that fit without library, width and target."""
    known = list(configurations)
    fits = [one for one in known if fnmatchcase(one.label, baseline)]
    return fits or [one for one in known if fnmatchcase(one.plain, baseline)]


def baselines(configurations: Iterable[Configuration], baseline: str) -> Iterator[Configuration]:
    """The baseline of each package and compiler that has one: of those that fit, the first in order."""
    of: dict[tuple[str, str], list[Configuration]] = {}
    for one in sorted(configurations, key=Configuration.order):
        of.setdefault((one.package, one.compiler), []).append(one)
    for those in of.values():
        yield from fitting(those, baseline)[:1]


def _with_pages(cell: Cell, policy: str) -> Cell:
    """The cell, told another page policy; no baseline."""
    equal = tuple(replace(configuration, hugepages=policy) for configuration in cell.stands_for)
    return Cell(replace(cell.measured, hugepages=policy), equal, False, policy)


def _placed(cell: Cell, name: str, is_baseline: bool) -> Cell:
    """The cell in a placement that has a name."""
    equal = tuple(replace(configuration, placement=name) for configuration in cell.stands_for)
    measured = replace(cell.measured, placement=name)
    return Cell(measured, equal, is_baseline, cell.pages, name)


def _sensitive_values(kernel: Kernel, configuration: Configuration) -> tuple[str, ...]:
    values = tuple(getattr(configuration, name) for name in kernel.sensitive_to)
    build = (configuration.package, configuration.version, configuration.builder)
    return (*values, *build, configuration.openmp, configuration.papi)
