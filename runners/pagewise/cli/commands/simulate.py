"""`pagewise simulate`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import rich_click as click
from rich.console import Console

from pagewise.cli import BEGAN
from pagewise.cli import options as opt
from pagewise.cli.measured import begin_session, carry_out
from pagewise.cli.program import TakesProgram
from pagewise.cli.resumable import Resumable
from pagewise.cli.shell import values

_EXAMPLES = opt.examples(
    "pagewise simulate ember  # on A64FX, policies none and thp",
    "pagewise simulate --geometry zen4 random_access --working-set 16MiB",
    "pagewise simulate --policies fjmpg -- ./my_app input.dat",
    "pagewise simulate --resume results/20261121T115458Z-simulate-ember",
)


class _Simulating(Resumable, TakesProgram):
    """Resumable, for a kernel or a program."""


@click.command(
    cls=_Simulating,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=_EXAMPLES,
)
@click.option(
    "--geometry",
    default="a64fx",
    show_default=True,
    metavar="NAME|FILE",
    shell_complete=values.one_of(values.geometries),
    panel=opt.SUBJECT,
    help="Simulated machine: a64fx, zen4, or a geometry file (.yaml).",
)
@click.option(
    "--policies",
    multiple=True,
    metavar="NAMES",
    panel=opt.SUBJECT,
    help="Page policies, the baseline first; several with commas (default: none,thp for a kernel). Assumed "
    "policies, for any program: fjmpg (heap, stack and static data on huge pages, as Fujitsu's libmpg does), "
    "huge and base (all memory).",
)
@click.option(
    "--compiler",
    default="gcc",
    show_default=True,
    metavar="NAME",
    panel=opt.SUBJECT,
    help="Compiler of the traced build: gcc or llvm.",
)
@click.option(
    "--build",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    panel=opt.SUBJECT,
    help="Build folder with traceable programs and the simulator (default: built by a CMake preset).",
)
@click.option(
    "--functions",
    type=click.IntRange(0, 40),
    metavar="N",
    default=5,
    show_default=True,
    panel=opt.RESULT,
    help="Number of functions with TLB misses to show.",
)
@opt.OUTPUT
@opt.TIMEOUT
@opt.PLAN
@opt.talkative
@opt.JSON
@click.argument("kernel", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(**chosen: Any) -> int:
    """Simulate TLBs and caches, without counters: of KERNEL with its ARGUMENTS, or of a program after --.

    The program runs in QEMU's user-mode emulation; its accesses feed a simulator of another machine's TLBs
    and caches. A kernel or mini-app is built for that, runs small unless ARGUMENTS choose otherwise, and once
    per page policy. A program of yours runs unchanged, and once more per assumed policy. All figures are
    simulated, never measured: docs/simulation.md. Ctrl-C keeps and reports what was simulated.
    """
    planning, as_json = chosen.pop("planning"), chosen.pop("as_json")
    begin_session(chosen, planning)
    return carry_out(prepared(chosen, opt.make_messages()), planning, as_json)


def prepared(chosen: dict[str, Any], console: Console) -> Any:
    """The simulation that these options ask for."""
    from pagewise.workloads.simulation.run import SimulationOptions, prepare

    kernel, arguments, command = (chosen.pop(name) for name in ("kernel", "arguments", "command"))
    if (kernel is None) == (not command):
        raise click.UsageError("Name either a kernel, or a program after --.")
    chosen["policies"] = opt.split_commas(chosen["policies"])
    subject = (_path(command[0]), *command[1:]) if kernel is None else (kernel, *arguments)
    # One round, in the order of the policies: simulated counts do not scatter.
    options = SimulationOptions(
        **chosen, environment=None, modules=None, rounds=1, threads=1, baseline="", seed=0, name=""
    )
    return prepare(options, subject, console, BEGAN)


def _path(program: str) -> str:
    """The path of a program that may be named as in a shell."""
    return program if "/" in program else shutil.which(program) or f"./{program}"
