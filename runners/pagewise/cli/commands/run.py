"""`pagewise run`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from pagewise.cli import options as opt
from pagewise.cli.shell import values
from pagewise.core.errors import SelectionError


class _Running(click.RichCommand):
    """Leaves everything after MODULE to the program."""

    allow_interspersed_args = False


@opt.command(
    "pagewise run thp/hardware-regular -- pw-schoenauer_triad --sweep working-set",
    "pagewise run 'gcc-*/none/*regular' -- pw-pointer_chase --help",
    cls=_Running,
    subject=(opt.ENVIRONMENT, opt.MODULES),
    settings=(opt.PREFETCHERS,),
)
@opt.argument("module", type=str, one_of=values.configurations)
@opt.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, one_of=values.programs)
def command(
    environment: str, modules: Path | None, prefetchers: Sequence[str], module: str, command: Sequence[str]
) -> int:
    """Load a module and run one of its programs.

    MODULE is a name, the end of a name (gcc-12.2.0/thp/hardware-regular), or a glob that matches one module.
    Programs measure one point or a curve: over the working set, or over another option, with the program's
    values (--sweep prefetch-distance) or yours (--sweep prefetch-distance=4,8,16). For all options:
    pw-<kernel> --help.
    """
    if command[0] == "--":
        command = command[1:]
    if not command:
        raise click.UsageError("There is no program after --.")
    entries = opt.find_catalog(environment, modules).select_entries([module])
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

        return run_without_prefetchers(prefetchers, [program, *command[1:]], entries[0].environment)
    os.execve(program, list(command), entries[0].environment)
