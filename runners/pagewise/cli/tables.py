"""Tables of plain values on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from pagewise.cli.options import make_console


def print_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints the rows; where standard output is not a terminal, one line per row."""
    from pagewise.report.model import Column, Table
    from pagewise.report.render.terminal import show_table

    if not names:
        click.echo("done")
        return
    console = make_console()
    columns = []
    for place, name in enumerate(names):
        numbers = bool(rows) and all(isinstance(row[place], int | float | None) for row in rows)
        # Nobody scrolls a file or a pipe sideways, and programs read them.
        wrap = console.is_terminal and not numbers
        columns.append(Column(name, name, "plain" if numbers else "text", wrap=wrap))
    show_table(console, Table("", tuple(columns), tuple(map(tuple, rows))))
    if not rows:
        click.echo("no rows", err=True)
