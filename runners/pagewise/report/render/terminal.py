"""A report on a terminal: tables first, the answer last, where the eye is."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

import rich.table
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.text import Text as RichText

from pagewise.report.model import Block, Column, Facts, Report, Section, Table, Text, cell

_STYLES = {
    "faster": "bold green",
    "slower": "bold red",
    "inconclusive": "dim",
    "baseline": "cyan",
    "excluded": "yellow",
    "reference": "dim",
    "strong": "bold",
}
_TEXTS = {"": "", "dim": "dim", "note": "yellow", "code": ""}
# A head is wrapped at so many characters.
_HEAD = 16
_UNLIMITED = 10000


def show(console: Console, report: Report) -> None:
    """Prints the sections for a terminal, then headline, answers and notes."""
    _show(console, report.sections)
    console.print()
    console.print(RichText(report.headline, style="bold"), soft_wrap=True)
    for answer in report.answers:
        _text(console, answer)
    for note in report.notes:
        console.print(RichText(f"note: {note}", style="yellow"), soft_wrap=True)


def show_table(console: Console, table: Table) -> None:
    """Prints a table; no value is cut off: without room it loses optional columns, then it is wider."""
    width = console.width
    columns = [place for place, column in enumerate(table.columns)]
    shown = _rich(table, columns)
    if _width(console, shown) > width and any(column.optional for column in table.columns):
        columns = [place for place in columns if not table.columns[place].optional]
        shown = _rich(table, columns)
    console.width = (
        width if any(column.wrap for column in table.columns) else max(width, _width(console, shown))
    )
    console.print(shown, crop=False)
    console.width = width


def _show(console: Console, blocks: Sequence[Block]) -> None:
    for block in blocks:
        if isinstance(block, Section):
            if block.only:
                continue
            if not all(isinstance(inner, Section) for inner in block.blocks):
                console.print()
                console.rule(RichText(block.title, style="bold"), align="left")
            _show(console, block.blocks)
        elif isinstance(block, Table):
            console.print()
            show_table(console, block)
        elif isinstance(block, Text):
            _text(console, block)
        elif isinstance(block, Facts):
            for name, value in block.facts:
                console.print(RichText.assemble((f"{name:<22} ", "bold"), value), soft_wrap=True)


def _text(console: Console, block: Text) -> None:
    lead = f"{block.lead} " if block.lead else ""
    style = _TEXTS[block.style]
    # Only a terminal breaks lines at words: elsewhere a paragraph stays a line.
    whole = block.style == "code" or not console.is_terminal
    console.print(RichText.assemble((lead, "bold"), (block.text, style)), soft_wrap=whole)


def _width(console: Console, table: rich.table.Table) -> int:
    return Measurement.get(console, console.options.update(width=_UNLIMITED), table).maximum


def _rich(table: Table, places: Sequence[int]) -> rich.table.Table:
    made = rich.table.Table(
        title=RichText(table.title, style="bold cyan") if table.title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        padding=(0, 1),
    )
    for place in places:
        column = table.columns[place]
        made.add_column(
            _head(column),
            justify="right" if column.right else "left",
            no_wrap=not column.wrap,
            overflow="fold",
        )
    for number, row in enumerate(table.rows):
        made.add_row(*(_cell(table, number, place, row[place]) for place in places))
    return made


def _head(column: Column) -> str:
    return "\n".join(filter(None, [column.above, *wrap(column.head, _HEAD), column.unit]))


def _cell(table: Table, row: int, place: int, value: object) -> RichText:
    if table.merged(row, place):
        return RichText("")
    shown = cell(value)  # type: ignore[arg-type]
    text = shown.signed(table.columns[place])
    note = (f": {shown.note}" if text else shown.note) if shown.note else ""
    return RichText.assemble((text, _STYLES.get(shown.style, "")), (note, "dim"))
