"""A report on a terminal: tables first, the answer last, next to the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap

import rich.table
from rich import box
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.measure import Measurement
from rich.text import Text as RichText

from pagewise.report.model import (
    Block,
    Column,
    Facts,
    Recommendation,
    Report,
    Section,
    Table,
    TableCell,
    Text,
)

_STYLES = {
    "faster": "bold green",
    "slower": "bold red",
    "inconclusive": "dim",
    "baseline": "cyan",
    "excluded": "yellow",
    "reference": "dim",
    "strong": "bold",
}
_TEXTS = {"dim": "dim", "note": "yellow"}
# Column heads are wrapped at this number of characters.
_HEAD = 16
_UNLIMITED = 10000
# Commands under a headline that is not explained.
_COMMANDS = 4
# Lines of a window that a table of verdicts leaves to its title and heads, the headline and the bar.
_AROUND = 12


def show(console: Console, report: Report, *, explained: bool = True) -> None:
    """Prints the sections for a terminal, then headline, recommendations, answers and notes.

    `explained`: all sections, with the texts that describe what tables show, and with the noise of each
    comparison; otherwise the brief ones, if the report has them.
    """
    is_brief = bool(report.brief) and not explained
    _show(console, report.brief if is_brief else report.sections, explained)
    console.print()
    headline = RichText.assemble((report.headline, "bold"), (f" {report.condition}".rstrip(), "dim"))
    console.print(headline, soft_wrap=not console.is_terminal)
    for recommended in report.recommendations:
        _recommend(console, recommended, explained)
    for note in report.notes:
        console.print(RichText(f"note: {note}", style="yellow"), soft_wrap=not console.is_terminal)


def _recommend(console: Console, shown: Recommendation, explained: bool) -> None:
    """A recommendation; if it is not explained, without evidence and cost, and with few commands."""
    if not shown.in_headline:
        _text(console, Text(shown.text, shown.question))
    if explained:
        for name, text in (("How sure:", shown.sure), ("Cost:", shown.cost)):
            if text:
                _text(console, Text(text, f"  {name}"))
    for name, command in shown.apply if explained else shown.apply[:_COMMANDS] if shown.in_headline else ():
        # On a line without other words, so that it can be copied.
        console.print(RichText(f"  {name}:", style="bold"))
        console.print(RichText(f"    {command}"), soft_wrap=True)


def summary(console: Console, headline: str, table: Table) -> RenderableType:
    """A headline and the rows of a table that fit into the window."""
    shown = replace(table, rows=table.rows[: max(1, console.height - _AROUND)])
    hidden = len(table.rows) - len(shown.rows)
    more = [RichText(f"and {hidden} more", style="dim")] if hidden else []
    return Group(_rich(shown, with_optional=False), *more, RichText(headline, style="bold"))


def show_table(console: Console, table: Table) -> None:
    """Prints a table without truncating values: it omits optional columns, then exceeds the width."""
    width, shown = console.width, _rich(table, with_optional=True)
    if _width(console, shown) > width:
        shown = _rich(table, with_optional=False)
    wraps = any(column.wrap for column in table.columns)
    console.width = width if wraps else max(width, _width(console, shown))
    console.print(shown, crop=False)
    console.width = width


def _show(console: Console, blocks: Sequence[Block], explained: bool) -> None:
    for block in blocks:
        match block:
            case Section(only=""):
                if not all(isinstance(inner, Section) for inner in block.blocks):
                    console.print()
                    console.rule(RichText(block.title, style="bold"), align="left")
                _show(console, block.blocks, explained)
            case Table() if block.is_single:
                _text(console, Text(f"{block.as_text}.", f"{block.title}:" if block.title else ""))
            case Table():
                console.print()
                show_table(console, block)
            case Text(style="dim") if not explained:
                pass
            case Text():
                _text(console, block)
            case Facts():
                for name, value in block.facts:
                    console.print(RichText.assemble((f"{name:<22} ", "bold"), value), soft_wrap=True)


def _text(console: Console, block: Text) -> None:
    lead = f"{block.lead} " if block.lead else ""
    # Only a terminal breaks lines at words: in files and pipes a paragraph stays on one line.
    whole = block.style == "code" or not console.is_terminal
    console.print(
        RichText.assemble((lead, "bold"), (block.text, _TEXTS.get(block.style, ""))), soft_wrap=whole
    )


def _width(console: Console, table: rich.table.Table) -> int:
    return Measurement.get(console, console.options.update(width=_UNLIMITED), table).maximum


def _rich(table: Table, *, with_optional: bool) -> rich.table.Table:
    shown = rich.table.Table(
        title=RichText(table.title, style="bold cyan") if table.title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        padding=(0, 1),
    )
    for column in table.columns:
        if with_optional or not column.optional:
            head = "\n".join(filter(None, [column.above, *wrap(column.head, _HEAD), column.unit]))
            justify: JustifyMethod = "right" if column.right else "left"
            shown.add_column(head, justify=justify, no_wrap=not column.wrap, overflow="fold")
    for row in table.shown_rows():
        shown.add_row(*(_cell(*pair) for pair in row if with_optional or not pair[0].optional))
    return shown


def _cell(column: Column, shown: TableCell) -> RichText:
    text = shown.signed_text(column)
    note = (f": {shown.note}" if text else shown.note) if shown.note else ""
    return RichText.assemble((text, _STYLES.get(shown.style, "")), (note, "dim"))
