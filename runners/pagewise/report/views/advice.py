"""What to do on this node, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.choices import AGAINST, Advice, Choice, Effect, Outcome, advise, bests, choices
from pagewise.analysis.statistics import FEWEST_ROUNDS
from pagewise.analysis.validity import Code
from pagewise.core.dimensions import BY_NAME, COMPILER, DIMENSIONS, PAGES, Dimension
from pagewise.core.units import count_text
from pagewise.report.model import interval_text, ratio_text
from pagewise.report.views.data import excluded
from pagewise.report.views.wording import capital, change_text, label_of, share_text

# Up to so many kernels a sentence names each of them.
_FEW = 3


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


@dataclass(frozen=True)
class Finding:
    """A configuration excluded because of a fault, with valid runs in `rounds` of `rounds_made`."""

    code: Code
    kernel: str
    title: str
    compiler: str
    module: str
    configuration: str
    hugepages: str
    rounds: int
    rounds_made: int
    reason: str


def findings(kernels: Sequence[KernelResult]) -> list[Finding]:
    """All configurations excluded because of a fault, in the order of the tables."""
    return [
        Finding(
            row.code,
            entry.kernel.name,
            entry.kernel.title,
            entry.group.compiler,
            entry.measured.module,
            entry.label,
            entry.measured.hugepages,
            row.rounds,
            row.rounds_made,
            row.invalid,
        )
        for entry in excluded(kernels)
        if (row := entry.row).is_fault and row.code is not None and row.invalid is not None
    ]


def _sentences(found: Sequence[Finding]) -> list[str]:
    """What a reader must know before any advice: altered records, page policies that could not be kept."""
    altered = next((finding.reason for finding in found if finding.code == "records_altered"), None)
    if altered is not None:
        return [f"No verdict: {altered}."]
    not_kept: dict[str, list[Finding]] = {}
    for finding in found:
        if finding.code == "policy_not_kept":
            not_kept.setdefault(finding.hugepages, []).append(finding)
    return [
        f"{capital(PAGES.text(policy))} could not be kept: {_rounds(those)}."
        for policy, those in not_kept.items()
    ]


def _rounds(found: Sequence[Finding]) -> str:
    fewest = min(found, key=lambda one: one.rounds / one.rounds_made if one.rounds_made else 0.0)
    more = f", and in {len(found) - 1} more" if len(found) > 1 else ""
    return f"{fewest.rounds} of {fewest.rounds_made} rounds in {fewest.title} ({fewest.configuration}){more}"


def headline(kernels: Sequence[KernelResult]) -> str:
    """The first sentence: what invalidates the comparison, then what to do about pages or other "
    "dimensions."""
    wrong, found = _sentences(findings(kernels)), answers(kernels)
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
        return found[0].value.partition(AGAINST)[2]
    rows = (group.baseline for choice in found for one in choice.effects for group in one.kernel.groups)
    return dimension.text(next(dimension.of(row.cell.measured) for row in rows if row is not None))


def _answer(dimension: Dimension, found: Sequence[Choice], base: str) -> Answer:
    if all(effect.ratio.low is None for one in found for effect in one.effects):
        text = (
            f"Too few rounds for a verdict on {dimension.noun}: at least {FEWEST_ROUNDS} are needed, and 7 "
            "or more for small differences."
        )
        return Answer(dimension.name, None, (), dimension.question, "", text, "")
    advice = advise(found)
    lead = ""
    if dimension.yes and advice.outcome != "choose":
        lead = "Yes. " if advice.outcome == dimension.yes else "No. "
    slower = [_more_time(one) for one in found if one not in advice.choices and one.having("slower")]
    more = [f"{capital('; '.join(slower))}."] if slower else []
    values = tuple(one.value for one in advice.choices)
    further = " ".join([*more, *_means(found, base)])
    text = _advice_text(dimension, advice, found, base)
    return Answer(dimension.name, advice.outcome, values, dimension.question, lead, text, further)


def _advice_text(dimension: Dimension, advice: Advice, found: Sequence[Choice], base: str) -> str:
    if advice.outcome == "same":
        return dimension.nothing
    if advice.outcome == "keep":
        losses = "; ".join(map(_more_time, advice.choices))
        unclear = " and ".join(_text(one) for one in found if one not in advice.choices)
        return f"Keep {base}: {losses}{f'; {unclear}: inconclusive' if unclear else ''}."
    best = advice.choices[0]
    faster, slower = best.having("faster"), best.having("slower")
    if advice.outcome == "choose":
        gain, loss = _where(best, faster), _where(best, slower)
        return f"Choose {dimension.noun} by kernel. {capital(_text(best))}: {gain}; but {loss}."
    rest = len(best.effects) - len(faster)
    unclear = f"; {count_text(rest, 'other comparison')} inconclusive, none slower" if rest else ""
    equal = ", ".join(map(_text, advice.equal))
    also = f" Equally good: {equal}." if equal else ""
    return f"Use {_text(best)}: {_where(best, faster)}{unclear}.{also}"


def _text(choice: Choice) -> str:
    """Its value in a sentence; of compilers the one that is compared with the other."""
    return BY_NAME[choice.factor].text(choice.value.partition(AGAINST)[0])


def _more_time(choice: Choice) -> str:
    """`with non-temporal stores 12 % more time in Triad`."""
    return f"with {_text(choice)} {_where(choice, choice.having('slower'))}"


def _means(found: Sequence[Choice], base: str) -> list[str]:
    """The geometric means over several kernels and compilers, as a sentence."""
    means = []
    for one in found:
        if len(one.effects) > 1 and one.mean is not None:
            interval = interval_text(one.mean)
            means.append(f"{_text(one)} {ratio_text(one.mean)}{f' [{interval}]' if interval else ''}")
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
