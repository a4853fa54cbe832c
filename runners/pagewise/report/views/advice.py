"""What to do on this node: an answer for each dimension, as the outcome, a sentence, and the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pagewise.analysis.choices import AGAINST, Advice, Choice, advise, choices
from pagewise.analysis.comparison import Verdict
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import KernelResult
from pagewise.analysis.statistics import FEWEST_ROUNDS
from pagewise.core.dimensions import COMPILER, LOOP, PAGES, Dimension, dimension_of, dimensions_of
from pagewise.core.plan import Cell
from pagewise.core.record import Record
from pagewise.core.units import count_text
from pagewise.report.model import interval_text, ratio_text
from pagewise.report.verdicts import AnswerRow, BuildAdvice, Lead
from pagewise.report.views.applying import build_of, first_answers, policy_of
from pagewise.report.views.data import (
    DataRow,
    capital,
    cost_text,
    faults,
    memory_text,
    ranked_rows,
    rounds_share,
    share_text,
)

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


def answers(
    kernels: Sequence[KernelResult],
    records: Sequence[Record] = (),
    programs: Mapping[str, Any] = MappingProxyType({}),
) -> list[AnswerRow]:
    """The answer for each dimension in which something was compared; pages first.

    `records` have the compiler options of builds; `programs` are the user's, as the manifest describes them.
    """
    compared = [choice for choice in choices(kernels) if choice.effects]
    collected = []
    for dimension in (*dimensions_of(result.benchmark for result in kernels), COMPILER):
        of_it = [choice for choice in compared if choice.factor == dimension.name]
        for loop in dict.fromkeys(choice.loop for choice in of_it):
            of_loop = [choice for choice in of_it if choice.loop == loop]
            for compiler in _compilers(of_loop) if dimension.by_compiler else (None,):
                own = _of_compiler(of_loop, compiler)
                collected.append(_answer(kernels, dimension, own, compiler, records))
    policy, first = policy_of(programs, kernels, collected), first_answers(collected)
    return [replace(answer, policy=policy) if answer in first else answer for answer in collected]


def _compilers(compared: Sequence[Choice]) -> list[str]:
    return list(dict.fromkeys(effect.cell.compiler for choice in compared for effect in choice.effects))


def _of_compiler(compared: Sequence[Choice], compiler: str | None) -> list[Choice]:
    """The choices with the effects of a compiler alone, those without any omitted."""
    own = [
        replace(choice, effects=tuple(e for e in choice.effects if compiler in (None, e.cell.compiler)))
        for choice in compared
    ]
    return [choice for choice in own if choice.effects]


def _answer(
    kernels: Sequence[KernelResult],
    dimension: Dimension,
    compared: Sequence[Choice],
    compiler: str | None,
    records: Sequence[Record],
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
    if all(ratio.low is None for choice in compared for ratio in choice.ratios):
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
        apply=tuple(_builds(advice, records)),
    )


def _builds(advice: Advice, records: Sequence[Record]) -> Iterable[BuildAdvice]:
    """The builds to load, all else as in the baseline; with `choose`, what is better for each kernel."""
    advised: dict[tuple[str, tuple[str, ...]], tuple[Cell, list[str]]] = {}
    for row in advice.choices[0].effects if advice.outcome in ("use", "keep", "choose") else ():
        is_used = advice.outcome == "use" or (advice.outcome == "choose" and row.verdict == "faster")
        cell = row.cell if is_used else row.reference
        if cell is not None and cell.measured.is_module:
            key = cell.measured.module, cell.arguments
            advised.setdefault(key, (cell, []))[1].append(row.benchmark.name)
    return (build_of(cell, names, records) for cell, names in advised.values())


def where(compiler: str | None, loop: str | None) -> str:
    """What an answer is limited to, before a sentence: `gcc-12.2.0: `; empty if it is for all."""
    text = ", ".join(filter(None, (compiler, f"in {LOOP.text(loop)}" if loop else "")))
    return f"{text if compiler else capital(text)}: " if text else ""


def _base(kernels: Sequence[KernelResult], dimension: Dimension, compared: Sequence[Choice]) -> str:
    """The baselines' value in words."""
    if dimension is COMPILER:
        return compared[0].value.partition(AGAINST)[2]
    names = {effect.benchmark.name for choice in compared for effect in choice.effects}
    groups = (group for result in kernels if result.benchmark.name in names for group in result.groups)
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
    ratios = sorted((effect.ratio for effect in effects if effect.ratio), key=lambda ratio: ratio.median)
    is_less = ratios[0].median < 1.0
    text = f"{_changes(ratios)} {'less' if is_less else 'more'} time"
    if is_less:
        ends = dict.fromkeys(f"{1.0 / ratio.median:.2f}" for ratio in (ratios[-1], ratios[0]))
        text += f" (speed-up {' to '.join(ends)})"
    if len(choice.effects) == 1:
        return text + memory_text(effects[0].memory)
    titles, every = ({e.benchmark.title for e in several} for several in (effects, choice.effects))
    names = f" ({', '.join(titles)})" if len(titles) == 1 < len(every) else ""
    return f"{text} in {len(effects)} of {len(choice.effects)} comparisons{names}"


def _changes(ratios: Sequence[Ratio]) -> str:
    """Changes of time: of one ratio with its interval, `34 % (31 to 36 %)`, of several the range."""
    text, first = _range([ratio.median for ratio in ratios]), ratios[0]
    if len(ratios) > 1 or first.low is None or first.high is None:
        return text
    return f"{text} ({_range([first.low, first.high])})"


def _range(ratios: Sequence[float]) -> str:
    """Ratios as changes in per cent: `34 %`, `8 to 43 %`; below 10 % with a decimal."""
    shares = [abs(1.0 - ratio) for ratio in ratios]
    low, high = share_text(min(shares)), share_text(max(shares))
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
    over = [
        f"{entry.label} ({cost_text(entry.row)})" for entry in ranked_rows(kernels) if entry.row.over_budget
    ]
    sentences += [f"Above the memory budget, therefore not advised: {', '.join(over)}."] if over else []
    return " ".join(sentences) or (
        "No verdict on huge pages: no configuration with them was measured together with its baseline."
    )


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
    return [f"{message}: {_rounds(several)}." for message, several in lost.items()]


def _rounds(entries: Sequence[DataRow]) -> str:
    fewest = min(entries, key=lambda entry: entry.row.share)
    more = f", and in {len(entries) - 1} more" if len(entries) > 1 else ""
    return f"{rounds_share(fewest.row)} in {fewest.benchmark.title} ({fewest.label}){more}"
