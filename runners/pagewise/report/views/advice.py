"""What to do on this node, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.choices import AGAINST, Advice, AdviceOutcome, Choice, Effect, advise, bests, choices
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import FEWEST_ROUNDS
from pagewise.analysis.verdict import Outcome
from pagewise.core.dimensions import BY_NAME, COMPILER, DIMENSIONS, LOOP, PAGES, Dimension
from pagewise.core.units import count_text
from pagewise.report.model import Getter, Table, interval_text, ratio_text
from pagewise.report.views.data import Entry, faults, ranked, rounds_share
from pagewise.report.views.wording import capital, change_text, cost_text, label_of, memory_text, share_text

# A sentence names each kernel up to this number of kernels.
_FEW = 3
_VERDICTS: tuple[Outcome, ...] = ("faster", "inconclusive", "slower")
_FINDING: Mapping[str, Getter] = {
    "code": "row.code",
    "kernel": "kernel.name",
    "title": "kernel.title",
    "compiler": "group.compiler",
    "module": "measured.module",
    "configuration": "label",
    "hugepages": "measured.hugepages",
    "rounds": "row.rounds",
    "rounds_made": "row.rounds_made",
    "reason": "row.invalid",
}


@dataclass(frozen=True)
class Answer:
    """The answer for a dimension: yes, no or neither, the advice, how sure it is (`more`), and its `cost`.

    `compiler` is None if it is for all compilers; `loop` as in `Choice`. `outcome`: `use` one of the
    `values`, `keep` the baseline's (because `values` are slower), `choose` by kernel, all are the `same`, or
    `unclear` because the mean shows a difference that the verdicts do not; None with too few rounds.
    """

    factor: str
    outcome: AdviceOutcome | None
    values: tuple[str, ...]
    question: str
    lead: str
    text: str
    more: str
    cost: str = ""
    compiler: str | None = None
    loop: str | None = None

    @property
    def where(self) -> str:
        """What it is limited to, before a sentence: `gcc-12.2.0: `; empty if it is for all."""
        loop = f"in {LOOP.text(self.loop)}" if self.loop else ""
        where = ", ".join(filter(None, (self.compiler, loop)))
        return f"{capital(where) if self.compiler is None else where}: " if where else ""


def findings(kernels: Sequence[KernelResult]) -> Table:
    """All configurations excluded because of a fault, with valid runs in `rounds` of `rounds_made`."""
    return Table.of_fields(_FINDING, faults(kernels))


def _obstacles(entries: Sequence[Entry]) -> list[str]:
    """What a reader must know before any advice: altered records, what failed after some rounds."""
    altered = next((entry.row.invalid for entry in entries if entry.row.code == "records_altered"), None)
    if altered is not None:
        return [f"No verdict: {altered}."]
    not_kept: dict[str, list[Entry]] = {}
    failed: list[Entry] = []
    for entry in entries:
        if entry.row.code == "policy_not_kept":
            not_kept.setdefault(entry.measured.hugepages, []).append(entry)
        elif 0 < entry.row.rounds < entry.row.rounds_made:
            failed.append(entry)
    sentences = [
        f"{capital(PAGES.text(policy))} could not be kept: {_rounds(of_policy)}."
        for policy, of_policy in not_kept.items()
    ]
    return [*sentences, *([f"Excluded after some rounds: {_rounds(failed)}."] if failed else [])]


def _rounds(entries: Sequence[Entry]) -> str:
    fewest = min(entries, key=lambda entry: entry.row.share)
    more = f", and in {len(entries) - 1} more" if len(entries) > 1 else ""
    where = f"{fewest.kernel.title} ({fewest.label})"
    return f"{rounds_share(fewest.row)} in {where}{more}"


def headline(kernels: Sequence[KernelResult]) -> str:
    """What invalidates the comparison, then what to do about pages, or about the first dimension compared."""
    sentences = _obstacles(faults(kernels))
    sentences += [f"{answer.where}{answer.text}" for answer in first_answers(kernels)]
    sentences += _over_budget(kernels)
    return " ".join(sentences) or (
        "No verdict on huge pages: no configuration with them was measured together with its baseline."
    )


def _over_budget(kernels: Sequence[KernelResult]) -> list[str]:
    """The policies of a program that are not advised because of their memory, as a sentence."""
    over = [f"{entry.label} ({cost_text(entry.row)})" for entry in ranked(kernels) if entry.row.over_budget]
    return [f"Above the memory budget, therefore not advised: {', '.join(over)}."] if over else []


def first_answers(kernels: Sequence[KernelResult]) -> list[Answer]:
    """The answers in the headline: those for the first dimension, by compiler if each has its own."""
    known = answers(kernels)
    return [answer for answer in known if (answer.factor, answer.loop) == (known[0].factor, known[0].loop)]


def answers(kernels: Sequence[KernelResult]) -> list[Answer]:
    """The answer for each dimension in which something was compared; pages first."""
    compared = [choice for choice in choices(kernels) if choice.effects]
    answered = []
    for dimension in (*DIMENSIONS, COMPILER):
        by_loop: dict[str | None, list[Choice]] = {}
        for choice in compared:
            if choice.factor == dimension.name:
                by_loop.setdefault(choice.loop, []).append(choice)
        for loop, of_it in by_loop.items():
            for answer in (_by_compiler if dimension.by_compiler else _for_all)(dimension, of_it):
                placed = replace(answer, loop=loop)
                answered.append(replace(placed, question=placed.where + answer.question))
    return answered


def _for_all(dimension: Dimension, compared: Sequence[Choice]) -> list[Answer]:
    return [_answer(dimension, compared)]


def _by_compiler(dimension: Dimension, compared: Sequence[Choice]) -> list[Answer]:
    """The answer for each compiler."""
    answered = []
    for compiler in dict.fromkeys(effect.compiler for choice in compared for effect in choice.effects):
        own = [replace(choice, effects=choice.effects_of(compiler)) for choice in compared]
        answer = _answer(dimension, [choice for choice in own if choice.effects])
        answered.append(replace(answer, compiler=compiler))
    return answered


def _base(dimension: Dimension, compared: Sequence[Choice]) -> str:
    """The baselines' value in words."""
    if dimension is COMPILER:
        return compared[0].value.partition(AGAINST)[2]
    groups = (group for choice in compared for effect in choice.effects for group in effect.kernel.groups)
    baseline = next(group.baseline for group in groups if group.baseline is not None)
    return dimension.text(dimension.of(baseline.cell.measured))


def _answer(dimension: Dimension, compared: Sequence[Choice]) -> Answer:
    if all(effect.ratio.low is None for choice in compared for effect in choice.effects):
        text = (
            f"Too few rounds for a verdict on {dimension.noun}: at least {FEWEST_ROUNDS} are needed, and 7 "
            "or more for small differences."
        )
        return Answer(dimension.name, None, (), dimension.question, "", text, "")
    advice, base = advise(compared), _base(dimension, compared)
    lead = _lead(dimension, advice)
    others = [choice for choice in compared if choice not in advice.choices]
    values = tuple(choice.value for choice in advice.choices)
    text = _advice_text(dimension, advice, others, base)
    more, cost = _sure(compared, base), _cost(dimension, advice)
    return Answer(dimension.name, advice.outcome, values, dimension.question, lead, text, more, cost)


def _cost(dimension: Dimension, advice: Advice) -> str:
    """What a program needs for the advised value, and the first touch of its pages."""
    if advice.outcome not in ("use", "choose"):
        return ""
    choice = advice.choices[0]
    texts = [dimension.cost_of(choice.value.partition(AGAINST)[0])]
    if dimension is PAGES and choice.first_touch is not None:
        texts.append(f"first-touch time: {choice.first_touch:.2f} times the baseline's")
    return f"{capital('; '.join(texts))}."


def _lead(dimension: Dimension, advice: Advice) -> str:
    """`Yes. `, `No. ` or neither; `Unclear. ` if the mean shows a difference that the verdicts do not."""
    if advice.outcome == "unclear":
        return "Unclear. "
    if not dimension.yes or advice.outcome in dimension.neither:
        return ""
    # The question is about values other than the default, which is a choice if the baseline has another.
    is_default = bool(dimension.rule) and dimension.rule in (choice.value for choice in advice.choices)
    return "Yes. " if (advice.outcome == dimension.yes) != is_default else "No. "


def _advice_text(dimension: Dimension, advice: Advice, others: Sequence[Choice], base: str) -> str:
    if advice.outcome == "same":
        return dimension.nothing
    if advice.outcome == "unclear":
        means = ", ".join(f"{_text(choice)} {_mean_text(choice)}" for choice in advice.choices)
        return f"Time ratio to {base}: {means}, but the verdicts do not confirm it. Measure more rounds."
    if advice.outcome == "keep":
        losses = "; ".join(map(_more_time, advice.choices))
        unclear = " and ".join(map(_text, others))
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
    """The choice's value in a sentence; of two compilers the first."""
    return BY_NAME[choice.factor].text(choice.value.partition(AGAINST)[0])


def _more_time(choice: Choice) -> str:
    """`with non-temporal stores 12 % more time in Triad`."""
    return f"with {_text(choice)} {_where(choice, choice.having('slower'))}"


def _mean_text(choice: Choice) -> str:
    """`0.985 [0.975–0.995]`."""
    interval = interval_text(choice.mean)
    return ratio_text(choice.mean) + (f" [{interval}]" if interval else "")


def _sure(compared: Sequence[Choice], base: str) -> str:
    """The time ratio of each choice with its interval, and its verdicts."""
    of_several = any(len(choice.effects) > 1 for choice in compared)
    name = "Geometric mean of the time ratios" if of_several else "Time ratio"
    return f"{name} to {base}: {'; '.join(map(_evidence, compared))}."


def _evidence(choice: Choice) -> str:
    """`thp 0.878 [0.873–0.883], faster in 3 of 4 comparisons, inconclusive in 1`."""
    counts = [(verdict, len(choice.having(verdict))) for verdict in _VERDICTS]
    (first, count), *rest = [(verdict, count) for verdict, count in counts if count]
    total = len(choice.effects)
    of_all = f" in {count} of {count_text(total, 'comparison')}" if total > 1 else ""
    others = "".join(f", {verdict} in {number}" for verdict, number in rest)
    return f"{_text(choice)} {_mean_text(choice)}, {first}{of_all}{others}"


def largest(kernels: Sequence[KernelResult]) -> str:
    """The largest saving of all configurations, as a sentence; empty without any saving."""
    savings = [(best.row.time_ratio, best) for best in bests(kernels) if best.row and best.row.time_ratio]
    if not savings:
        return ""
    ratio, best = min(savings, key=lambda saving: saving[0].median)
    return (
        f"The largest saving: {best.kernel.kernel.title} with {label_of(best)} ({best.group.compiler}), "
        f"{change_text(ratio)} than its baseline."
    )


def _where(choice: Choice, effects: Sequence[Effect]) -> str:
    """`34 % (31 to 36 %) less time in Pointer chase, 4 to 7 % in Random access`, or in how many comparisons.

    For a program: `7 % (5 to 9 %) less time for 12 % more memory`.
    """
    direction = "less time" if effects[0].ratio.median < 1.0 else "more time"
    by_kernel: dict[str, list[Ratio]] = {}
    for effect in effects:
        by_kernel.setdefault(effect.kernel.kernel.title, []).append(effect.ratio)
    if len(by_kernel) == 1 and len({effect.kernel.kernel.name for effect in choice.effects}) == 1:
        (ratios,) = by_kernel.values()
        memory = memory_text(effects[0].memory) if len(effects) == 1 else ""
        return f"{_shares(ratios)} {direction}{_speed_up(ratios, 'speed-up ')}{memory}"
    if len(by_kernel) <= _FEW:
        first, *rest = by_kernel.items()
        texts = [f"{_shares(first[1])} {direction}{_speed_up(first[1], 'speed-up ')} in {first[0]}"]
        further = (f"{_shares(ratios)}{_speed_up(ratios)} in {title}" for title, ratios in rest)
        return ", ".join([*texts, *further])
    ratios = [effect.ratio for effect in effects]
    count = f"{len(effects)} of {len(choice.effects)} comparisons"
    return f"{_shares(ratios)} {direction}{_speed_up(ratios, 'speed-up ')} in {count}"


def _speed_up(ratios: Sequence[Ratio], name: str = "") -> str:
    """Behind less time: ` (speed-up 1.52)`, of several ` (speed-up 1.05 to 1.52)`."""
    ends = [f"{1.0 / end:.2f}" for end in (max(r.median for r in ratios), min(r.median for r in ratios))]
    return f" ({name}{' to '.join(dict.fromkeys(ends))})" if ratios[0].median < 1.0 else ""


def _shares(ratios: Sequence[Ratio]) -> str:
    """Changes of time: of one ratio with its interval, `34 % (31 to 36 %)`, of several the range."""
    ratio = ratios[0]
    if len(ratios) == 1 and ratio.low is not None and ratio.high is not None:
        ends = (abs(1.0 - ratio.low), abs(1.0 - ratio.high))
        return f"{share_text(abs(1.0 - ratio.median))} ({_range(ends)})"
    return _range([abs(1.0 - ratio.median) for ratio in ratios])


def _range(shares: Sequence[float]) -> str:
    """Shares as percentages: `34 %`, `8 to 43 %`; below 10 % with a decimal."""
    low, high = (share_text(share) for share in (min(shares), max(shares)))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"
