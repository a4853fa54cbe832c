"""`pagewise results show`."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from pagewise.cli.options import JSON, examples, print_json
from pagewise.cli.shell import values

_EXAMPLES = examples(
    "pagewise results show results/20261121T115458Z-default --json",
)


@click.command(epilog=_EXAMPLES)
@click.argument("result", type=click.Path(path_type=Path), shell_complete=values.one_of(values.results))
@JSON
def command(result: Path, as_json: bool) -> None:
    """Show the contents of a RESULT folder: machine, sources, what was measured and how its runs ended.

    For tables and figures: pagewise report RESULT.
    """
    from pagewise.store.listing import shown

    contents = shown(result)
    if as_json:
        print_json({**contents, "schema": "pagewise.result/1"})
        return
    for name, value in contents.items():
        if name not in ("cells", "runs", "not_ranked", "faults") and value not in (None, [], ""):
            text = " ".join(map(str, value)) if isinstance(value, list) else value
            click.echo(f"{name.replace('_', ' '):<22} {text}")
    for row in contents["runs"]:
        click.echo(f"{'runs':<22} {row['records']} {row['series']}: {row['status']}")
    for row in contents["not_ranked"]:
        click.echo(f"{'excluded':<22} {row['records']}: {row['reason']}")
    for fault in contents["faults"]:
        click.echo(f"{'invalid lines':<22} {fault}")
