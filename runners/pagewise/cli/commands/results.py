"""`pagewise results`: list, show, query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import click

from pagewise.cli.options import JSON, STORE, WAIT, make_console, print_json
from pagewise.cli.shell import values

_ENDLESS = 1 << 20


@click.group()
def command() -> None:
    """List results, show one, or ask a store of many (docs/results.md)."""


@command.command("list")
@click.argument(
    "folders",
    nargs=-1,
    type=click.Path(path_type=Path),
    metavar="[DIR]...",
    shell_complete=values.one_of(values.folders_of_results),
)
@JSON
def list_results(folders: Sequence[Path], as_json: bool) -> None:
    """List the results at or below each DIR (by default results), the oldest first."""
    from rich.text import Text

    from pagewise.store.listing import listed

    found = listed(folders or [Path("results")])
    if as_json:
        print_json({"schema": "pagewise.results/1", "results": found})
        return
    columns = ("created", "kind", "state", "node", "kernels", "configurations", "records", "folder")
    rows = [
        (
            one["created"],
            one["kind"],
            "altered" if one["altered"] else (one["state"] or "") + (" (partial)" if one["faults"] else ""),
            one["hostname"],
            len(one["kernels"]),
            one["configurations"],
            one["records"],
            _short(one["folder"]),
        )
        for one in found
        if "fault" not in one
    ]
    _print_table(columns, rows)
    for one in found:
        if "fault" in one:
            told = f" {one['folder']}: {one['fault']}"
            make_console().print(Text.assemble(("no result:", "yellow"), told), soft_wrap=True)


@command.command("show")
@click.argument("result", type=click.Path(path_type=Path), shell_complete=values.one_of(values.results))
@JSON
def show(result: Path, as_json: bool) -> None:
    """Show what a RESULT folder holds: machine, sources, what was measured and how its runs ended.

    `pagewise report RESULT` shows the figures.
    """
    from pagewise.store.listing import shown

    told = shown(result)
    if as_json:
        print_json({**told, "schema": "pagewise.result/1"})
        return
    for name, value in told.items():
        if name not in ("cells", "runs", "not_ranked", "faults") and value not in (None, [], ""):
            text = " ".join(map(str, value)) if isinstance(value, list) else value
            click.echo(f"{name.replace('_', ' '):<22} {text}")
    for one in told["runs"]:
        click.echo(f"{'runs':<22} {one['records']} {one['series']}: {one['status']}")
    for one in told["not_ranked"]:
        click.echo(f"{'not ranked':<22} {one['records']}: {one['reason']}")
    for fault in told["faults"]:
        click.echo(f"{'left out':<22} {fault}")


@command.command("query")
@click.argument("question", required=False, shell_complete=values.one_of(values.questions))
@STORE
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of a table.")
@JSON
@WAIT
def query(question: str | None, store: Path, as_csv: bool, as_json: bool, wait: float) -> None:
    """Ask a store that `pagewise collect` made: a known QUESTION by name, SQL, or a file that ends in .sql.

    Without a QUESTION the known ones are listed. --store may also be a folder of exported Parquet files.
    """
    from pagewise.core.files import table_text
    from pagewise.store.query import ask, known, statement

    if question is None:
        for name, text in known().items():
            click.echo(f"{name:<16} {text}")
        return
    columns, rows = ask(store, statement(question), wait)
    if as_json:
        print_json(
            {
                "schema": "pagewise.answer/1",
                "columns": columns,
                "rows": [dict(zip(columns, map(_plain, row), strict=True)) for row in rows],
            }
        )
    elif as_csv:
        click.echo(table_text(columns, rows), nl=False)
    else:
        _print_table(columns, rows)


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
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
        # Nobody scrolls a file or a pipe sideways, and programs read them: a row is a line.
        console.width = max(console.width, Console(width=_ENDLESS).measure(table).maximum)
    console.print(table if columns else "done")
    if columns and not rows:
        click.echo("no rows")


def _plain(value: Any) -> Any:
    """The value as JSON has it."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _short(folder: str) -> str:
    """The folder as seen from here, where that is shorter."""
    path, here = Path(folder), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else folder
