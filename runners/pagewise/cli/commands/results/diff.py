"""`pagewise results diff`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rich_click as click

from pagewise.cli.options import JSON, SEED, examples, make_console, print_json
from pagewise.cli.shell import values
from pagewise.cli.types import Percent

_EXAMPLES = examples(
    "pagewise results diff results/OLD results/NEW",
    "pagewise results diff results/OLD1 results/OLD2 results/NEW --of time --threshold 5%",
)


@click.command(epilog=_EXAMPLES)
@click.argument(
    "old",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    metavar="OLD...",
    shell_complete=values.one_of(values.results),
)
@click.argument("new", type=click.Path(path_type=Path), shell_complete=values.one_of(values.results))
@click.option(
    "--of",
    "quantity",
    type=click.Choice(["ratio", "time"]),
    default="ratio",
    show_default=True,
    help="Quantity to judge: the time ratio to the baseline of the same session, or the time.",
)
@click.option(
    "--threshold",
    type=Percent(),
    default="3%",
    show_default=True,
    metavar="PERCENT",
    help="Treat smaller changes as unchanged, even if significant.",
)
@click.option("--strict", is_flag=True, help="Exit with 7 when a verdict is inconclusive.")
@click.option("--across-machines", is_flag=True, help="Judge even if machine or threads differ.")
@SEED
@JSON
def command(old: Sequence[Path], new: Path, strict: bool, as_json: bool, **chosen: Any) -> int:
    """Show what became slower or faster from the results OLD to the result NEW (docs/diff.md).

    Differences of machine, system, compilers and builds are listed first. Exit codes: 0 no regression; 1 a
    regression; 5 configurations of OLD are missing or invalid in NEW; 6 the machines cannot be compared; 7 a
    verdict is inconclusive (with --strict).
    """
    from pagewise.report.render import terminal
    from pagewise.report.views import diff as views
    from pagewise.store.diff import compare

    diff = compare((*old, new), **chosen)
    report = views.view(diff, strict)
    if as_json:
        print_json(report.data)
    else:
        terminal.show(make_console(), report)
    return diff.exit_code(strict)
