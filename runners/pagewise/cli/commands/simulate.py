"""`pagewise simulate`."""

from __future__ import annotations

import rich_click as click
from rich.console import Console

from pagewise.cli import options as opt
from pagewise.cli.measuring import Measuring, Parameters, Session, TakesProgram, options_of
from pagewise.cli.types import Folder, Number

BUILD = opt.option(
    "--build",
    "Build folder with traceable programs and the simulator (default: built by a CMake preset).",
    type=Folder(exists=True),
)


def takes_geometry(default: str) -> opt.OptionMaker:
    """The option for the simulated machine."""
    return opt.option(
        "--geometry",
        "Simulated machine: a64fx, zen4, node (this one, measured once), or a geometry file (.yaml).",
        default=default,
        metavar="NAME|FILE",
    )


class _Simulating(Measuring, TakesProgram):
    """Leaves everything after KERNEL to the kernel."""

    allow_interspersed_args = False


@opt.command(
    "pagewise simulate ember  # on A64FX, policies none and thp",
    "pagewise simulate --geometry zen4 random_access --working-set 16MiB",
    "pagewise simulate --sector u:L2=13 stencil7 --grid 452x576x32",
    "pagewise simulate --policies fjmpg -- ./my_app input.dat",
    "pagewise simulate --resume results/20261121T115458Z-simulate-ember ember  # after an interruption",
    cls=_Simulating,
    subject=(
        takes_geometry("a64fx"),
        opt.option(
            "--policies",
            "Page policies, the baseline first; several with commas (default: none,thp for a kernel). "
            "Assumed policies, for any program: fjmpg (heap, stack and static data on huge pages, as "
            "Fujitsu's libmpg does), huge and base (all memory).",
            is_list=True,
        ),
        opt.option(
            "--sector",
            "Arrays of a kernel and the ways of the caches reserved for them (sector cache of A64FX), as "
            "b:L2=10; repeat it for further sectors. Each policy is simulated without and with them.",
            metavar="ARRAYS:WAYS",
            multiple=True,
        ),
        opt.option("--compiler", "Compiler of the traced build: gcc or llvm.", default="gcc"),
        BUILD,
    ),
    runs=(opt.TIMEOUT,),
    result=(
        opt.option(
            "--functions", "Number of functions with TLB misses to show.", type=Number(0, 40), default=5
        ),
        *opt.SESSION_RESULT,
    ),
)
@click.argument("kernel", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(parameters: Parameters, console: Console) -> Session:
    """Simulate the TLBs and caches of another machine for a kernel or your program.

    No hardware counters are needed: the program runs in QEMU's user-mode emulation, and its accesses feed a
    simulator. A KERNEL or mini-app is built for that, runs small unless ARGUMENTS choose otherwise, and once
    per page policy. Your program runs unchanged, and once more per assumed policy. All figures are
    simulated, never measured: docs/explanation/simulation.md. After Ctrl-C, everything simulated so far is
    kept and reported.
    """
    from pagewise.workloads.simulation.run import SimulationOptions, prepare

    options = options_of(SimulationOptions, parameters)
    if (options.kernel is None) == (not options.command):
        raise click.UsageError("Name either a kernel, or a program after --.")
    return prepare(options, console)
