"""A report as Markdown of GitLab and GitHub, for merge requests and issues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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

_SPECIAL = "\\`*_{}[]<>|"


def render(report: Report) -> str:
    """The text of the file, without figures and without sections only for the page."""
    return "\n".join(_report(report)) + "\n"


def escape(text: str) -> str:
    """Text on one line, with the special characters of Markdown and HTML escaped."""
    text = " ".join(text.split("\n"))
    for sign in _SPECIAL:
        text = text.replace(sign, f"\\{sign}")
    return text


def _report(report: Report) -> Iterator[str]:
    yield f"**{escape(report.headline)}**"
    if report.condition:
        yield escape(report.condition)
    for recommended in report.recommendations:
        yield from _recommendation(recommended)
    if report.facts:
        yield from ("", escape("; ".join(f"{name}: {value}" for name, value in report.facts)) + ".")
    for note in report.notes:
        yield from ("", f"> {escape(note)}")
    yield from _blocks(report.sections, next(iter(report.sections), None))


def _recommendation(shown: Recommendation) -> Iterator[str]:
    """What to change, how sure that is, what it costs; the commands of all but the headline's are folded."""
    if not shown.in_headline:
        yield from ("", f"**{escape(shown.question)}** {escape(shown.text)}")
    for name, text in (("How sure", shown.sure), ("Cost", shown.cost)):
        if text:
            yield f"- {name}: {escape(text)}"
    if shown.apply:
        folded = not shown.in_headline
        yield from ("", "<details><summary>How to apply it</summary>") if folded else ()
        for name, command in shown.apply:
            yield from ("", f"{escape(name)}:", "", "    " + " ".join(command.split()))
        yield from ("", "</details>") if folded else ()


def _blocks(blocks: Sequence[Block], first: Block | None = None) -> Iterator[str]:
    """The blocks; sections are closed, except the first one."""
    for block in blocks:
        match block:
            case Section(only="page"):
                pass
            case Section(blocks=inner) if all(isinstance(each, Section) for each in inner):
                yield from _blocks(inner)
            case Section():
                state = " open" if block is first else ""
                yield from ("", f"<details{state}><summary>{escape(block.title)}</summary>")
                yield from (*_blocks(block.blocks), "", "</details>")
            case Table() if block.is_single:
                yield from ("", _text(Text(f"{block.as_text}.", f"{block.title}:" if block.title else "")))
            case Table():
                yield from _table(block)
            case Text():
                yield from ("", _text(block))
            case Facts():
                yield ""
                yield from (f"- {escape(name)}: {escape(value)}" for name, value in block.facts)


def _text(block: Text) -> str:
    if block.style == "code":
        # Indented code needs no escapes, but must stay on one line.
        return "    " + " ".join(block.text.split())
    return (f"**{escape(block.lead)}** " if block.lead else "") + escape(block.text)


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield from ("", f"{escape(table.title)}:")
    heads = (
        " ".join(filter(None, (column.above, column.head, f"[{column.unit}]" if column.unit else "")))
        for column in table.columns
    )
    yield from ("", f"| {' | '.join(map(escape, heads))} |")
    yield f"|{'|'.join(' ---: ' if column.right else ' --- ' for column in table.columns)}|"
    for row in table.shown_rows():
        yield f"| {' | '.join(_cell(column, cell) for column, cell in row)} |"


def _cell(column: Column, shown: TableCell) -> str:
    text = escape(": ".join(filter(None, (shown.signed_text(column), shown.note))))
    return f"**{text}**" if text and (shown.best or shown.style == "strong") else text
