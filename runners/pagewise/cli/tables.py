"""Tables of plain values on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from pagewise.cli.options import make_console

_ENDLESS = 1 << 20


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints the rows; where standard output is not a terminal, one line per row."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[place], int | float | None) for row in rows)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if value is None else str(value)) for value in row))
    console = make_console()
    if not console.is_terminal:
        # Nobody scrolls a file or a pipe sideways, and programs read them.
        console.width = max(console.width, Console(width=_ENDLESS).measure(table).maximum)
    console.print(table if columns else "done")
    if columns and not rows:
        click.echo("no rows", err=True)
