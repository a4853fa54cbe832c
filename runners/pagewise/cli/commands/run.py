"""`pagewise run`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from pagewise.cli import options as opt
from pagewise.cli.measuring import options_of
from pagewise.core.errors import SelectionError

if TYPE_CHECKING:
    from pagewise.machine.placement import Where


class _Running(opt.Command):
    """Leaves everything after MODULE to the program."""

    allow_interspersed_args = False


@opt.command(
    "pagewise run thp/hardware-regular -- pw-schoenauer_triad --sweep working-set",
    "pagewise run 'gcc-*/none/*regular' -- pw-pointer_chase --help",
    "pagewise run --env mini-apps --ranks 2 gcc-12.2.0/thp/hardware-regular -- pw-ember --steps 5",
    cls=_Running,
    subject=(opt.ENVIRONMENT, opt.MODULES),
    placement=(
        partial(opt.THREADS, help="Number of threads of each rank, with --ranks (default: 1)."),
        *opt.PLACED[1:],
    ),
    settings=(
        opt.option(
            "--prefetchers",
            "Switch hardware prefetchers off, all or by name, or on A64FX adjust them, as distL2=20,weakL1, "
            "during the command, then restore them (root or msr-safe; docs/reference/prefetchers.md).",
            metavar="off|NAMES",
            is_list=True,
            rare=True,
        ),
    ),
)
@opt.argument("module", type=str)
@opt.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    environment: str,
    modules: Path | None,
    prefetchers: Sequence[str],
    module: str,
    command: Sequence[str],
    **placed: object,
) -> int:
    """Load a module and run one of its programs.

    MODULE is a name, the end of a name (gcc-12.2.0/thp/hardware-regular), or a glob that matches one module.
    Programs measure one point or a curve: over the working set, or over another option, with the program's
    values (--sweep prefetch-distance) or yours (--sweep prefetch-distance=4,8,16). For all options:
    pw-<kernel> --help.
    """
    from pagewise.stack.catalog import find_catalog

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
    if any(placed.values()):
        from pagewise.machine.placement import Where

        where = options_of(Where, placed)
        return _run_as_ranks([program, *command[1:]], entries[0].environment, where, prefetchers)
    if prefetchers:
        from pagewise.machine.settings.prefetchers import run_without_prefetchers

        return run_without_prefetchers(prefetchers, [program, *command[1:]], entries[0].environment)
    os.execve(program, list(command), entries[0].environment)


def _run_as_ranks(
    command: Sequence[str], environment: Mapping[str, str], where: Where, prefetchers: Sequence[str]
) -> int:
    """Runs a program as MPI ranks. Raises SelectionError without a number of ranks, SetupError."""
    from pagewise.machine.placement import placements
    from pagewise.session.ranks import run_as_ranks

    if not where.ranks:
        raise SelectionError(
            "the number of MPI ranks to place is missing",
            where="run",
            remedy="--ranks N; without ranks, place a program by its own --threads and by taskset or numactl",
        )
    first, *others = placements(where)
    if others:
        raise SelectionError(
            "a program runs in one placement", where="run", remedy="give each option one value, or compare"
        )
    return run_as_ranks(command, environment, first, prefetchers)
