"""What each single choice does, all else as in the baseline, and the best configuration of each kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from pagewise.analysis.analysis import Group, KernelResult
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import Row
from pagewise.analysis.statistics import geometric_mean
from pagewise.analysis.verdict import Outcome as Verdict
from pagewise.core.dimensions import DIMENSIONS, Dimension, sensitive_dimensions
from pagewise.core.plan import Cell

Outcome = Literal["use", "keep", "choose", "same"]
#: Between two compilers.
AGAINST = " : "
# Of two choices the one that asks less of the machine is named, if it is faster in this share of the cases
# and its times are no more than this longer.
_NEARLY, _NEXT_TO_NOTHING = 0.9, 0.02


@dataclass(frozen=True)
class Effect:
    """What one choice does to one kernel with one compiler, all else as in the baseline."""

    kernel: KernelResult
    compiler: str
    ratio: Ratio
    verdict: Verdict


@dataclass(frozen=True)
class Choice:
    """A choice by itself and its effects: a value of a dimension, or of `compiler` one against another.

    `missing` counts those that were planned and could not be ranked.
    """

    factor: str
    value: str
    effects: tuple[Effect, ...]
    missing: int

    def having(self, verdict: Verdict) -> list[Effect]:
        """The effects with this verdict."""
        return [effect for effect in self.effects if effect.verdict == verdict]

    @property
    def middle(self) -> float | None:
        """The median of all its ratios, decided or not; None without any."""
        return median(effect.ratio.median for effect in self.effects) if self.effects else None

    @property
    def mean(self) -> Ratio | None:
        """The geometric mean of all its ratios; None without any."""
        return geometric_mean([effect.ratio for effect in self.effects])

    @property
    def ends(self) -> tuple[float, float] | None:
        """The smallest and the largest ratio; None without any."""
        ratios = [effect.ratio.median for effect in self.effects]
        return (min(ratios), max(ratios)) if ratios else None


@dataclass(frozen=True)
class Advice:
    """What to do about one dimension.

    `outcome`: `use` the first of the `choices`, `keep` the value of the baseline (because the choices are
    slower), `choose` by kernel, or all are the `same`. `equal` are choices about as good as the first one.
    """

    outcome: Outcome
    choices: tuple[Choice, ...] = ()
    equal: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class Best:
    """Of a kernel and compiler, the configuration with the smallest ratio of those that are faster.

    `row` is None where none is. `as_good` are the others whose interval overlaps that of the best.
    """

    kernel: KernelResult
    group: Group
    row: Row | None
    as_good: tuple[Row, ...]


def choices(kernels: Sequence[KernelResult]) -> list[Choice]:
    """Every choice that was planned, in the order of dimensions; compilers last."""
    found = [
        _choice(kernels, dimension, value)
        for dimension in DIMENSIONS
        for value in dict.fromkeys(value for one in kernels for value in _sensitive_values(one, dimension))
    ]
    return [*found, *_compilers(kernels)]


def bests(kernels: Sequence[KernelResult]) -> list[Best]:
    """The best configurations, by kernel and compiler; those that have nothing to compare are left out."""
    return [
        _best(one, group)
        for one in kernels
        for group in one.groups
        if any(row.time_ratio is not None for row in group.ranked)
    ]


def advise(found: Sequence[Choice]) -> Advice:
    """What to do about a dimension, from the choices in it that have effects."""
    most = min(found, key=_worth)
    # Choices come in the order of how little they ask of the machine.
    best, *others = [one for one in found if one is most or _about_as_good(one, most)]
    if best.having("faster") and best.having("slower"):
        return Advice("choose", (best,))
    if best.having("faster"):
        return Advice("use", (best,), tuple(others))
    slower = tuple(one for one in found if one.having("slower"))
    return Advice("keep", slower) if slower else Advice("same")


def values_of(result: KernelResult, dimension: Dimension) -> list[str]:
    """A dimension's values other than the baseline's, in the order of rows."""
    cells = [row.cell for group in result.groups for row in (*group.ranked, *group.unranked)]
    cells.sort(key=lambda cell: cell.measured.order()[2:])
    values = dict.fromkeys(dimension.of(cell.measured) for cell in cells)
    baselines = {dimension.of(cell.measured) for cell in cells if cell.is_baseline}
    return [value for value in values if value not in baselines]


def alone(result: KernelResult, dimension: Dimension, value: str) -> list[Row]:
    """The ranked rows that differ from their baseline in this dimension only."""
    return [
        row
        for group in result.groups
        if (base := group.baseline) is not None
        for row in group.ranked
        if dimension.of(row.cell.measured) == value and differs_alone(result, row.cell, base.cell, dimension)
    ]


def differs_alone(result: KernelResult, cell: Cell, base: Cell, dimension: Dimension) -> bool:
    """Whether two cells agree in all dimensions that the kernel is sensitive to, except this one."""
    others = [one for one in sensitive_dimensions(result.kernel) if one.name != dimension.name]
    return all(one.of(cell.measured) == one.of(base.measured) for one in others)


def fastest(group: Group) -> Row | None:
    """The row with the smallest ratio of those that are faster, None when none is."""
    faster = [
        (row.time_ratio.median, row) for row in group.ranked if row.verdict == "faster" and row.time_ratio
    ]
    return min(faster, key=lambda pair: pair[0], default=(0.0, None))[1]


def _sensitive_values(result: KernelResult, dimension: Dimension) -> list[str]:
    return values_of(result, dimension) if result.kernel.is_sensitive_to(dimension.name) else []


def _choice(kernels: Sequence[KernelResult], dimension: Dimension, value: str) -> Choice:
    effects, missing = [], 0
    for one in (kernel for kernel in kernels if kernel.kernel.is_sensitive_to(dimension.name)):
        for row in alone(one, dimension, value):
            if row.time_ratio is not None:
                effects.append(Effect(one, row.cell.compiler, row.time_ratio, row.verdict))
        for group in one.groups:
            planned = [row for row in group.unranked if dimension.of(row.cell.measured) == value]
            base = next((row for row in (*group.ranked, *group.unranked) if row.cell.is_baseline), None)
            missing += any(
                base is not None and differs_alone(one, row.cell, base.cell, dimension) for row in planned
            )
    return Choice(dimension.name, value, tuple(effects), missing)


def _compilers(kernels: Sequence[KernelResult]) -> Iterator[Choice]:
    effects: dict[str, list[Effect]] = {}
    for one in kernels:
        for found in one.versus:
            name = f"{found.compiler}{AGAINST}{found.reference}"
            effects.setdefault(name, []).append(Effect(one, found.compiler, found.time_ratio, found.verdict))
    for name, those in effects.items():
        yield Choice("compiler", name, tuple(those), 0)


def _best(one: KernelResult, group: Group) -> Best:
    first = fastest(group)
    if first is None or first.time_ratio is None or first.time_ratio.high is None:
        return Best(one, group, None, ())
    high = first.time_ratio.high
    others = [row for row in group.ranked if row.verdict == "faster" and row is not first]
    overlapping = [
        (row.time_ratio.median, row)
        for row in others
        if row.time_ratio is not None and row.time_ratio.low is not None and row.time_ratio.low <= high
    ]
    overlapping.sort(key=lambda pair: pair[0])
    return Best(one, group, first, tuple(row for _, row in overlapping))


def _worth(choice: Choice) -> tuple[int, float]:
    """Sorts choices: those that help in more cases than they harm first, then by how much."""
    net = len(choice.having("slower")) - len(choice.having("faster"))
    decided = [effect.ratio.median for effect in choice.effects if effect.verdict != "inconclusive"]
    return net, math.prod(decided)


def _about_as_good(one: Choice, best: Choice) -> bool:
    """Whether a choice is faster nearly as often, and costs next to nothing more where both were measured."""
    theirs = {(effect.kernel.kernel.name, effect.compiler): effect.ratio.median for effect in best.effects}
    ours = {(effect.kernel.kernel.name, effect.compiler): effect.ratio.median for effect in one.effects}
    shared = [ours[key] / theirs[key] for key in ours.keys() & theirs.keys()]
    often = len(one.having("faster")) >= _NEARLY * len(best.having("faster"))
    harmless = len(one.having("slower")) <= len(best.having("slower"))
    return bool(shared) and often and harmless and median(shared) <= 1 + _NEXT_TO_NOTHING
