"""`pagewise results list`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from pagewise.cli.options import JSON, examples, make_console, print_json
from pagewise.cli.shell import values
from pagewise.cli.tables import print_table

_EXAMPLES = examples(
    "pagewise results list /shared/results",
)


@click.command("list", epilog=_EXAMPLES)
@click.argument(
    "folders",
    nargs=-1,
    type=click.Path(path_type=Path),
    metavar="[DIR]...",
    shell_complete=values.one_of(values.folders_of_results),
)
@JSON
def command(folders: Sequence[Path], as_json: bool) -> None:
    """List the results at or below each DIR (default: results), the oldest first."""
    from rich.text import Text

    from pagewise.store.listing import listed

    results = listed(folders or [Path("results")])
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
