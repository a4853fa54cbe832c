"""`pagewise run`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from pagewise.cli.options import (
    ENVIRONMENT,
    MODULES,
    PREFETCHERS,
    examples,
    find_catalog,
    split_commas,
)
from pagewise.cli.shell import values
from pagewise.core.errors import SelectionError

_EXAMPLES = examples(
    "pagewise run thp/hardware-regular -- pw-schoenauer_triad --sweep working-set",
    "pagewise run 'gcc-*/none/*regular' -- pw-pointer_chase --help",
)


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}, epilog=_EXAMPLES
)
@ENVIRONMENT
@MODULES
@PREFETCHERS
@click.argument("module", shell_complete=values.one_of(values.configurations))
@click.argument(
    "command",
    nargs=-1,
    required=True,
    type=click.UNPROCESSED,
    shell_complete=values.one_of(values.programs),
)
def command(
    environment: str,
    modules: Path | None,
    prefetchers: Sequence[str],
    module: str,
    command: Sequence[str],
) -> int:
    """Load MODULE and run a program of it: pagewise run MODULE -- pw-schoenauer_triad --sweep working-set.

    MODULE is a name, the end of a name (gcc-12.2.0/thp/hardware-regular), or a glob that matches one module.
    Programs measure one point or a curve: over the working set, or over another option, with the program's
    values (--sweep prefetch-distance) or yours (--sweep prefetch-distance=4,8,16). For all options:
    pw-<kernel> --help.
    """
    if command[0] == "--":
        command = command[1:]
    if not command:
        raise click.UsageError("There is no program after --.")
    entries = find_catalog(environment, modules).select_entries([module])
    if len(entries) > 1:
        names = "\n    ".join(entry.configuration.module for entry in entries)
        raise SelectionError(f"{module!r} matches several modules:\n    {names}", remedy="name one of them")
    program = entries[0].program(command[0])
    if program is None:
        raise SelectionError(
            f"this module has no program {command[0]!r}",
            where=entries[0].configuration.module,
            remedy="to list its kernels: pagewise list kernels",
        )
    if prefetchers:
        from pagewise.session.launch import run_without_prefetchers

        return run_without_prefetchers(
            split_commas(prefetchers), [program, *command[1:]], entries[0].environment
        )
    os.execve(program, list(command), entries[0].environment)
