r"""The tables of a report for \input into a LaTeX document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pagewise.report.model import Block, Cell, Column, Report, Section, Table

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
# Longer tables may break across pages; others are scaled to the text width.
_LONG = 40
_WRAPPED = r"p{0.32\linewidth}"


def render(report: Report) -> str:
    """All tables except those only for the page."""
    # A name may contain a line break, which would end the comment.
    lines = [
        f"% {escaped(' '.join(report.title.split()))}. Needs: \\usepackage{{booktabs,graphicx,longtable}}",
        *(f"% {escaped(' '.join(note.split()))}" for note in report.notes),
    ]
    for number, (caption, table) in enumerate(_tables(report.sections), start=1):
        lines += ["", *_table(caption, table, f"tab:pagewise-{number}")]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text that LaTeX shows as it is."""
    return text.translate(_SPECIAL)


def _tables(blocks: Sequence[Block], title: str = "") -> Iterator[tuple[str, Table]]:
    for block in blocks:
        if isinstance(block, Section) and block.only != "page":
            yield from _tables(block.blocks, block.title)
        elif isinstance(block, Table):
            yield ": ".join(dict.fromkeys(filter(None, (title, block.title)))), block


def _table(caption: str, table: Table, label: str) -> Iterator[str]:
    title = rf"\caption{{{escaped(caption)}}}\label{{{label}}}"
    head, rows = list(_head(table)), list(_rows(table))
    if len(rows) > _LONG:
        yield from (r"{\small", rf"\begin{{longtable}}{{{_sides(table, _WRAPPED)}}}", rf"  {title}\\")
        yield from (r"  \toprule", *head, r"  \midrule", r"  \endfirsthead")
        yield from (r"  \toprule", *head, r"  \midrule", r"  \endhead", r"  \bottomrule", r"  \endfoot")
        yield from (*rows, r"\end{longtable}}")
        return
    yield from (r"\begin{table}", f"  {title}", r"  \centering\small")
    yield r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    yield rf"  \begin{{tabular}}{{{_sides(table, 'l')}}}"
    yield from (r"  \toprule", *head, r"  \midrule", *rows, r"  \bottomrule")
    yield from (r"  \end{tabular}}", r"\end{table}")


def _sides(table: Table, wrapped: str) -> str:
    return "".join("r" if column.right else wrapped if column.wrap else "l" for column in table.columns)


def _head(table: Table) -> Iterator[str]:
    if any(column.above for column in table.columns):
        cells, rules, place = [], [], 1
        for text, width in table.heads:
            cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escaped(text)}}}" if text else "")
            rules += [rf"\cmidrule(lr){{{place}-{place + width - 1}}}"] if text else []
            place += width
        yield from (f"  {' & '.join(cells)} \\\\", f"  {' '.join(rules)}")
    heads = (column.head + (f" [{column.unit}]" if column.unit else "") for column in table.columns)
    yield f"  {' & '.join(map(escaped, heads))} \\\\"


def _rows(table: Table) -> Iterator[str]:
    for row in table.shown_rows():
        yield f"  {' & '.join(_cell(column, cell) for column, cell in row)} \\\\"


def _cell(column: Column, shown: Cell) -> str:
    """Numbers are bold where the verdict is not inconclusive; the words of a verdict need no emphasis."""
    text = escaped(shown.signed(column) if shown.style == "excluded" else column.text(shown))
    decided = shown.style in ("faster", "slower", "strong") and column.kind != "text"
    return rf"\textbf{{{text}}}" if text and decided else text
