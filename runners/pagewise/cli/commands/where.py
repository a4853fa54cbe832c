"""`pagewise where`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click
from rich.console import Console

from pagewise.cli import BEGAN
from pagewise.cli import options as opt
from pagewise.cli.commands.simulate import BUILD, found, takes_geometry
from pagewise.cli.measuring import Measuring, Parameters, TakesProgram, options_of
from pagewise.cli.types import Number

if TYPE_CHECKING:
    from pagewise.session.session import Session


class _Locating(Measuring, TakesProgram):
    """Takes a program after `--`."""


@opt.command(
    "pagewise where -- ./my_app input.dat",
    "pagewise where --geometry a64fx --origins 30 -- ./my_app input.dat",
    "pagewise where -- python3 my_script.py",
    cls=_Locating,
    subject=(takes_geometry("node"), BUILD),
    runs=(opt.TIMEOUT,),
    result=(
        opt.option("--origins", "Number of origins to show.", type=Number(1), default=15),
        *opt.SESSION_RESULT,
    ),
)
def command(parameters: Parameters, console: Console) -> Session:
    """Find the memory of a program that misses the TLB: by allocation site, static array, stack and mapping.

    The program runs in QEMU's user-mode emulation under the simulator of `pagewise simulate`, without its
    caches, 10 to 60 times slower than natively. Give it a small input. The table has, for each origin of
    memory, its size, lifetime and page faults, its share of the simulated TLB misses and page walks, and the
    time that huge pages are forecast to save: docs/explanation/origins.md. Two native runs on base pages
    give the time. Compile with -g for files and lines.
    """
    from pagewise.workloads.simulation.run import SimulationOptions, prepare

    options = options_of(SimulationOptions, parameters)
    if not options.command:
        raise click.UsageError("Name a program after --.")
    return prepare(options, found(options.command), console, BEGAN)
