"""What to do on this node: an answer for each dimension, as the outcome, a sentence, and the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pagewise.analysis.choices import AGAINST, Advice, Choice, Effect, advise, by_state, choices
from pagewise.analysis.comparison import Verdict
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import KernelResult
from pagewise.analysis.statistics import FEWEST_ROUNDS
from pagewise.core.dimensions import COMPILER, LOOP, PAGES, Dimension, dimension_of, dimensions_of
from pagewise.core.units import count_text, percent_text
from pagewise.report.model import Text, interval_text, ratio_text
from pagewise.report.verdicts import AnswerRow, Lead
from pagewise.report.views.comparisons import of_kind, rest_text, structure_values
from pagewise.report.views.data import DataRow, faults, ranked, rounds_share
from pagewise.report.views.wording import capital, change_text, cost_text, memory_text, share_text

_VERDICTS: tuple[Verdict, ...] = ("faster", "inconclusive", "slower")
#: The sentence on a dimension by the outcome.
_TEXTS: Mapping[str, str] = {
    "use": "Use {best}: {gain}{rest}.{equal}",
    "keep": "Keep {base}: {losses}.",
    "choose": "Choose {noun} by kernel. {Best}: {gain}; but {loss}.",
    "same": "{nothing}",
    "unclear": "Time ratio to {base}: {means}, but the verdicts do not confirm it. Measure more rounds.",
}
_TOO_FEW = (
    f"Too few rounds for a verdict on {{noun}}: at least {FEWEST_ROUNDS} are needed, and 7 or more for small "
    "differences."
)


def answers(kernels: Sequence[KernelResult]) -> list[AnswerRow]:
    """The answer for each dimension in which something was compared; pages first."""
    compared = [choice for choice in choices(kernels) if choice.effects]
    found = []
    for dimension in (*dimensions_of(result.kernel for result in kernels), COMPILER):
        of_it = [choice for choice in compared if choice.factor == dimension.name]
        for loop in dict.fromkeys(choice.loop for choice in of_it):
            of_loop = [choice for choice in of_it if choice.loop == loop]
            for compiler in _compilers(of_loop) if dimension.by_compiler else (None,):
                found.append(_answer(kernels, dimension, _of_compiler(of_loop, compiler), compiler))
    return found


def _compilers(compared: Sequence[Choice]) -> list[str]:
    return list(dict.fromkeys(effect.compiler for choice in compared for effect in choice.effects))


def _of_compiler(compared: Sequence[Choice], compiler: str | None) -> list[Choice]:
    """The choices with the effects of a compiler alone, those without any omitted."""
    own = [
        replace(choice, effects=tuple(e for e in choice.effects if compiler in (None, e.compiler)))
        for choice in compared
    ]
    return [choice for choice in own if choice.effects]


def _answer(
    kernels: Sequence[KernelResult], dimension: Dimension, compared: Sequence[Choice], compiler: str | None
) -> AnswerRow:
    loop = compared[0].loop
    answer = AnswerRow(
        factor=dimension.name,
        compiler=compiler,
        loop=loop,
        outcome=None,
        values=(),
        question=where(compiler, loop) + dimension.question,
        lead="",
        text=_TOO_FEW.format(noun=dimension.noun),
        more="",
        cost="",
        apply=(),
        policy=None,
    )
    if all(effect.ratio.low is None for choice in compared for effect in choice.effects):
        return answer
    advice, base = advise(compared), _base(kernels, dimension, compared)
    is_changed = advice.outcome in ("use", "choose")
    first = advice.choices[0].value.partition(AGAINST)[0] if advice.choices else ""
    return replace(
        answer,
        outcome=advice.outcome,
        values=tuple(choice.value for choice in advice.choices),
        lead=_lead(dimension, advice),
        text=_text(dimension, advice, base),
        more=f"Time ratio to {base}: {'; '.join(map(_evidence, compared))}.",
        cost=f"{capital(dimension.cost_of(first))}." if is_changed else "",
    )


def where(compiler: str | None, loop: str | None) -> str:
    """What an answer is limited to, before a sentence: `gcc-12.2.0: `; empty if it is for all."""
    text = ", ".join(filter(None, (compiler, f"in {LOOP.text(loop)}" if loop else "")))
    return f"{text if compiler else capital(text)}: " if text else ""


def _base(kernels: Sequence[KernelResult], dimension: Dimension, compared: Sequence[Choice]) -> str:
    """The baselines' value in words."""
    if dimension is COMPILER:
        return compared[0].value.partition(AGAINST)[2]
    names = {effect.comparison.kernel.name for choice in compared for effect in choice.effects}
    groups = (group for result in kernels if result.kernel.name in names for group in result.groups)
    baseline = next(group.baseline for group in groups if group.baseline is not None)
    return dimension.text(dimension.of(baseline.cell.measured))


def _lead(dimension: Dimension, advice: Advice) -> Lead:
    """`Yes. `, `No. ` or neither; `Unclear. ` if the mean shows a difference that the verdicts do not."""
    if advice.outcome == "unclear":
        return "Unclear. "
    if not dimension.yes or advice.outcome in dimension.neither:
        return ""
    # The question is about values other than the default, which is a choice if the baseline has another.
    is_default = bool(dimension.rule) and dimension.rule in (choice.value for choice in advice.choices)
    return "Yes. " if (advice.outcome == dimension.yes) != is_default else "No. "


def _text(dimension: Dimension, advice: Advice, base: str) -> str:
    parts = {"base": base, "noun": dimension.noun, "nothing": dimension.nothing}
    parts["losses"] = "; ".join(f"with {_value(c)} {_gain(c, 'slower')}" for c in advice.choices)
    parts["means"] = ", ".join(f"{_value(choice)} {_mean(choice)}" for choice in advice.choices)
    if advice.outcome in ("use", "choose"):
        best = advice.choices[0]
        undecided = len(best.effects) - len(best.having("faster"))
        equal = ", ".join(map(_value, advice.equal))
        parts |= {
            "best": _value(best),
            "Best": capital(_value(best)),
            "gain": _gain(best, "faster"),
            "loss": _gain(best, "slower"),
            "rest": f"; {count_text(undecided, 'other comparison')} inconclusive" if undecided else "",
            "equal": f" Equally good: {equal}." if equal else "",
        }
    return _TEXTS[advice.outcome].format(**parts)


def _value(choice: Choice) -> str:
    """The choice's value in a sentence; of two compilers the first."""
    return dimension_of(choice.factor).text(choice.value.partition(AGAINST)[0])


def _gain(choice: Choice, verdict: Verdict) -> str:
    """`34 % (31 to 36 %) less time (speed-up 1.52) for 12 % more memory`; of several the range."""
    effects = choice.having(verdict)
    if not effects:
        return "inconclusive"
    ratios = sorted((effect.ratio for effect in effects), key=lambda ratio: ratio.median)
    is_less = ratios[0].median < 1.0
    text = f"{_shares(ratios)} {'less' if is_less else 'more'} time"
    if is_less:
        ends = dict.fromkeys(f"{1.0 / ratio.median:.2f}" for ratio in (ratios[-1], ratios[0]))
        text += f" (speed-up {' to '.join(ends)})"
    if len(choice.effects) == 1:
        return text + memory_text(effects[0].memory)
    titles = list(dict.fromkeys(effect.comparison.kernel.title for effect in effects))
    names = f" ({titles[0]})" if len(titles) == 1 and len(_titles(choice.effects)) > 1 else ""
    return f"{text} in {len(effects)} of {len(choice.effects)} comparisons{names}"


def _titles(effects: Sequence[Effect]) -> set[str]:
    return {effect.comparison.kernel.title for effect in effects}


def _shares(ratios: Sequence[Ratio]) -> str:
    """Changes of time: of one ratio with its interval, `34 % (31 to 36 %)`, of several the range."""
    ratio = ratios[0]
    if len(ratios) > 1 or ratio.low is None or ratio.high is None:
        return _range([abs(1.0 - each.median) for each in ratios])
    return f"{share_text(abs(1.0 - ratio.median))} ({_range([abs(1.0 - ratio.low), abs(1.0 - ratio.high)])})"


def _range(shares: Sequence[float]) -> str:
    """Shares as percentages: `34 %`, `8 to 43 %`; below 10 % with a decimal."""
    low, high = (share_text(share) for share in (min(shares), max(shares)))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def _mean(choice: Choice) -> str:
    """`0.985 [0.975–0.995]`."""
    interval = interval_text(choice.mean)
    return ratio_text(choice.mean) + (f" [{interval}]" if interval else "")


def _evidence(choice: Choice) -> str:
    """`thp 0.878 [0.873–0.883], faster 3, inconclusive 1`; of several comparisons the geometric mean."""
    counts = [(verdict, len(choice.having(verdict))) for verdict in _VERDICTS]
    several = len(choice.effects) > 1
    verdicts = ", ".join(f"{name} {count}" if several else name for name, count in counts if count)
    return f"{_value(choice)} {_mean(choice)}, {verdicts}"


def headline(kernels: Sequence[KernelResult], given: Sequence[AnswerRow]) -> str:
    """What invalidates the comparison, then what to do about pages, or about the first dimension compared."""
    sentences = _obstacles(faults(kernels))
    sentences += [f"{where(answer.compiler, answer.loop)}{answer.text}" for answer in first_answers(given)]
    over = [f"{entry.label} ({cost_text(entry.row)})" for entry in ranked(kernels) if entry.row.over_budget]
    sentences += [f"Above the memory budget, therefore not advised: {', '.join(over)}."] if over else []
    return " ".join(sentences) or (
        "No verdict on huge pages: no configuration with them was measured together with its baseline."
    )


def first_answers(given: Sequence[AnswerRow]) -> list[AnswerRow]:
    """The answers in the headline: those for the first dimension, by compiler if each has its own."""
    return [answer for answer in given if (answer.factor, answer.loop) == (given[0].factor, given[0].loop)]


def _obstacles(entries: Sequence[DataRow]) -> list[str]:
    """What a reader must know before any advice: altered records, what failed after some rounds."""
    altered = next((entry.row.invalid for entry in entries if entry.row.code == "records_altered"), None)
    if altered is not None:
        return [f"No verdict: {altered}."]
    lost: dict[str, list[DataRow]] = {}
    for entry in entries:
        if entry.row.code == "policy_not_kept":
            policy = capital(PAGES.text(entry.configuration.hugepages))
            lost.setdefault(f"{policy} could not be kept", []).append(entry)
        elif 0 < entry.row.rounds < entry.row.rounds_made:
            lost.setdefault("Excluded after some rounds", []).append(entry)
    return [f"{what}: {_rounds(several)}." for what, several in lost.items()]


def _rounds(entries: Sequence[DataRow]) -> str:
    fewest = min(entries, key=lambda entry: entry.row.share)
    more = f", and in {len(entries) - 1} more" if len(entries) > 1 else ""
    return f"{rounds_share(fewest.row)} in {fewest.kernel.title} ({fewest.label}){more}"


def of_structures(kernels: Sequence[KernelResult]) -> list[Text]:
    """How much of the sensitivity to page size is the data structure: the largest effect of each kernel."""
    rows = sorted((row for row in of_kind(kernels, "structure")), key=lambda row: -(row.share or 0.0))
    texts = []
    for row in {row.kernel.name: row for row in reversed(rows)}.values():
        noun = dimension_of(row.dimension).noun
        if row.share is None:
            texts.append(f"{row.kernel.title}: no significant part is {noun}.")
            continue
        times, values = [ratio_text(part) for part in row.parts], structure_values(row)
        place = ", ".join(filter(None, (row.cell.compiler, rest_text(row))))
        texts.append(
            f"{row.kernel.title}: {percent_text(row.share)} is {noun}. "
            f"{capital(PAGES.text(row.configuration.hugepages))} take {times[0]} of the time of base pages "
            f"with {values[0]}, and {times[1]} with {values[1]} ({place})."
        )
    question = "How much of the sensitivity to page size is the data structure?"
    return [Text(" ".join(texts), question)] if texts else []


def of_states(kernels: Sequence[KernelResult]) -> list[Text]:
    """Whether the advice on pages holds in every state of the node that was compared."""
    texts = []
    for result in kernels:
        for rows in by_state(result):
            verdicts = [None if change is None else change.verdict for _, change in rows]
            first = rows[0][0].cell
            states = "; ".join(
                f"{row.cell.measured.node_state}: "
                + (
                    f"excluded ({row.invalid or 'its baseline is missing'})"
                    if change is None
                    else f"{change.verdict} ({change_text(change.ratio)})"
                )
                for row, change in rows
            )
            holds = "is the same in every state" if len(set(verdicts)) == 1 else "depends on the state"
            place = f"{result.kernel.title}, {first.compiler}: "
            texts.append(
                Text(
                    f"The verdict {holds} of the node's memory. "
                    f"{capital(PAGES.text(first.measured.hugepages))}, {states}.",
                    f"{place}Does the advice hold in every state of the node?",
                )
            )
    return texts
