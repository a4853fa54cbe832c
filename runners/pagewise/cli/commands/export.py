"""`pagewise export`: for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from pagewise.cli.options import ENVIRONMENT, KERNELS, MODULES, THREADS, examples, find_catalog, split_commas


@click.group("export")
def command() -> None:
    """Write configurations and figures of merit for other tools (docs/ramble.md)."""


@command.command(
    epilog=examples(
        "pagewise export ramble exported --env quick -k schoenauer_triad,pointer_chase -n 7",
    )
)
@click.argument("folder", type=click.Path(path_type=Path))
@ENVIRONMENT
@MODULES
@KERNELS
@click.option(
    "--configurations",
    multiple=True,
    metavar="GLOBS",
    help="Configurations by glob, as 'gcc-*/thp/*'; several with commas (default: all).",
)
@THREADS
@click.option(
    "-n",
    "--rounds",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=7,
    show_default=True,
    help="Number of repetitions of each experiment.",
)
def ramble(folder: Path, environment: str, modules: Path | None, **chosen: Any) -> None:
    """Write Ramble applications of the kernels, and a workspace with the configurations, into FOLDER."""
    from pagewise.cluster.export.ramble import Chosen, write_ramble
    from pagewise.stack import lmod
    from pagewise.stack.paths import project_root
    from pagewise.stack.setup import setup_facts

    catalog = find_catalog(environment, modules)
    selection = Chosen(
        catalog.select_kernels(split_commas(chosen["kernels"])),
        catalog.select_entries(split_commas(chosen["configurations"])),
        catalog.tree,
        lmod.find_init(setup_facts()),
        project_root() / "pagewise",
        chosen["threads"],
        chosen["rounds"],
    )
    for file in write_ramble(folder, selection):
        click.echo(file)
