"""`pagewise list`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.text import Text

from pagewise.cli import options as opt
from pagewise.cli.measuring import Parameters, TakesProgram, options_of
from pagewise.cli.output import make_console, make_messages, print_json
from pagewise.cli.types import split_commas
from pagewise.stack.paths import DEFAULT_ENVIRONMENT

if TYPE_CHECKING:
    from pagewise.stack.catalog import Catalog

_KINDS = ("environments", "configurations", "kernels", "policies", "case")


@opt.command(
    "pagewise list  # configurations and kernels",
    "pagewise list kernels 'memory/*'",
    "pagewise list policies -- ./my_app  # policies that are available to this program",
    cls=TakesProgram,
    subject=(opt.ENVIRONMENT_OR_SUITES, opt.MODULES, opt.SUITES, opt.CASE),
    settings=(opt.PREPARE_PAGES,),
    result=(opt.JSON,),
)
@click.argument("kind", required=False, type=click.Choice(_KINDS))
@opt.argument("names", nargs=-1, type=str)
def command(kind: str | None, names: Sequence[str], *, as_json: bool, **params: object) -> None:
    """List environments, configurations, kernels or page policies (default: configurations and kernels).

    `case` prints a commented example of a file for --case.

    NAMES are names or globs, as 'gcc-*/thp/*' or 'memory/*'. Page policies are those of `compare -- PROGRAM`.
    With a program after --, --suite or --case, each is listed with the reason if it is unavailable here.
    """
    from pagewise.session.options import SessionOptions

    if kind == "policies":
        _list_policies({**params, "policies": split_commas(names)}, as_json)
        return
    for name in ("command", "suite", "cases", "prepare"):
        if params[name]:
            raise click.UsageError("A program and its options are valid only for: pagewise list policies")
    if kind == "case":
        from pagewise.workloads.program.suite import example

        click.echo(example(), nl=False)
    elif kind == "environments":
        _list_environments(as_json)
    else:
        from pagewise.stack.catalog import find_catalog

        modules = options_of(SessionOptions, params)
        catalog = find_catalog(modules.environment or DEFAULT_ENVIRONMENT, modules.modules)
        _list_catalog(catalog, kind, split_commas(names or ["*"]), as_json)


def _list_policies(params: Parameters, as_json: bool) -> None:
    from pagewise.workloads.program.command import print_survey, survey
    from pagewise.workloads.program.workload import ProgramOptions

    document, binary = survey(options_of(ProgramOptions, params), make_messages())
    if as_json:
        print_json(document)
    else:
        print_survey(document, binary, make_console())


def _list_environments(as_json: bool) -> None:
    from pagewise.stack.paths import built_environments

    built = built_environments()
    if as_json:
        print_json({"schema": "pagewise.environments/1", "environments": built})
    else:
        click.echo(
            "\n".join(built) if built else "no environment is built: make stack ENV=NAME", err=not built
        )


def _list_catalog(catalog: Catalog, kind: str | None, globs: Sequence[str], as_json: bool) -> None:
    from pagewise.core.structure import to_data
    from pagewise.report.render.terminal import show_table
    from pagewise.report.views.catalog import configuration_table, kernel_table

    entries = catalog.select_entries(globs) if kind != "kernels" else None
    kernels = None
    if kind != "configurations":
        kernels = catalog.select_kernels(globs) if catalog.kernels else []
    if as_json:
        print_json(
            {
                "schema": "pagewise.catalog/1",
                "tree": catalog.tree,
                "configurations": [entry.configuration for entry in entries or ()],
                "kernels": [to_data(kernel) for kernel in kernels or ()],
                "broken": catalog.broken,
            }
        )
        return
    console = make_console()
    if entries is not None:
        show_table(console, configuration_table(catalog, entries))
        for broken in catalog.broken:
            console.print(Text(f"broken: {broken.module}: {broken.reason}", style="yellow"), soft_wrap=True)
    if kernels is not None:
        show_table(console, kernel_table(kernels))
        hint = "Compare others by name or glob: pagewise kernels --kernels NAME,'GROUP/*'"
        console.print(Text(hint), soft_wrap=True)
