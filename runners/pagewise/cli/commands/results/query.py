"""`pagewise results query`."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from pagewise.cli.options import JSON, STORE, WAIT, examples, print_json
from pagewise.cli.shell import values
from pagewise.cli.tables import print_table

_EXAMPLES = examples(
    "pagewise results query  # known questions",
    "pagewise results query slow-nodes --csv",
    "pagewise results query 'SELECT kernel, count(*) FROM records GROUP BY kernel'",
)


@click.command(epilog=_EXAMPLES)
@click.argument("question", required=False, shell_complete=values.one_of(values.questions))
@STORE
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of a table.")
@JSON
@WAIT
def command(question: str | None, store: Path, as_csv: bool, as_json: bool, wait: float) -> None:
    """Query a store of `pagewise results collect`: a known QUESTION by name, SQL, or a file ending in .sql.

    Without a QUESTION, list the known ones. --store may also be a folder of exported Parquet files.
    """
    from pagewise.report.render import csv
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
                "rows": [dict(zip(columns, row, strict=True)) for row in rows],
            }
        )
    elif as_csv:
        click.echo(csv.text(columns, rows), nl=False)
    else:
        print_table(columns, rows)
