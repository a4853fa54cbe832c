"""`pagewise cluster`: comparisons on the nodes of a cluster."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import rich_click as click

from pagewise.cli import options as opt
from pagewise.cli.reporting import publish
from pagewise.cli.types import Percent


@click.group(cls=opt.CommandGroup)
def command() -> None:
    """Compare the nodes of a cluster (docs/how-to/cluster.md)."""


@opt.command(
    "pagewise cluster nodes results/20261121T120211Z-nodes --at-least 5%",
    parent=command,
    result=(
        opt.option(
            "--at-least", "Ignore deviations of nodes below this percentage.", type=Percent(), default="3%"
        ),
        partial(opt.VERBOSE, help="Print all sections, explained."),
        opt.JSON,
    ),
)
@opt.argument("results", required=True, nargs=-1, metavar="RESULT...")
def nodes(results: tuple[Path, ...], at_least: float, as_json: bool) -> int:
    """Show which nodes deviate from the others, from all comparisons at or below each RESULT.

    Of each node, the newest complete comparison counts. The report is written into the first RESULT. Exit
    code 1 if a comparison is incomplete or not readable.
    """
    from pagewise.cluster.findings import find
    from pagewise.core.result import MANIFEST
    from pagewise.report.views import cluster

    # A result has its own report.
    inside = "nodes" if (results[0] / MANIFEST).exists() else ""
    return publish(results[0], cluster.view(find(results, at_least)), as_json, inside=inside)
