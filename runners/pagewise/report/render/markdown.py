"""A report as Markdown of GitLab and GitHub, for merge requests and issues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pagewise.report.model import Block, Facts, Report, Section, Table, Text, cell

_SPECIAL = "\\`*_{}[]<>|"


def render(report: Report) -> str:
    """The text of the file; without figures and sections for the page alone."""
    return "\n".join(_report(report)) + "\n"


def escaped(text: str) -> str:
    """Text in one line, in which nothing is Markdown or HTML."""
    text = " ".join(text.split("\n"))
    for sign in _SPECIAL:
        text = text.replace(sign, f"\\{sign}")
    return text


def _report(report: Report) -> Iterator[str]:
    yield f"**{escaped(report.headline)}**"
    for answer in report.answers:
        yield from ("", _text(answer))
    if report.facts:
        yield from ("", escaped("; ".join(f"{name}: {value}" for name, value in report.facts)) + ".")
    for note in report.notes:
        yield from ("", f"> {escaped(note)}")
    yield from _blocks(report.sections, next(iter(report.sections), None))


def _blocks(blocks: Sequence[Block], first: Block | None = None) -> Iterator[str]:
    """The blocks; sections are closed, except the first one."""
    for block in blocks:
        if isinstance(block, Section):
            if block.only == "page":
                continue
            if all(isinstance(inner, Section) for inner in block.blocks):
                yield from _blocks(block.blocks)
                continue
            yield from (
                "",
                f"<details{' open' if block is first else ''}><summary>{escaped(block.title)}</summary>",
            )
            yield from _blocks(block.blocks)
            yield from ("", "</details>")
        elif isinstance(block, Table):
            yield from _table(block)
        elif isinstance(block, Text):
            yield from ("", _text(block))
        elif isinstance(block, Facts):
            yield ""
            yield from (f"- {escaped(name)}: {escaped(value)}" for name, value in block.facts)


def _text(block: Text) -> str:
    if block.style == "code":
        # Indented code is shown as it is, as long as it is one line.
        return "    " + " ".join(block.text.split())
    return (f"**{escaped(block.lead)}** " if block.lead else "") + escaped(block.text)


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield from ("", f"{escaped(table.title)}:")
    heads = (
        " ".join(filter(None, (one.above, one.head, f"[{one.unit}]" if one.unit else "")))
        for one in table.columns
    )
    yield from ("", f"| {' | '.join(map(escaped, heads))} |")
    yield f"|{'|'.join(' ---: ' if column.right else ' --- ' for column in table.columns)}|"
    for number, row in enumerate(table.rows):
        texts = (
            "" if table.merged(number, place) else _cell(table, place, value)
            for place, value in enumerate(row)
        )
        yield f"| {' | '.join(texts)} |"


def _cell(table: Table, place: int, value: object) -> str:
    shown = cell(value)  # type: ignore[arg-type]
    text = escaped(": ".join(filter(None, (shown.signed(table.columns[place]), shown.note))))
    return f"**{text}**" if text and (shown.best or shown.style == "strong") else text
