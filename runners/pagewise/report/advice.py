"""What to do on this node: what each choice is worth by itself, and the best configuration of each kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from pagewise.compare.analysis import Group, KernelResult, Row
from pagewise.compare.statistics import FEWEST_ROUNDS, Ratio, Verdict
from pagewise.configuration import VARIANTS
from pagewise.report import words
from pagewise.report.matrix import fastest
from pagewise.units import count_text

# Up to so many kernels a sentence names each of them.
_FEW = 3
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
    """A choice by itself and its effects: a value of a variant, or of `compiler` one against another.

    `missing` counts those that were planned and could not be ranked.
    """

    factor: str
    value: str
    effects: tuple[Effect, ...]
    missing: int

    def told(self, verdict: Verdict) -> list[Effect]:
        """The effects with this verdict."""
        return [effect for effect in self.effects if effect.verdict == verdict]

    @property
    def middle(self) -> float | None:
        """The median of all its ratios, told or not; None without any."""
        return median(effect.ratio.median for effect in self.effects) if self.effects else None


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
    """Every choice that was planned, in the order of variants; compilers last."""
    found = [
        _choice(kernels, variant, value)
        for variant in VARIANTS
        for value in dict.fromkeys(value for one in kernels for value in _felt_values(one, variant))
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
    """The sentence that comes first: what to do about pages on this machine, or why it cannot be said."""
    pages = [one for one in choices(kernels) if one.factor == "hugepages" and one.effects]
    if not pages:
        return (
            "Nothing can be said of huge pages: no configuration with them was measured beside its baseline."
        )
    if all(effect.ratio.low is None for one in pages for effect in one.effects):
        return (
            f"Too few rounds to tell what huge pages do: a verdict takes at least {FEWEST_ROUNDS}, and small "
            "differences take 7 or more."
        )
    return _advised(pages)


def _advised(pages: Sequence[Choice]) -> str:
    """What to do, of page policies that have intervals."""
    most = min(pages, key=_worth)
    alike = [one for one in pages if one is most or _about_as_good(one, most)]
    # Choices come in the order of how little they ask of the machine.
    best, *others = alike
    name = words.policy_text(best.value)
    faster, slower = best.told("faster"), best.told("slower")
    same = ", ".join(words.policy_text(one.value) for one in others)
    also = f" As much comes of {same}." if same and faster and not slower else ""
    if faster and slower:
        gain, loss = _where(best, faster), _where(best, slower)
        return f"Choose the pages by kernel. {_capital(name)}: {gain}; but {loss}."
    rest = len(best.effects) - len(faster)
    if faster and not rest:
        return f"Use {name}: {_where(best, faster)}.{also}"
    if faster:
        unclear = count_text(rest, "other comparison")
        gain = f"{_where(best, faster)}; in {unclear} no difference can be told, in none a loss"
        return f"Use {name}: {gain}.{also}"
    if all(one.told("slower") and not one.told("faster") for one in pages):
        return f"Keep base pages: with {name} {_where(best, slower)}."
    return "Huge pages make no difference that can be told on this node."


def largest(kernels: Sequence[KernelResult]) -> str:
    """The largest saving of all configurations, as a sentence; empty without one."""
    found = [best for best in bests(kernels) if best.row is not None]
    if not found:
        return ""
    most = min(found, key=lambda best: best.row.time_ratio.median)
    return (
        f"The largest saving: {most.kernel.kernel.title} with {label_of(most)} ({most.group.compiler}), "
        f"{words.change(most.row.time_ratio)} than its baseline."
    )


def label_of(best: Best) -> str:
    """The best configuration in words; the baseline's where nothing is faster."""
    row = best.row or best.group.baseline
    return "" if row is None else words.label(best.kernel.kernel, row.cell.measured)


def _felt_values(result: KernelResult, variant: str) -> list[str]:
    return words.values_of(result, variant) if variant in result.kernel.feels else []


def _choice(kernels: Sequence[KernelResult], variant: str, value: str) -> Choice:
    effects, missing = [], 0
    for one in (kernel for kernel in kernels if variant in kernel.kernel.feels):
        for row in words.alone(one, variant, value):
            if row.time_ratio is not None:
                effects.append(Effect(one, row.cell.compiler, row.time_ratio, row.verdict))
        for group in one.groups:
            planned = [row for row in group.unranked if getattr(row.cell.measured, variant) == value]
            missing += any(_plain(row, variant) for row in planned)
    return Choice(variant, value, tuple(effects), missing)


def _plain(row: Row, variant: str) -> bool:
    """Whether all variants but this one are as they are by default."""
    others = {"hugepages": "none", "prefetch": "hardware", "stores": "regular"}
    return all(getattr(row.cell.measured, name) == value for name, value in others.items() if name != variant)


def _compilers(kernels: Sequence[KernelResult]) -> Iterator[Choice]:
    effects: dict[str, list[Effect]] = {}
    for one in kernels:
        for found in one.versus:
            name = f"{found.compiler} : {found.reference}"
            effects.setdefault(name, []).append(
                Effect(one, found.compiler, found.time_ratio, found.verdict)
            )
    for name, those in effects.items():
        yield Choice("compiler", name, tuple(those), 0)


def _best(one: KernelResult, group: Group) -> Best:
    first = fastest(group)
    if first is None or first.time_ratio is None or first.time_ratio.high is None:
        return Best(one, group, None, ())
    others = [row for row in group.ranked if row.verdict == "faster" and row is not first]
    overlapping = [row for row in others if row.time_ratio.low <= first.time_ratio.high]
    return Best(one, group, first, tuple(sorted(overlapping, key=lambda row: row.time_ratio.median)))


def _worth(choice: Choice) -> tuple[int, float]:
    """Sorts choices: those that help in more cases than they harm first, then by how much."""
    net = len(choice.told("slower")) - len(choice.told("faster"))
    told = [effect.ratio.median for effect in choice.effects if effect.verdict != "cannot tell"]
    return net, math.prod(told)


def _about_as_good(one: Choice, best: Choice) -> bool:
    """Whether a choice is faster nearly as often, and costs next to nothing more where both were measured."""
    theirs = {(effect.kernel.kernel.name, effect.compiler): effect.ratio.median for effect in best.effects}
    ours = {(effect.kernel.kernel.name, effect.compiler): effect.ratio.median for effect in one.effects}
    shared = [ours[key] / theirs[key] for key in ours.keys() & theirs.keys()]
    often = len(one.told("faster")) >= _NEARLY * len(best.told("faster"))
    harmless = len(one.told("slower")) <= len(best.told("slower"))
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
        told = [f"{_range(first[1])} {direction} in {first[0]}"]
        return ", ".join([*told, *(f"{_range(shares)} in {title}" for title, shares in rest)])
    shares = [abs(1.0 - effect.ratio.median) for effect in effects]
    return f"{direction} in {len(effects)} of {len(choice.effects)} comparisons ({_range(shares)})"


def _range(shares: Sequence[float]) -> str:
    """Shares as per cent: `34 %`, `8 to 43 %`; below 10 % with a decimal."""
    low, high = (words.share_text(share) for share in (min(shares), max(shares)))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
