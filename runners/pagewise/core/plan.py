"""Plans a comparison: the distinct configurations of a kernel, the order of runs. Pure functions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from types import MappingProxyType
from typing import Any, TypeAlias

from pagewise.core.benchmark import Benchmark, Sweep
from pagewise.core.configuration import Configuration, RunSettings
from pagewise.core.manifest import Last, PlannedCell, PlannedSubject
from pagewise.core.page_policy import PagePolicy
from pagewise.core.record_parts import RunOf, Series

#: As the value of a setting: the variable is removed.
UNSET = "-"
# See Cell.key.
CellKey: TypeAlias = tuple[str, str | None, str | None, str | None]
#: The name of a kernel or program, and the key of one of its cells.
CellOf: TypeAlias = tuple[str, CellKey]


@dataclass(frozen=True)
class Cell:
    """A distinct configuration of a kernel: the one measured, and all it stands for (itself too).

    `pages` is the page policy that its runs request, None for the one that they were built for; the
    configurations then have it as their `hugepages`. They also have the placement of its runs if there are
    several, and the settings that are compared.
    """

    measured: Configuration
    stands_for: tuple[Configuration, ...]
    is_baseline: bool
    pages: str | None = None

    @property
    def placement(self) -> str | None:
        """The name of the placement of its runs, None if there is only one."""
        return self.measured.placement or None

    @property
    def settings(self) -> RunSettings:
        """What its runs get that is compared."""
        return self.measured.settings

    @property
    def options(self) -> str | None:
        """Its settings as text, None without any."""
        return self.settings.text or None

    @property
    def key(self) -> CellKey:
        """What identifies it among the cells of its kernel: module, requested policy, placement, settings."""
        return self.measured.module, self.pages, self.placement, self.options

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments that its runs get in addition to the kernel's own: page policy and options."""
        pages = () if self.pages is None else ("--pages", self.pages)
        options = self.settings.options.items()
        # Records, and so kernel.yaml, have _ in names instead of -.
        words = (part for name, value in options for part in (f"--{name.replace('_', '-')}", value))
        return (*pages, *words)

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment of its runs: the inherited one with its settings."""
        given = self.settings.environment
        removed = {name for name, value in given.items() if value == UNSET}
        return {name: value for name, value in {**inherited, **given}.items() if name not in removed}

    @property
    def compiler(self) -> str:
        """The compiler, the same for all it stands for if the kernel is sensitive to it."""
        return self.measured.compiler


@dataclass(frozen=True)
class Subject:
    """A kernel or program with its cells, sorted by compiler and variants."""

    benchmark: Benchmark
    cells: tuple[Cell, ...]

    def compilers(self) -> list[str]:
        """The compilers among the cells, in order."""
        return list(dict.fromkeys(cell.compiler for cell in self.cells))

    def planned_subject(self) -> PlannedSubject:
        """For the manifest: what is compared, and modules by cell."""
        cells = (
            PlannedCell(
                cell.measured.module,
                tuple(configuration.module for configuration in cell.stands_for),
                cell.is_baseline,
                cell.pages,
                cell.placement,
                cell.settings if cell.options else None,
            )
            for cell in self.cells
        )
        return PlannedSubject(self.benchmark, tuple(cells))

    @classmethod
    def of(cls, planned: PlannedSubject, configurations: Mapping[str, Configuration]) -> Subject:
        """The subject of a manifest; configurations by module. Raises KeyError for an unknown module."""
        cells = []
        for entry in planned.cells:
            equal = tuple(configurations[module] for module in entry.stands_for)
            cell = Cell(configurations[entry.measured], equal, entry.is_baseline)
            settings, placement = entry.settings or RunSettings(), entry.placement or ""
            changed = _with(cell, entry.is_baseline, entry.pages, settings=settings, placement=placement)
            cells.append(changed)
        return cls(planned.kernel, tuple(cells))


@dataclass(frozen=True)
class Step:
    """One run to be made: kernel and cell, series, round, and place in the round.

    `sweep` is the curve that it measures, for the series `sweep` alone. `group` names the events that it
    counts, `settings` are environment variables for it alone.
    """

    benchmark: Benchmark
    cell: Cell
    series: Series
    round: int
    position: int
    group: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    sweep: Sweep | None = None

    @property
    def of(self) -> CellOf:
        """What it is a run of."""
        return self.benchmark.name, self.cell.key

    @property
    def swept(self) -> str | None:
        """What is swept, None for other runs."""
        return None if self.sweep is None else self.sweep.name

    @property
    def arguments(self) -> tuple[str, ...]:
        """The kernel's arguments for this series, and those of the cell."""
        arguments = self.benchmark.arguments if self.sweep is None else self.sweep.arguments
        return (*arguments, *self.cell.arguments)


def subject(
    kernel: Benchmark, configurations: Iterable[Configuration], baseline: str, pages: Sequence[str] = ()
) -> Subject:
    """Merges the configurations between which the kernel makes no difference.

    Configurations are equal when they agree in all dimensions to which the kernel is sensitive and come from
    one package, version and build of the rest; `baseline` is a glob over `hugepages/prefetch-stores` (see
    `baselines`). Of equals, the baseline is measured, else the first in order. Each policy in `pages`
    (`thp:64k`) adds a cell to each of its kind.
    """
    groups: dict[tuple[str, ...], list[Configuration]] = {}
    ordered = sorted(configurations, key=Configuration.sort_key)
    for configuration in ordered:
        groups.setdefault(_sensitive_values(kernel, configuration), []).append(configuration)
    compared = set(baselines(ordered, baseline))
    cells = []
    for equal in groups.values():
        named = [configuration for configuration in equal if configuration in compared]
        cells.append(Cell((named or equal)[0], tuple(equal), bool(named)))
    if "hugepages" in kernel.sensitive_to:
        cells += [
            _with(cell, False, policy)
            for policy in dict.fromkeys(pages)
            for cell in cells
            if cell.measured.hugepages == PagePolicy(policy).kind
        ]
        cells.sort(key=lambda cell: cell.measured.sort_key())
    return Subject(kernel, tuple(cells))


def at_placements(subjects: Sequence[Subject], names: Sequence[str]) -> list[Subject]:
    """The subjects with each cell once per placement, baselines in the first; unchanged with one name."""
    return _with_changes(subjects, [{"placement": name} for name in names] if len(names) > 1 else [{}])


def with_settings(subjects: Sequence[Subject], settings: Sequence[RunSettings]) -> list[Subject]:
    """The subjects with each cell once per settings, baselines with the first; unchanged without any."""
    return _with_changes(subjects, [{"settings": each} for each in settings] or [{}])


def with_options(subjects: Sequence[Subject], options: Mapping[str, Sequence[str]]) -> list[Subject]:
    """The subjects with each cell once per combination of the values of options, by the options' names.

    A kernel gets the options and values that its kernel.yaml lists. Baselines have the first value of each. A
    build without OpenMP has no options of threads but in its default, and its other cells are left out.
    """
    return [_with_options(subject, options) for subject in subjects]


def _with_options(subject: Subject, options: Mapping[str, Sequence[str]]) -> Subject:
    kernel = subject.benchmark
    own = {
        name: [value for value in options.get(name, ()) if value in known]
        for name, known in kernel.options.items()
    }
    own = {name: values for name, values in own.items() if values}
    every = [RunSettings(options=dict(zip(own, values, strict=True))) for values in product(*own.values())]
    (changed,) = with_settings([subject], every if own else [])

    def is_built(cell: Cell) -> bool:
        given = cell.settings.options
        return cell.measured.has_threads or all(
            given[name] == kernel.options[name][0] for name in kernel.options_of_threads if name in given
        )

    return replace(changed, cells=tuple(filter(is_built, changed.cells)))


def _with_changes(subjects: Sequence[Subject], changes: Sequence[Mapping[str, Any]]) -> list[Subject]:
    """The subjects with each cell once per change of its configurations; baselines have the first."""
    return [
        replace(
            subject,
            cells=tuple(
                _with(cell, cell.is_baseline and change is changes[0], **change)
                for change in changes
                for cell in subject.cells
            ),
        )
        for subject in subjects
    ]


def key_of(run: RunOf | Last) -> CellKey:
    """The key of the cell that a record's run, or a last round, is of."""
    return run.module, run.pages, run.placement, run.options


def order_of_round(
    subjects: Sequence[Subject],
    number: int,
    seed: int,
    pairs: int = 1,
    groups: Mapping[Any, tuple[tuple[str, str], ...]] = MappingProxyType({None: ()}),
    *,
    related: Mapping[str, str] = MappingProxyType({}),
) -> list[Step]:
    """One round: every cell of every kernel once, the baselines `pairs` times more (A/A), shuffled.

    Kernels are shuffled, and cells within a kernel: paired runs are close in time, whatever the machine does
    during the round. Each round has another order; the same seed gives the same orders. groups: the settings
    of runs by group of events; with groups, runs count them, and there is a run for each. related: by the
    name of a program, that of another one with which it is compared, and shuffled.
    """
    shuffle = random.Random(f"pagewise:{seed}:{number}")
    close: dict[str, list[Subject]] = {}
    for subject in subjects:
        name = subject.benchmark.name
        close.setdefault(related.get(name, name), []).append(subject)
    steps: list[Step] = []
    for several in shuffle.sample(list(close.values()), len(close)):
        runs: list[tuple[Benchmark, Cell, Series, str | None]] = []
        for subject, group in product(several, groups):
            kernel, cells = subject.benchmark, subject.cells
            runs += [(kernel, cell, "counters" if group else "compare", group) for cell in cells]
            repeated = [cell for cell in cells if cell.is_baseline for _ in range(pairs)]
            runs += [(kernel, cell, "counters_aa" if group else "aa", group) for cell in repeated]
        shuffle.shuffle(runs)
        steps += [
            Step(kernel, cell, series, number, position, group, groups[group])
            for position, (kernel, cell, series, group) in enumerate(runs, start=len(steps) + 1)
        ]
    return steps


def order_of_sweeps(subjects: Sequence[Subject], seed: int) -> list[Step]:
    """Every sweep of each cell that has it, kernel by kernel, the cells of a sweep shuffled."""
    shuffle = random.Random(f"pagewise:{seed}:sweep")
    planned = []
    for subject in subjects:
        for sweep in subject.benchmark.sweeps:
            cells = [cell for cell in subject.cells if sweep.suits(cell.measured)]
            planned += [(subject.benchmark, cell, sweep) for cell in shuffle.sample(cells, len(cells))]
    return [
        Step(kernel, cell, "sweep", 1, position, sweep=sweep)
        for position, (kernel, cell, sweep) in enumerate(planned, start=1)
    ]


def fitting(configurations: Iterable[Configuration], baseline: str) -> list[Configuration]:
    """The configurations whose label matches the glob, or else whose plain variants match it."""
    known = list(configurations)
    matches = [configuration for configuration in known if fnmatchcase(configuration.label, baseline)]
    return matches or [configuration for configuration in known if fnmatchcase(configuration.plain, baseline)]


def baselines(configurations: Iterable[Configuration], baseline: str) -> Iterator[Configuration]:
    """The baseline of each package and compiler that has one: the first match in order."""
    groups: dict[tuple[str, str], list[Configuration]] = {}
    for configuration in sorted(configurations, key=Configuration.sort_key):
        groups.setdefault((configuration.package, configuration.compiler), []).append(configuration)
    for group in groups.values():
        yield from fitting(group, baseline)[:1]


def _with(
    cell: Cell,
    is_baseline: bool,
    pages: str | None = None,
    settings: RunSettings | None = None,
    **changes: Any,
) -> Cell:
    """The cell with another page policy, further settings and other values in its configurations."""
    if pages is not None:
        changes["hugepages"] = pages
    if settings is not None:
        changes["settings"] = cell.settings.and_further(settings)
    measured, *equal = (replace(each, **changes) for each in (cell.measured, *cell.stands_for))
    return Cell(measured, tuple(equal), is_baseline, pages or cell.pages)


def _sensitive_values(kernel: Benchmark, configuration: Configuration) -> tuple[str, ...]:
    values = tuple(getattr(configuration, name) for name in kernel.sensitive_to)
    build = (configuration.package, configuration.version, configuration.builder)
    return (*values, *build, configuration.openmp, configuration.papi)
