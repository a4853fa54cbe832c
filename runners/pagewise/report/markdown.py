"""summary.md: what a merge request or an issue should show, in the Markdown of GitLab and GitHub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pagewise.analysis.analysis import KernelResult
from pagewise.core.result import Result
from pagewise.core.units import percent_text, seconds_text
from pagewise.report import advice, words
from pagewise.report.facts import glance
from pagewise.report.matrix import Cell, matrix

MARKDOWN = "summary.md"
_SIGNS = {"faster": "▼", "slower": "▲", "inconclusive": "?"}


def markdown(result: Result, kernels: Sequence[KernelResult]) -> str:
    """The text of the file."""
    return "\n".join(_lines(result, kernels)) + "\n"


def _lines(result: Result, kernels: Sequence[KernelResult]) -> Iterator[str]:
    manifest = result.manifest
    yield f"**{escaped(advice.headline(kernels))}**"
    yield ""
    for answer in advice.answers(kernels)[1:]:
        yield from (f"**{escaped(answer.question)}** {escaped(answer.whole)}", "")
    facts = [f"{name}: {value}" for name, value in glance(manifest, kernels, linked=False)]
    yield f"{escaped('; '.join(facts))}."
    for note in words.notes(manifest, kernels, result.records):
        yield from ("", f"> {escaped(note)}")
    if sum(len(one.groups) for one in kernels) > 1:
        yield from _choices(kernels)
        yield from ("", "<details><summary>Time ratio by kernel and configuration</summary>", "")
        yield from _matrix(kernels)
        yield from ("", "▼ faster, ▲ slower, ? inconclusive, × not ranked; bold: best of its compiler.", "")
        yield "</details>"
    for one in kernels:
        opened = " open" if len(kernels) == 1 else ""
        yield from ("", f"<details{opened}><summary>{escaped(one.kernel.title)}</summary>", "")
        yield from _kernel(one)
        yield from ("", "</details>")


def _choices(kernels: Sequence[KernelResult]) -> Iterator[str]:
    counts = ("faster", "inconclusive", "slower", "not ranked")
    heads = ("choice by itself", *counts, "time ratio, median", "geometric mean")
    yield from ("", *_table(heads, "lrrrrrr", (_choice(one) for one in advice.choices(kernels))))


def _choice(one: advice.Choice) -> list[str]:
    counts = [len(one.told("faster")), len(one.told("inconclusive")), len(one.told("slower")), one.missing]
    middle = "" if one.middle is None else f"{one.middle:.2f}"
    mean = f"{words.ratio_text(one.mean)} {words.interval_text(one.mean)}".strip()
    return [words.choice_text(one.factor, one.value), *map(str, counts), middle, mean]


def _matrix(kernels: Sequence[KernelResult]) -> Iterator[str]:
    whole = matrix(kernels)
    rows = (
        [line.kernel.kernel.title if line.span else "", line.compiler, *map(_cell, line.cells)]
        for line in whole.lines
    )
    yield from _table(("kernel", "compiler", *whole.columns), "ll" + "r" * len(whole.columns), rows)


def _cell(cell: Cell) -> str:
    row = cell.row
    if row is None:
        return "–"
    if row.invalid is not None:
        return "×"
    if row.cell.is_baseline or row.time_ratio is None:
        return "1" if row.cell.is_baseline else "?"
    text = f"{_SIGNS[row.verdict]} {row.time_ratio.median:.2f}"
    return f"**{text}**" if cell.is_best else text


def _kernel(one: KernelResult) -> Iterator[str]:
    metric = one.kernel.headline
    measured = ("compiler", "configuration", "time", metric.title, "pages seen")
    heads = (*measured, "ratio", "95 % interval", "verdict")
    rows = []
    for group in one.groups:
        for row in group.ranked:
            told = (
                ("1", "", "baseline")
                if row.cell.is_baseline
                else (
                    words.ratio_text(row.time_ratio),
                    words.interval_text(row.time_ratio),
                    f"{_SIGNS[row.verdict]} {row.verdict}",
                )
            )
            name = words.label(one.kernel, row.cell.measured)
            time = "" if row.seconds is None else seconds_text(row.seconds)
            value = words.metric_text(row, metric.field)
            rows.append([group.compiler, name, time, value, words.pages_text(row), *told])
        rows += [
            [group.compiler, words.label(one.kernel, row.cell.measured), *[""] * 5, "× not ranked"]
            for row in group.unranked
        ]
    yield from _table(heads, "llrrlrll", rows)
    floors = [
        f"{group.compiler} {percent_text(group.floor)}" for group in one.groups if group.floor is not None
    ]
    if floors:
        yield from ("", f"Noise floor: {', '.join(floors)}.")
    for title, sentence in words.factor_sentences(one):
        yield from ("", f"{title}: {escaped(sentence)}")
    for text in words.missing_texts(one):
        yield from ("", f"× {escaped(text)}")


def _table(heads: Sequence[str], sides: str, rows: Iterable[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(escaped, heads))} |"
    yield f"|{'|'.join(' ---: ' if side == 'r' else ' --- ' for side in sides)}|"
    for row in rows:
        yield f"| {' | '.join(map(_bare, row))} |"


def escaped(text: str) -> str:
    """Text in one line, in which nothing is Markdown or HTML."""
    text = " ".join(text.split("\n"))
    for sign in "\\`*_{}[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return text


def _bare(text: str) -> str:
    """A cell: what is bold stays so."""
    if text.startswith("**") and text.endswith("**") and len(text) > 4:
        return f"**{escaped(text[2:-2])}**"
    return escaped(text)
