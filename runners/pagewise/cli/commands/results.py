"""`pagewise results`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import rich_click as click

from pagewise.cli import options as opt
from pagewise.cli.output import make_console, print_json, print_table
from pagewise.cli.reporting import show
from pagewise.cli.types import Folder, Percent

#: Folders with results as arguments.
_FOLDERS = opt.argument(
    "folders",
    nargs=-1,
    # Not `default`, which older versions of click refuse here.
    callback=lambda context, parameter, folders: folders or (Path("results"),),
    metavar="[DIR]...",
)


@click.group(cls=opt.CommandGroup)
def command() -> None:
    """List, show, query and diff results (docs/reference/results.md)."""


@opt.command("pagewise results list /shared/results", result=(opt.JSON,), parent=command, name="list")
@_FOLDERS
def list_results(folders: Sequence[Path], as_json: bool) -> None:
    """List the results at or below each DIR (default: results), the oldest first."""
    from rich.text import Text

    from pagewise.store.sources import list_results

    results = list_results(folders)
    if as_json:
        print_json({"schema": "pagewise.results/1", "results": results})
        return
    columns = ("created", "kind", "state", "node", "kernels", "configurations", "records", "folder")
    rows = [
        (
            row["created"],
            row["kind"],
            "altered" if row["altered"] else (row["state"] or "") + (" (partial)" if row["faults"] else ""),
            row["hostname"],
            len(row["kernels"]),
            row["configurations"],
            row["records"],
            _short(row["folder"]),
        )
        for row in results
        if "fault" not in row
    ]
    print_table(columns, rows)
    for row in results:
        if "fault" in row:
            text = f" {row['folder']}: {row['fault']}"
            make_console(as_json=True).print(Text.assemble(("not a result:", "yellow"), text), soft_wrap=True)


def _short(folder: str) -> str:
    """The folder as seen from here, where that is shorter."""
    path, here = Path(folder), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else folder


@opt.command(
    "pagewise results show results/20261121T115458Z-default --json",
    result=(opt.JSON,),
    parent=command,
    name="show",
)
@opt.argument("result")
def show_contents(result: Path, as_json: bool) -> None:
    """Show the contents of a result: machine, sources, what was measured, and how its runs ended.

    The command line measures the same again. It is text of the result: if you did not measure the result
    yourself, read the line before you run it. For tables and figures: pagewise report RESULT.
    """
    from pagewise.store.sources import show_result

    contents = show_result(result)
    if as_json:
        print_json({**contents, "schema": "pagewise.result/1"})
        return
    for name, value in contents.items():
        if name not in ("cells", "command", "runs", "excluded", "faults") and value not in (None, [], ""):
            text = " ".join(map(str, value)) if isinstance(value, list) else value
            click.echo(f"{name.replace('_', ' '):<22} {text}")
    if contents["command_line"]:
        click.echo(f"{'':<22} (text of the result: if it is not yours, read the line before you run it)")
    for row in contents["runs"]:
        click.echo(f"{'runs':<22} {row['records']} {row['series']}: {row['status']}")
    for row in contents["excluded"]:
        click.echo(f"{'excluded':<22} {row['records']}: {row['reason']}")
    for fault in contents["faults"]:
        click.echo(f"{'invalid lines':<22} {fault}")


@opt.command(
    "pagewise results query  # known questions",
    "pagewise results query slow-nodes /shared/results --csv",
    "pagewise results query 'SELECT kernel, count(*) FROM records GROUP BY kernel'",
    result=(
        opt.option(
            "--write", "Folder that the SQL may write files to (COPY ... TO).", type=Folder(exists=True)
        ),
        opt.flag("--csv as_csv", "Print CSV instead of a table."),
        opt.JSON,
    ),
    parent=command,
)
@opt.argument("question", required=False, type=str)
@_FOLDERS
def query(
    question: str | None, folders: Sequence[Path], write: Path | None, as_csv: bool, as_json: bool
) -> int:
    """Query results at or below each DIR (default: results). QUESTION: a known query, SQL, or a .sql file.

    Without a QUESTION, list the known queries. Folders without a readable result are listed and skipped. Exit
    code 1 if folders with the same id differ; skipped folders do not change it.
    """
    from pagewise.report.render import csv
    from pagewise.store.query import ask, known_queries, statement

    if question is None:
        for name, text in known_queries().items():
            click.echo(f"{name:<16} {text}")
        return 0
    answer = ask(folders, statement(question), write)
    omitted = {
        "skipped": answer.skipped,
        "partial": {folder: "; ".join(faults) for folder, faults in answer.partial.items()},
        "conflicts": answer.conflicts,
    }
    if as_json:
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        print_json({"schema": "pagewise.answer/1", "columns": answer.columns, "rows": rows, **omitted})
    elif as_csv:
        click.echo(csv.text(answer.columns, answer.rows), nl=False)
    else:
        print_table(answer.columns, answer.rows)
    for state, reasons in omitted.items() if not as_json else ():
        for folder, reason in reasons.items():
            click.echo(f"{state}: {folder}: {' '.join(reason.split())}", err=True)
    return 1 if answer.conflicts else 0


@opt.command(
    "pagewise results diff results/OLD results/NEW",
    "pagewise results diff results/OLD1 results/OLD2 results/NEW --of time --threshold 5%",
    verdicts=(
        opt.option(
            "--of quantity",
            "Quantity to judge: the time ratio to the baseline of the same session, or the time.",
            type=click.Choice(["ratio", "time"]),
            default="ratio",
        ),
        opt.option(
            "--threshold",
            "Treat smaller changes as unchanged, even if significant.",
            type=Percent(),
            default="3%",
        ),
        opt.flag("--strict", "Exit with 7 when a verdict is inconclusive."),
        opt.flag("--across-machines", "Compare even if the machine or the number of threads differs."),
        partial(opt.SEED, help="Seed of the bootstrap."),
    ),
    result=(opt.JSON,),
    parent=command,
)
@opt.argument("old", nargs=-1, required=True, metavar="OLD...")
@opt.argument("new")
def diff(old: Sequence[Path], new: Path, strict: bool, as_json: bool, **params: Any) -> int:
    """Show what became slower or faster from the results OLD to the result NEW (docs/reference/results.md).

    Differences of machine, system, compilers and builds are listed first. Exit codes: 0 no regression; 1 a
    regression; 5 configurations of OLD are missing or invalid in NEW; 6 the machines cannot be compared; 7 a
    verdict is inconclusive (with --strict).
    """
    from pagewise.report.views import diff as views
    from pagewise.store.diff import compare

    compared = compare((*old, new), **params)
    show(views.view(compared, strict), as_json)
    return compared.exit_code(strict)
