"""LaTeX tables for \\input into a document that uses booktabs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pagewise.analysis.analysis import Group, KernelResult, Row
from pagewise.core.units import percent_text, seconds_text
from pagewise.report import words
from pagewise.report.matrix import Cell, matrix

TABLES = "tables.tex"
_SPECIAL = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#{}"},
        "_": r"\_\allowbreak{}",  # names of events are long
        "/": r"/\allowbreak{}",
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "µ": r"\textmu{}",
        "–": "--",
        "×": r"$\times$",
    }
)


def escaped(text: str) -> str:
    """Text as LaTeX has it."""
    return text.translate(_SPECIAL)


def latex_tables(name: str, results: Sequence[KernelResult]) -> str:
    """A table for each kernel and, of several, one of the whole matrix. name: the result's folder."""
    # A folder's name may hold the end of a line, and with it of the comment.
    lines = [f"% pagewise, {' '.join(name.split())}. Needs: \\usepackage{{booktabs,graphicx}}"]
    for one in results:
        lines += ["", *_kernel_table(one)]
    if sum(len(one.groups) for one in results) > 1:
        lines += ["", *_matrix_table(results)]
    return "\n".join(lines) + "\n"


def _kernel_table(one: KernelResult) -> Iterator[str]:
    kernel, metric = one.kernel, one.kernel.headline
    title = f"{kernel.title}: time ratio to the baseline of the same compiler, below 1 is faster"
    heads = ("Configuration", "Time", metric.title, "Ratio", "95 % interval", "Verdict")
    body = []
    for group in one.groups:
        floor = "" if group.floor is None else f", noise floor {percent_text(group.floor)}"
        body.append(rf"\multicolumn{{{len(heads)}}}{{l}}{{\emph{{{escaped(group.compiler + floor)}}}}} \\")
        body += [_line(cells) for cells in _rows(one, group)]
        body.append(r"\addlinespace")
    yield from _table(title, f"pagewise-{kernel.name}", "lrrrll", [_line(heads)], body[:-1])


def _rows(one: KernelResult, group: Group) -> Iterator[tuple[str, ...]]:
    for row in group.ranked:
        name = words.label(one.kernel, row.cell.measured)
        told = "" if row.seconds is None else seconds_text(row.seconds)
        measured = (name, told, words.metric_text(row, one.kernel.headline.field))
        if row.cell.is_baseline:
            yield (*measured, "1", "", "baseline")
        else:
            ratio = words.ratio_text(row.time_ratio), words.interval_text(row.time_ratio)
            yield (*measured, *ratio, row.verdict)
    for row in group.unranked:
        yield (words.label(one.kernel, row.cell.measured), "", "", "", "", "not ranked")


def _matrix_table(results: Sequence[KernelResult]) -> Iterator[str]:
    whole = matrix(results)
    policies = "".join(
        rf" & \multicolumn{{{len(names)}}}{{c}}{{{escaped(policy)}}}" for policy, names in whole.heads
    )
    names = ("", "", *(name for _, those in whole.heads for name in those))
    rules, place = [], 3
    for _, those in whole.heads:
        rules.append(rf"\cmidrule(lr){{{place}-{place + len(those) - 1}}}")
        place += len(those)
    body = [
        _line((line.kernel.kernel.title if line.span else "", line.compiler), map(_matrix_text, line.cells))
        for line in whole.lines
    ]
    title = (
        "Time ratio by kernel and configuration: bold ones differ from 1, in parentheses it cannot be told, "
        "n is not ranked"
    )
    columns = "ll" + "r" * len(whole.columns)
    yield from _table(
        title, "pagewise-matrix", columns, [f" &{policies} \\\\", " ".join(rules), _line(names)], body
    )


def _matrix_text(cell: Cell) -> str:
    row: Row | None = cell.row
    if row is None:
        return "--"
    if row.invalid is not None:
        return "n"
    if row.cell.is_baseline or row.time_ratio is None:
        return "1" if row.cell.is_baseline else "?"
    text = f"{row.time_ratio.median:.2f}"
    return f"({text})" if row.verdict == "inconclusive" else rf"\textbf{{{text}}}"


def _line(texts: Sequence[str], made: Iterator[str] | Sequence[str] = ()) -> str:
    """A line of a table: texts, and after them what is LaTeX already."""
    return " & ".join([*map(escaped, texts), *made]) + r" \\"


def _table(title: str, label: str, columns: str, heads: Sequence[str], body: Sequence[str]) -> Iterator[str]:
    yield r"\begin{table}"
    yield rf"  \caption{{{escaped(title)}}}\label{{tab:{label}}}"
    yield r"  \centering\small"
    yield r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    yield rf"  \begin{{tabular}}{{{columns}}}"
    yield from (f"    {line}" for line in (r"\toprule", *heads, r"\midrule", *body, r"\bottomrule"))
    yield r"  \end{tabular}}"
    yield r"\end{table}"
