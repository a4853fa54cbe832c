"""The effect of each single choice against the baseline, and the best configuration of each kernel."""

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
from pagewise.analysis.verdict import Outcome
from pagewise.core.dimensions import DIMENSIONS, LOOP, Dimension
from pagewise.core.plan import Cell

AdviceOutcome = Literal["use", "keep", "choose", "same", "unclear"]
#: Between two compilers.
AGAINST = " : "
# Of two choices the less demanding one is named, if it is faster in at least this share of the cases and its
# times are at most this much longer.
_NEARLY, _NEGLIGIBLE = 0.9, 0.02


@dataclass(frozen=True)
class Effect:
    """The effect of one choice on one kernel with one compiler, all else being equal.

    `memory` is that on a program's peak memory; `first_touch` the ratio of the medians of first-touch times.
    """

    kernel: KernelResult
    compiler: str
    ratio: Ratio
    verdict: Outcome
    memory: Ratio | None = None
    first_touch: float | None = None


@dataclass(frozen=True)
class Choice:
    """A single choice and its effects: a value of a dimension, or of `compiler` one against another.

    `missing` counts the effects that were planned and excluded; those over a memory budget do not count.
    `loop` is how loops are written on both sides if not as in the baseline: the compiler can insert
    prefetches into its own loops only.
    """

    factor: str
    value: str
    effects: tuple[Effect, ...]
    missing: int
    loop: str | None = None

    def having(self, verdict: Outcome) -> list[Effect]:
        """The effects with this verdict."""
        return [effect for effect in self.effects if effect.verdict == verdict]

    def effects_of(self, compiler: str) -> tuple[Effect, ...]:
        """The effects with this compiler."""
        return tuple(effect for effect in self.effects if effect.compiler == compiler)

    @property
    def middle(self) -> float | None:
        """The median of all its ratios, inconclusive ones too; None without any."""
        return median(effect.ratio.median for effect in self.effects) if self.effects else None

    @property
    def mean(self) -> Ratio | None:
        """The geometric mean of all its ratios, of one ratio itself; None without any."""
        ratios = [effect.ratio for effect in self.effects]
        return ratios[0] if len(ratios) == 1 else geometric_mean(ratios)

    @property
    def first_touch(self) -> float | None:
        """The median of its ratios of first-touch time; None without any."""
        known = [effect.first_touch for effect in self.effects if effect.first_touch is not None]
        return median(known) if known else None

    @property
    def ends(self) -> tuple[float, float] | None:
        """The smallest and the largest ratio; None without any."""
        ratios = [effect.ratio.median for effect in self.effects]
        return (min(ratios), max(ratios)) if ratios else None


@dataclass(frozen=True)
class Advice:
    """What to do about one dimension.

    `outcome`: `use` the first of the `choices`, `keep` the value of the baseline (because the choices are
    slower), `choose` by kernel, or all are the `same`; `unclear` if that would contradict the mean of the
    `choices`. `equal` are choices about as good as the first one.
    """

    outcome: AdviceOutcome
    choices: tuple[Choice, ...] = ()
    equal: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class Best:
    """The configuration of a kernel and compiler with the smallest ratio of those that are faster.

    `row` is None if none is faster. `as_good` are the others whose interval overlaps that of the best.
    """

    kernel: KernelResult
    group: Group
    row: Row | None
    as_good: tuple[Row, ...]


def choices(kernels: Sequence[KernelResult]) -> list[Choice]:
    """Every choice that was planned, in the order of dimensions; compilers last."""
    by_value = [
        _choice(kernels, dimension, value, loop)
        for dimension in DIMENSIONS
        for value in dict.fromkeys(
            value for result in _sensitive(kernels, dimension) for value in values_of(result, dimension)
        )
        for loop in _loops(kernels, dimension, value)
    ]
    return [*by_value, *_compilers(kernels)]


def bests(kernels: Sequence[KernelResult]) -> list[Best]:
    """The best configurations, by kernel and compiler, if there is something to compare."""
    return [
        _best(result, group)
        for result in kernels
        for group in result.groups
        if any(row.time_ratio is not None for row in group.ranked)
    ]


def advise(known: Sequence[Choice]) -> Advice:
    """What to do about a dimension, from the choices in it that have effects.

    It never contradicts the mean of a choice, which reports show beside it.
    """
    advice = _by_verdicts(known)
    against = tuple(choice for choice in known if _contradicts(advice, choice))
    return Advice("unclear", against) if against else advice


def _contradicts(advice: Advice, choice: Choice) -> bool:
    """Whether the interval of a choice's mean lies on the other side of 1 than the advice."""
    mean = choice.mean
    if mean is None or not mean.excludes_equality or advice.outcome == "choose":
        return False
    if advice.outcome == "use":
        return choice is advice.choices[0] and mean.median > 1.0
    return advice.outcome == "same" or mean.median < 1.0


def _by_verdicts(known: Sequence[Choice]) -> Advice:
    """What to do according to the verdicts alone."""
    most = min(known, key=_worth)
    # Choices are ordered from the least demanding on.
    best, *others = [choice for choice in known if choice is most or _about_as_good(choice, most)]
    if best.having("faster") and best.having("slower"):
        return Advice("choose", (best,))
    if best.having("faster"):
        return Advice("use", (best,), tuple(others))
    slower = tuple(choice for choice in known if choice.having("slower"))
    return Advice("keep", slower) if slower else Advice("same")


def values_of(result: KernelResult, dimension: Dimension) -> list[str]:
    """A dimension's values other than the baseline's, in the order of rows."""
    cells = [row.cell for group in result.groups for row in group.rows]
    cells.sort(key=lambda cell: cell.measured.sort_key()[2:])
    baselines = {dimension.of(cell.measured) for cell in cells if cell.is_baseline}
    return list(dict.fromkeys(v for cell in cells if (v := dimension.of(cell.measured)) not in baselines))


def alone(result: KernelResult, dimension: Dimension, value: str) -> list[Row]:
    """The ranked rows with this value whose `change` answers for it."""
    return [
        row
        for group in result.groups
        for row in group.ranked
        if _answers(row, dimension, value) and row.change and row.change.dimension == dimension.name
    ]


def fastest(group: Group) -> Row | None:
    """The row with the smallest ratio of those that are faster, None if none is."""
    return next(iter(_faster(group)), None)


def _faster(group: Group) -> list[Row]:
    """The rows that are faster than the baseline, the fastest first, without those over a memory budget."""
    faster = [
        (row.time_ratio.median, row)
        for row in group.ranked
        if row.verdict == "faster" and row.time_ratio and not row.over_budget
    ]
    return [row for _, row in sorted(faster, key=lambda pair: pair[0])]


def loop_of(row: Row, dimension: Dimension) -> str | None:
    """How loops are written on both sides of a row's change in a dimension, None for as in the baseline."""
    return LOOP.of(row.cell.measured) if dimension is not LOOP and LOOP.name in row.differs else None


def _answers(row: Row, dimension: Dimension, value: str) -> bool:
    """Whether a row has this value, and all else but the loop as its baseline."""
    has_value = bool(row.differs) and dimension.of(row.cell.measured) == value
    return has_value and {*row.differs, LOOP.name} == {dimension.name, LOOP.name}


def _loops(kernels: Sequence[KernelResult], dimension: Dimension, value: str) -> list[str | None]:
    """The loops with which a value was planned, see `Choice`."""
    rows = (row for result in _sensitive(kernels, dimension) for group in result.groups for row in group.rows)
    loops = dict.fromkeys(loop_of(row, dimension) for row in rows if _answers(row, dimension, value))
    return list(loops) or [None]


def _sensitive(kernels: Sequence[KernelResult], dimension: Dimension) -> list[KernelResult]:
    return [result for result in kernels if result.kernel.is_sensitive_to(dimension.name)]


def _choice(kernels: Sequence[KernelResult], dimension: Dimension, value: str, loop: str | None) -> Choice:
    effects, missing = [], 0
    for result in _sensitive(kernels, dimension):
        for row in alone(result, dimension, value):
            if row.over_budget or (change := row.change) is None or loop_of(row, dimension) != loop:
                continue
            touch = _first_touch(result, row, change.reference)
            compiler = row.cell.compiler
            effects.append(Effect(result, compiler, change.time_ratio, change.verdict, row.memory, touch))
        missing += sum(
            any(_answers(row, dimension, value) and loop_of(row, dimension) == loop for row in group.unranked)
            for group in result.groups
        )
    return Choice(dimension.name, value, tuple(effects), missing, loop)


def _first_touch(result: KernelResult, row: Row, reference: Cell) -> float | None:
    """The first-touch time of a row over that of its reference; None if one of them has none."""
    rows = (other for group in result.groups for other in group.ranked)
    other = next((other for other in rows if other.cell.key == reference.key), None)
    if other is None or not row.populate or not other.populate:
        return None
    return row.populate / other.populate


def _compilers(kernels: Sequence[KernelResult]) -> Iterator[Choice]:
    effects: dict[tuple[str, str | None], list[Effect]] = {}
    for result in kernels:
        for item in result.versus:
            effect = Effect(result, item.compiler, item.time_ratio, item.verdict)
            effects.setdefault((f"{item.compiler}{AGAINST}{item.reference}", item.loop), []).append(effect)
    for (name, loop), several in effects.items():
        yield Choice("compiler", name, tuple(several), 0, loop)


def _best(result: KernelResult, group: Group) -> Best:
    faster = [(row, row.time_ratio) for row in _faster(group) if row.time_ratio is not None]
    if not faster or faster[0][1].high is None:
        return Best(result, group, None, ())
    (first, _), *others = faster
    high = faster[0][1].high
    as_good = tuple(row for row, ratio in others if ratio.low is not None and ratio.low <= high)
    return Best(result, group, first, as_good)


def _worth(choice: Choice) -> tuple[int, float]:
    """Sorts choices: first those that help in more cases than they harm, then by how much."""
    net = len(choice.having("slower")) - len(choice.having("faster"))
    return net, math.prod(e.ratio.median for e in choice.effects if e.verdict != "inconclusive")


def _about_as_good(choice: Choice, best: Choice) -> bool:
    """Whether a choice is faster nearly as often, and costs at most a little more if both were measured."""
    ours, theirs = (
        {(effect.kernel.kernel.name, effect.compiler): effect.ratio.median for effect in item.effects}
        for item in (choice, best)
    )
    shared = [ours[key] / theirs[key] for key in ours.keys() & theirs.keys()]
    often = len(choice.having("faster")) >= _NEARLY * len(best.having("faster"))
    harmless = len(choice.having("slower")) <= len(best.having("slower"))
    return bool(shared) and often and harmless and median(shared) <= 1 + _NEGLIGIBLE
