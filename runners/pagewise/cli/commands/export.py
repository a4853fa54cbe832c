"""`pagewise export`: for other tools."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path

import rich_click as click

from pagewise.cli import options as opt
from pagewise.cli.types import Folder, Number


@click.group(cls=opt.CommandGroup)
def command() -> None:
    """Write configurations and figures of merit for other tools (docs/how-to/ramble.md)."""


@opt.command(
    "pagewise export ramble exported --env quick -k schoenauer_triad,pointer_chase -n 7",
    parent=command,
    subject=(opt.ENVIRONMENT, opt.MODULES, opt.KERNELS, opt.CONFIGURATIONS),
    runs=(partial(opt.ROUNDS, default=7, help="Number of repetitions of each experiment."),),
    placement=(
        opt.option("-t --threads", "Number of threads, one per core.", type=Number(1, 4096), default=1),
    ),
)
@click.argument("folder", type=Folder())
def ramble(
    *,
    folder: Path,
    environment: str,
    modules: Path | None,
    kernels: tuple[str, ...],
    configurations: tuple[str, ...],
    rounds: int,
    threads: int,
) -> None:
    """Write Ramble applications of the kernels, and a workspace with the configurations, into FOLDER."""
    from pagewise.cluster.export.ramble import RambleSelection, write_ramble
    from pagewise.stack import lmod
    from pagewise.stack.catalog import find_catalog
    from pagewise.stack.paths import checkout
    from pagewise.stack.setup import setup_facts

    catalog, root = find_catalog(environment, modules), checkout()
    selection = RambleSelection(
        [kernel.benchmark for kernel in catalog.select_kernels(kernels)],
        catalog.select_entries(configurations),
        catalog.tree,
        lmod.find_init(setup_facts()),
        root / "pagewise" if root else Path(shutil.which("pagewise") or sys.argv[0]).absolute(),
        threads,
        rounds,
    )
    for file in write_ramble(folder, selection):
        click.echo(file)
