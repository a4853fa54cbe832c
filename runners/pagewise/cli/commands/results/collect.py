"""`pagewise results collect`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from pagewise.cli.options import JSON, STORE, WAIT, examples, print_json
from pagewise.cli.shell import values

_EXAMPLES = examples(
    "pagewise results collect  # results -> results/pagewise.duckdb",
    "pagewise results collect /shared/results --store /shared/pagewise.duckdb",
)


@click.command(epilog=_EXAMPLES)
@STORE
@click.option(
    "--parquet",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder to write the store's tables to as Parquet files, for pagewise results query and others.",
)
@WAIT
@JSON
@click.argument(
    "folders",
    nargs=-1,
    type=click.Path(path_type=Path),
    metavar="[DIR]...",
    shell_complete=values.one_of(values.folders_of_results),
)
def command(folders: Sequence[Path], store: Path, parquet: Path | None, wait: float, as_json: bool) -> int:
    """Collect all results at or below each DIR (default: results) in one store (docs/results.md).

    Only new or changed results are read. Folders without a result are listed and skipped. Of a truncated
    result all complete records are kept, and it is marked as partial. Exit code 1 when folders share an id
    and differ; 0 also when folders were skipped.
    """
    from dataclasses import asdict

    from rich.progress import MofNCompleteColumn, Progress, TextColumn

    from pagewise.cli.output import PlainConsole
    from pagewise.core.units import count_text
    from pagewise.store.collect import collect
    from pagewise.store.store import export, writing

    columns = (TextColumn("collecting"), MofNCompleteColumn())
    with (
        writing(store, wait) as connection,
        Progress(*columns, console=PlainConsole(stderr=True), transient=True) as progress,
    ):
        task = progress.add_task("", total=None)
        done = collect(
            connection,
            folders or [Path("results")],
            lambda passed, total: progress.update(task, completed=passed, total=total),
        )
        if parquet is not None:
            export(connection, parquet)
    if as_json:
        print_json({"schema": "pagewise.collected/1", "store": str(store), **asdict(done)})
        return 1 if done.conflicts else 0
    for folder, reason in done.skipped.items():
        click.echo(f"skipped: {folder}: {reason}", err=True)
    for folder, faults in done.partial.items():
        click.echo(f"partial: {folder}: {'; '.join(faults)}", err=True)
    for folder, reason in done.conflicts.items():
        click.echo(f"conflict: {folder}: {reason}", err=True)
    summary = f"{count_text(done.taken, 'result')} with {count_text(done.records, 'record')} taken"
    summary += f", {done.known} known already" if done.known else ""
    summary += f", {count_text(done.copies, 'folder')} with copies of these" if done.copies else ""
    summary += f", {len(done.partial)} of them partial" if done.partial else ""
    summary += f", {count_text(len(done.skipped), 'folder')} skipped" if done.skipped else ""
    summary += f", {count_text(len(done.conflicts), 'folder')} in conflict" if done.conflicts else ""
    click.echo(f"{summary}.\nStore: {store}")
    return 1 if done.conflicts else 0
