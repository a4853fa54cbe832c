"""`pagewise list`."""

from __future__ import annotations

from pathlib import Path

import click

from pagewise.cli.options import (
    ENVIRONMENT,
    MODULES,
    find_catalog,
    make_console,
    split_commas,
)
from pagewise.cli.shell import values


@click.command("list")
@ENVIRONMENT
@MODULES
@click.option(
    "--kernels",
    is_flag=False,
    flag_value="*",
    metavar="[NAMES]",
    shell_complete=values.list_of(values.kernels),
    help="Kernels alone: all, or by name or glob as in compare.",
)
@click.option(
    "--configurations",
    is_flag=False,
    flag_value="*",
    metavar="[GLOBS]",
    shell_complete=values.list_of(values.configurations),
    help="Configurations alone: all, or by glob as in compare.",
)
def command(environment: str, modules: Path | None, kernels: str | None, configurations: str | None) -> None:
    """List the configurations and kernels of an environment."""
    from pagewise.listing import print_configurations, print_kernels

    console, catalog = make_console(), find_catalog(environment, modules)
    if configurations or not kernels:
        print_configurations(console, catalog, catalog.select_entries(split_commas([configurations or "*"])))
    if kernels or not configurations:
        found = catalog.select_kernels(split_commas([kernels or "*"])) if catalog.kernels else []
        print_kernels(console, found)
