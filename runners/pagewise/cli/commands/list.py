"""`pagewise list`."""

from __future__ import annotations

from pathlib import Path

import click

from pagewise.cli.options import (
    ENVIRONMENT,
    JSON,
    MODULES,
    find_catalog,
    make_console,
    print_json,
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
@JSON
def command(
    environment: str, modules: Path | None, kernels: str | None, configurations: str | None, as_json: bool
) -> None:
    """List the configurations and kernels of an environment."""
    from pagewise.stack.listing import print_configurations, print_kernels, to_dict

    console, catalog = make_console(as_json), find_catalog(environment, modules)
    entries = found = None
    if configurations or not kernels:
        entries = catalog.select_entries(split_commas([configurations or "*"]))
    if kernels or not configurations:
        found = catalog.select_kernels(split_commas([kernels or "*"])) if catalog.kernels else []
    if as_json:
        print_json(to_dict(catalog, entries or (), found or ()))
        return
    if entries is not None:
        print_configurations(console, catalog, entries)
    if found is not None:
        print_kernels(console, found)
