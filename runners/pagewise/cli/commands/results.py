"""`pagewise results`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import rich_click as click

from pagewise.cli import options as opt
from pagewise.cli.output import PlainConsole, make_console, print_json, print_table
from pagewise.cli.reporting import show
from pagewise.cli.types import Duration, Folder, Percent

#: Folders with results as arguments.
_FOLDERS = opt.argument(
    "folders",
    nargs=-1,
    # Not `default`, which older versions of click refuse here.
    callback=lambda context, parameter, folders: folders or (Path("results"),),
    metavar="[DIR]...",
)
_STORE = opt.option(
    "--store",
    "Store of collected results.",
    type=click.Path(path_type=Path),
    default=Path("results/pagewise.duckdb"),
    metavar="FILE",
)
_WAIT = opt.option(
    "--wait", "Maximum time to wait for another writer of the store.", type=Duration(), default="60s"
)


@click.group(cls=opt.Group)
def command() -> None:
    """List, show, query, collect and diff results (docs/reference/results.md)."""


@opt.command("pagewise results list /shared/results", result=(opt.JSON,), parent=command, name="list")
@_FOLDERS
def list_results(folders: Sequence[Path], as_json: bool) -> None:
    """List the results at or below each DIR (default: results), the oldest first."""
    from rich.text import Text

    from pagewise.store.listing import listed

    results = listed(folders)
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
    from pagewise.store.listing import shown

    contents = shown(result)
    if as_json:
        print_json({**contents, "schema": "pagewise.result/1"})
        return
    for name, value in contents.items():
        if name not in ("cells", "command", "runs", "not_ranked", "faults") and value not in (None, [], ""):
            text = " ".join(map(str, value)) if isinstance(value, list) else value
            click.echo(f"{name.replace('_', ' '):<22} {text}")
    if contents["command_line"]:
        click.echo(f"{'':<22} (text of the result: if it is not yours, read the line before you run it)")
    for row in contents["runs"]:
        click.echo(f"{'runs':<22} {row['records']} {row['series']}: {row['status']}")
    for row in contents["not_ranked"]:
        click.echo(f"{'excluded':<22} {row['records']}: {row['reason']}")
    for fault in contents["faults"]:
        click.echo(f"{'invalid lines':<22} {fault}")


@opt.command(
    "pagewise results query  # known questions",
    "pagewise results query slow-nodes --csv",
    "pagewise results query 'SELECT kernel, count(*) FROM records GROUP BY kernel'",
    store=(_STORE, _WAIT),
    result=(opt.flag("--csv as_csv", "Print CSV instead of a table."), opt.JSON),
    parent=command,
)
@opt.argument("question", required=False, type=str)
def query(question: str | None, store: Path, as_csv: bool, as_json: bool, wait: float) -> None:
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


@opt.command(
    "pagewise results collect  # results -> results/pagewise.duckdb",
    "pagewise results collect /shared/results --store /shared/pagewise.duckdb",
    store=(
        _STORE,
        opt.option("--parquet", "Folder to write the store's tables to as Parquet files.", type=Folder()),
        _WAIT,
    ),
    result=(opt.JSON,),
    parent=command,
)
@_FOLDERS
def collect(folders: Sequence[Path], store: Path, parquet: Path | None, wait: float, as_json: bool) -> int:
    """Collect all results at or below each DIR (default: results) in one store (docs/reference/results.md).

    Only new or changed results are read. Folders without a result are listed and skipped. The complete
    records of a truncated result are kept, and it is marked as partial. Exit code 1 if folders with the same
    id differ; skipped folders do not change it.
    """
    from dataclasses import asdict

    from rich.progress import MofNCompleteColumn, Progress, TextColumn

    from pagewise.core.units import count_text
    from pagewise.store import collect as collecting
    from pagewise.store.store import export, writing

    columns = (TextColumn("collecting"), MofNCompleteColumn())
    with (
        writing(store, wait) as connection,
        Progress(*columns, console=PlainConsole(stderr=True), transient=True) as progress,
    ):
        task = progress.add_task("", total=None)
        done = collecting.collect(
            connection, folders, lambda passed, total: progress.update(task, completed=passed, total=total)
        )
        if parquet is not None:
            export(connection, parquet)
    if as_json:
        print_json({"schema": "pagewise.collected/1", "store": str(store), **asdict(done)})
        return 1 if done.conflicts else 0
    partial_results = {folder: "; ".join(faults) for folder, faults in done.partial.items()}
    for state, reasons in (
        ("skipped", done.skipped),
        ("partial", partial_results),
        ("conflict", done.conflicts),
    ):
        for folder, reason in reasons.items():
            click.echo(f"{state}: {folder}: {reason}", err=True)
    summary = f"collected {count_text(done.taken, 'result')} with {count_text(done.records, 'record')}"
    for number, text in (
        (done.known, f"{done.known} already known"),
        (done.copies, f"{count_text(done.copies, 'folder')} with copies of these"),
        (len(done.partial), f"{len(done.partial)} of them partial"),
        (len(done.skipped), f"{count_text(len(done.skipped), 'folder')} skipped"),
        (len(done.conflicts), f"{count_text(len(done.conflicts), 'folder')} in conflict"),
    ):
        summary += f", {text}" if number else ""
    click.echo(f"{summary}.\nStore: {store}")
    return 1 if done.conflicts else 0


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
def diff(old: Sequence[Path], new: Path, strict: bool, as_json: bool, **chosen: Any) -> int:
    """Show what became slower or faster from the results OLD to the result NEW (docs/reference/diff.md).

    Differences of machine, system, compilers and builds are listed first. Exit codes: 0 no regression; 1 a
    regression; 5 configurations of OLD are missing or invalid in NEW; 6 the machines cannot be compared; 7 a
    verdict is inconclusive (with --strict).
    """
    from pagewise.report.views import diff as views
    from pagewise.store.diff import compare

    compared = compare((*old, new), **chosen)
    show(views.view(compared, strict), as_json)
    return compared.exit_code(strict)
