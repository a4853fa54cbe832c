"""What to do on this node: the effect of each single choice, and the best configuration of each kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from pagewise.analysis.analysis import Group, KernelResult
from pagewise.analysis.rows import Row
from pagewise.analysis.statistics import FEWEST_ROUNDS, Ratio, geometric_mean
from pagewise.analysis.verdict import Outcome as Judged
from pagewise.core.dimensions import BY_NAME, COMPILER, DIMENSIONS, Dimension, feels
from pagewise.core.units import count_text
from pagewise.report.model import interval_text, ratio_text
from pagewise.report.views.findings import findings, sentences
from pagewise.report.views.wording import (
    alone,
    capital,
    change_text,
    differs_alone,
    is_decided,
    label,
    share_text,
    values_of,
)

Outcome = Literal["use", "keep", "choose", "same"]
# Up to so many kernels a sentence names each of them.
_FEW = 3
# Of two choices the one that asks less of the machine is named, if it is faster in this share of the cases
# and its times are no more than this longer.
_NEARLY, _NEXT_TO_NOTHING = 0.9, 0.02
# Between two compilers.
_AGAINST = " : "


@dataclass(frozen=True)
class Effect:
    """What one choice does to one kernel with one compiler, all else as in the baseline."""

    kernel: KernelResult
    compiler: str
    ratio: Ratio
    verdict: Judged


@dataclass(frozen=True)
class Choice:
    """A choice by itself and its effects: a value of a dimension, or of `compiler` one against another.

    `missing` counts those that were planned and could not be ranked.
    """

    factor: str
    value: str
    effects: tuple[Effect, ...]
    missing: int

    def having(self, verdict: Judged) -> list[Effect]:
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
    def text(self) -> str:
        """Its value in a sentence; of compilers the one that is compared with the other."""
        return BY_NAME[self.factor].text(self.value.partition(_AGAINST)[0])


@dataclass(frozen=True)
class Best:
    """Of a kernel and compiler, the configuration with the smallest ratio of those that are faster.

    `row` is None where none is. `as_good` are the others whose interval overlaps that of the best.
    """

    kernel: KernelResult
    group: Group
    row: Row | None
    as_good: tuple[Row, ...]


@dataclass(frozen=True)
class Answer:
    """The answer for one dimension: yes, no or neither, what to do, and what `more` was observed.

    `outcome`: `use` one of the `values`, `keep` that of the baseline (because those are slower), `choose` by
    kernel, or all are the `same`; None with too few rounds.
    """

    factor: str
    outcome: Outcome | None
    values: tuple[str, ...]
    question: str
    lead: str
    text: str
    more: str

    @property
    def whole(self) -> str:
        """All of it."""
        return f"{self.lead}{self.text} {self.more}".rstrip()


def choices(kernels: Sequence[KernelResult]) -> list[Choice]:
    """Every choice that was planned, in the order of dimensions; compilers last."""
    found = [
        _choice(kernels, dimension, value)
        for dimension in DIMENSIONS
        for value in dict.fromkeys(value for one in kernels for value in _felt_values(one, dimension))
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


def headline(kernels: Sequence[KernelResult]) -> str:
    """The first sentence: what invalidates the comparison, then what to do about pages or other "
    "dimensions."""
    wrong, found = sentences(findings(kernels)), answers(kernels)
    if found:
        return " ".join([*wrong, found[0].text])
    return " ".join(wrong) or (
        "No verdict on huge pages: no configuration with them was measured together with its baseline."
    )


def answers(kernels: Sequence[KernelResult]) -> list[Answer]:
    """The answer for each dimension in which something was compared; pages first."""
    found = [one for one in choices(kernels) if one.effects]
    by_dimension = {
        one: [choice for choice in found if choice.factor == one.name] for one in (*DIMENSIONS, COMPILER)
    }
    return [_answer(one, those, _base(one, those)) for one, those in by_dimension.items() if those]


def _base(dimension: Dimension, found: Sequence[Choice]) -> str:
    """The baselines' value in words."""
    if dimension is COMPILER:
        return found[0].value.partition(_AGAINST)[2]
    rows = (group.baseline for choice in found for one in choice.effects for group in one.kernel.groups)
    return dimension.text(next(dimension.of(row.cell.measured) for row in rows if row is not None))


def _answer(dimension: Dimension, found: Sequence[Choice], base: str) -> Answer:
    if all(effect.ratio.low is None for one in found for effect in one.effects):
        text = (
            f"Too few rounds for a verdict on {dimension.noun}: at least {FEWEST_ROUNDS} are needed, and 7 "
            "or more for small differences."
        )
        return Answer(dimension.name, None, (), dimension.question, "", text, "")
    outcome, advised, text = _advised(dimension, found, base)
    lead = ("Yes. " if outcome == dimension.yes else "No. ") if dimension.yes and outcome != "choose" else ""
    slower = [_more_time(one) for one in found if one not in advised and one.having("slower")]
    more = [f"{capital('; '.join(slower))}."] if slower else []
    values = tuple(one.value for one in advised)
    further = " ".join([*more, *_means(found, base)])
    return Answer(dimension.name, outcome, values, dimension.question, lead, text, further)


def _advised(dimension: Dimension, found: Sequence[Choice], base: str) -> tuple[Outcome, list[Choice], str]:
    """What to do, which choices that covers, and the sentence."""
    most = min(found, key=_worth)
    alike = [one for one in found if one is most or _about_as_good(one, most)]
    # Choices come in the order of how little they ask of the machine.
    best, *others = alike
    faster, slower = best.having("faster"), best.having("slower")
    same = ", ".join(one.text for one in others)
    also = f" Equally good: {same}." if same and faster and not slower else ""
    if faster and slower:
        gain, loss = _where(best, faster), _where(best, slower)
        text = f"Choose {dimension.noun} by kernel. {capital(best.text)}: {gain}; but {loss}."
        return "choose", [best], text
    rest = len(best.effects) - len(faster)
    if faster and rest == 0:
        return "use", [best], f"Use {best.text}: {_where(best, faster)}.{also}"
    if faster:
        unclear = count_text(rest, "other comparison")
        gain = f"{_where(best, faster)}; {unclear} inconclusive, none slower"
        return "use", [best], f"Use {best.text}: {gain}.{also}"
    worse = [one for one in found if one.having("slower")]
    if worse:
        losses = "; ".join(map(_more_time, worse))
        unclear = " and ".join(one.text for one in found if one not in worse)
        same = f"; {unclear}: inconclusive" if unclear else ""
        return "keep", worse, f"Keep {base}: {losses}{same}."
    return "same", [], dimension.nothing


def _more_time(choice: Choice) -> str:
    """`with non-temporal stores 12 % more time in Triad`."""
    return f"with {choice.text} {_where(choice, choice.having('slower'))}"


def _means(found: Sequence[Choice], base: str) -> list[str]:
    """The geometric means over several kernels and compilers, as a sentence."""
    means = []
    for one in found:
        if len(one.effects) > 1 and one.mean is not None:
            interval = interval_text(one.mean)
            means.append(f"{one.text} {ratio_text(one.mean)}{f' [{interval}]' if interval else ''}")
    if not means:
        return []
    count = count_text(max(len(one.effects) for one in found), "comparison")
    return [f"Geometric mean of the time ratios to {base}, over up to {count}: {', '.join(means)}."]


def largest(kernels: Sequence[KernelResult]) -> str:
    """The largest saving of all configurations, as a sentence; empty without one."""
    found = [(best.row.time_ratio, best) for best in bests(kernels) if best.row and best.row.time_ratio]
    if not found:
        return ""
    ratio, most = min(found, key=lambda pair: pair[0].median)
    return (
        f"The largest saving: {most.kernel.kernel.title} with {label_of(most)} ({most.group.compiler}), "
        f"{change_text(ratio)} than its baseline."
    )


def fastest(group: Group) -> Row | None:
    """The row with the smallest ratio of those that are faster, None when none is."""
    faster = [
        (row.time_ratio.median, row) for row in group.ranked if row.verdict == "faster" and row.time_ratio
    ]
    return min(faster, key=lambda pair: pair[0], default=(0.0, None))[1]


def label_of(best: Best) -> str:
    """The best configuration in words; the baseline's where nothing is faster."""
    row = best.row or best.group.baseline
    return "" if row is None else label(best.kernel.kernel, row.cell.measured)


def _felt_values(result: KernelResult, dimension: Dimension) -> list[str]:
    return values_of(result, dimension) if feels(result.kernel, dimension.name) else []


def _choice(kernels: Sequence[KernelResult], dimension: Dimension, value: str) -> Choice:
    effects, missing = [], 0
    for one in (kernel for kernel in kernels if feels(kernel.kernel, dimension.name)):
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
            name = f"{found.compiler}{_AGAINST}{found.reference}"
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
    decided = [effect.ratio.median for effect in choice.effects if is_decided(effect.verdict)]
    return net, math.prod(decided)


def _about_as_good(one: Choice, best: Choice) -> bool:
    """Whether a choice is faster nearly as often, and costs next to nothing more where both were measured."""
    theirs = {(effect.kernel.kernel.name, effect.compiler): effect.ratio.median for effect in best.effects}
    ours = {(effect.kernel.kernel.name, effect.compiler): effect.ratio.median for effect in one.effects}
    shared = [ours[key] / theirs[key] for key in ours.keys() & theirs.keys()]
    often = len(one.having("faster")) >= _NEARLY * len(best.having("faster"))
    harmless = len(one.having("slower")) <= len(best.having("slower"))
    return bool(shared) and often and harmless and median(shared) <= 1 + _NEXT_TO_NOTHING


def _where(choice: Choice, effects: Sequence[Effect]) -> str:
    """`34 % less time in Pointer chase, 43 to 47 % in Random access`, or in how many comparisons."""
    less = effects[0].ratio.median < 1.0
    direction = "less time" if less else "more time"
    by_kernel: dict[str, list[float]] = {}
    for effect in effects:
        by_kernel.setdefault(effect.kernel.kernel.title, []).append(abs(1.0 - effect.ratio.median))
    if len(by_kernel) == 1 and len({effect.kernel.kernel.name for effect in choice.effects}) == 1:
        (shares,) = by_kernel.values()
        return f"{_range(shares)} {direction}"
    if len(by_kernel) <= _FEW:
        first, *rest = by_kernel.items()
        texts = [f"{_range(first[1])} {direction} in {first[0]}"]
        return ", ".join([*texts, *(f"{_range(shares)} in {title}" for title, shares in rest)])
    shares = [abs(1.0 - effect.ratio.median) for effect in effects]
    return f"{direction} in {len(effects)} of {len(choice.effects)} comparisons ({_range(shares)})"


def _range(shares: Sequence[float]) -> str:
    """Shares as per cent: `34 %`, `8 to 43 %`; below 10 % with a decimal."""
    low, high = (share_text(share) for share in (min(shares), max(shares)))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"
