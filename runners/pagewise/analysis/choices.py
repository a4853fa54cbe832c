"""The effect of each single choice against the baseline, and the best configuration of each kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from pagewise.analysis.comparison import Comparison, Verdict
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import Group, KernelResult, Row
from pagewise.analysis.statistics import geometric_mean
from pagewise.core.benchmark import Benchmark
from pagewise.core.dimensions import LOOP, Dimension, dimensions_of

AdviceOutcome = Literal["use", "keep", "choose", "same", "unclear"]
#: Between two compilers.
AGAINST = " : "
# Of two choices the less demanding one is named, if it is faster in at least this share of the cases and its
# times are at most this much longer.
_NEARLY, _NEGLIGIBLE = 0.9, 0.02


@dataclass(frozen=True)
class Choice:
    """A single choice and its effects: a value of a dimension, or of `compiler` one against another.

    `missing` counts the effects that were planned and excluded; those over a memory budget do not count.
    `loop` is how loops are written on both sides if not as in the baseline: the compiler can insert
    prefetches into its own loops only.
    """

    factor: str
    value: str
    effects: tuple[Comparison, ...]
    missing: int
    loop: str | None = None

    def having(self, verdict: Verdict) -> list[Comparison]:
        """The effects with this verdict."""
        return [effect for effect in self.effects if effect.verdict == verdict]

    @property
    def ratios(self) -> list[Ratio]:
        """The time ratios of its effects."""
        return [effect.ratio for effect in self.effects if effect.ratio is not None]

    @property
    def mean(self) -> Ratio | None:
        """The geometric mean of all its ratios, of one ratio itself; None without any."""
        return self.ratios[0] if len(self.ratios) == 1 else geometric_mean(self.ratios)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The smallest and the largest ratio; None without any."""
        ratios = [ratio.median for ratio in self.ratios]
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

    benchmark: Benchmark
    group: Group
    row: Row | None
    as_good: tuple[Row, ...]

    @property
    def shown(self) -> Row | None:
        """The best row, or the baseline where nothing is faster."""
        return self.row or self.group.baseline


def choices(kernels: Sequence[KernelResult]) -> list[Choice]:
    """Every choice that was planned, in the order of dimensions; compilers last."""
    by_value = []
    for dimension in dimensions_of(result.benchmark for result in kernels):
        sensitive = [result for result in kernels if result.benchmark.is_sensitive_to(dimension.name)]
        values = dict.fromkeys(value for result in sensitive for value in values_of(result, dimension))
        by_value += [choice for value in values for choice in _choices(sensitive, dimension, value)]
    compilers: dict[tuple[str, str | None], list[Comparison]] = {}
    for result in kernels:
        for row in result.of("compilers"):
            compilers.setdefault((versus(row), own_loop(row)), []).append(row)
    by_compiler = (
        Choice("compiler", name, tuple(several), 0, loop) for (name, loop), several in compilers.items()
    )
    return [*by_value, *by_compiler]


def versus(row: Comparison) -> str:
    """Two compilers that are compared: `llvm-22.1.8 : gcc-12.2.0`."""
    return AGAINST.join((row.cell.compiler, "" if row.reference is None else row.reference.compiler))


def own_loop(row: Comparison) -> str | None:
    """How loops are written in a comparison of compilers, None for as in their baselines."""
    return None if row.cell.is_baseline else LOOP.of(row.cell.measured)


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

    It never contradicts the mean of a choice, which reports show next to it.
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


def alone(result: KernelResult, dimension: Dimension, value: str) -> list[tuple[Row, Comparison]]:
    """The ranked rows with this value whose `change`, which is returned too, answers for it."""
    return [
        (row, row.change)
        for row in result.ranked
        if _answers(row, dimension, value) and row.change and row.change.dimension == dimension.name
    ]


def loop_of(row: Row, dimension: Dimension) -> str | None:
    """How loops are written on both sides of a row's change in a dimension, None for as in the baseline."""
    return LOOP.of(row.cell.measured) if dimension is not LOOP and LOOP.name in row.differs else None


def _answers(row: Row, dimension: Dimension, value: str) -> bool:
    """Whether a row has this value, and all else but the loop as its baseline."""
    has_value = bool(row.differs) and dimension.of(row.cell.measured) == value
    return has_value and {*row.differs, LOOP.name} == {dimension.name, LOOP.name}


def _choices(sensitive: Sequence[KernelResult], dimension: Dimension, value: str) -> Iterator[Choice]:
    """The choices of a value, one for each loop with which it was planned."""
    rows = [row for result in sensitive for group in result.groups for row in group.rows]
    planned = [row for row in rows if _answers(row, dimension, value)]
    for loop in dict.fromkeys(loop_of(row, dimension) for row in planned) or [None]:
        effects = [
            replace(change, memory=row.memory)
            for result in sensitive
            for row, change in alone(result, dimension, value)
            if not row.over_budget and loop_of(row, dimension) == loop
        ]
        missing = sum(row.invalid is not None and loop_of(row, dimension) == loop for row in planned)
        yield Choice(dimension.name, value, tuple(effects), missing, loop)


def _best(result: KernelResult, group: Group) -> Best:
    """The fastest of the rows that are faster than the baseline, without those over a memory budget."""
    faster = [
        (row.time_ratio, row)
        for row in group.ranked
        if row.verdict == "faster" and row.time_ratio is not None and not row.over_budget
    ]
    faster.sort(key=lambda pair: pair[0].median)
    if not faster:
        return Best(result.benchmark, group, None, ())
    (ratio, first), *others = faster
    as_good = [row for other, row in others if (other.low or math.inf) <= (ratio.high or 0.0)]
    return Best(result.benchmark, group, first, tuple(as_good))


def _worth(choice: Choice) -> tuple[int, float]:
    """Sorts choices: first those that help in more cases than they harm, then by how much."""
    net = len(choice.having("slower")) - len(choice.having("faster"))
    return net, math.prod(e.ratio.median for e in choice.effects if e.ratio and e.is_decided)


def _about_as_good(choice: Choice, best: Choice) -> bool:
    """Whether a choice is faster nearly as often, and costs at most a little more if both were measured."""
    first, second = (
        {(e.benchmark.name, e.cell.compiler): e.ratio.median for e in item.effects if e.ratio}
        for item in (choice, best)
    )
    shared = [first[key] / second[key] for key in first.keys() & second.keys()]
    often = len(choice.having("faster")) >= _NEARLY * len(best.having("faster"))
    harmless = len(choice.having("slower")) <= len(best.having("slower"))
    return bool(shared) and often and harmless and median(shared) <= 1 + _NEGLIGIBLE
