"""`pagewise compare`: kernels, or the user's program."""

from __future__ import annotations

from typing import Any

import rich_click as click
from rich.console import Console

from pagewise.cli import BEGAN
from pagewise.cli import options as opt
from pagewise.cli.measured import begin_session, carry_out
from pagewise.cli.program import (
    OF_PROGRAM,
    POLICIES,
    POOL_MEMORY,
    KernelsOrProgram,
    has_program,
    judged,
    read_program,
)
from pagewise.cli.resumable import Resumable
from pagewise.cli.shell import values
from pagewise.core.configuration import BASELINE

_EXAMPLES = opt.examples(
    "pagewise compare --env quick  # kernels that list marks, all configurations",
    "pagewise compare -k 'memory/*' -t 8 --until 2%  # kernels of a group, on 8 threads",
    "pagewise compare -- ./my_app input.dat  # your program under page policies",
    "pagewise compare --policies none,thp --metric 'rate[GB/s,higher]=Triad: +([0-9.]+)' -- ./stream",
    "pagewise compare --resume results/20261121T115458Z-default",
)


class _Comparing(Resumable, KernelsOrProgram):
    """Resumable, for kernels or a program."""

    of_kernels = ("kernels", "configurations", "sweep", "prefetchers")
    of_program = (*OF_PROGRAM, "metrics")


@click.command(cls=_Comparing, epilog=_EXAMPLES)
@opt.ENVIRONMENT_OR_SUITES
@opt.MODULES
@opt.KERNELS
@click.option(
    "--configurations",
    multiple=True,
    metavar="GLOBS",
    shell_complete=values.list_of(values.configurations),
    panel=opt.SUBJECT,
    help="Configurations by glob, as 'gcc-*/thp/*'; several with commas. Baselines are always measured.",
)
@POLICIES
@opt.ROUNDS
@opt.UNTIL
@opt.BUDGET
@opt.AA
@opt.placed
@opt.RESERVE
@POOL_MEMORY
@opt.SET_THP_SIZES
@opt.PREFETCHERS
@click.option(
    "--baseline",
    default=None,
    metavar="GLOB|POLICY",
    shell_complete=values.one_of(values.baselines),
    panel=opt.SUBJECT,
    help=f"Configuration compared against (default: {BASELINE}); of a program the policy (default: none).",
)
@click.option(
    "--no-sweep", "sweep", flag_value=False, default=True, panel=opt.RUNS, help="Omit the curves (sweeps)."
)
@opt.SUITE
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="METRIC",
    panel=opt.PROGRAM,
    help="Metric of the output, NAME[UNIT,BETTER]=PATTERN: the group of the pattern's last match, as "
    "'rate[GB/s,higher]=Triad: +([0-9.]+)'.",
)
@judged
@opt.SEED
@click.option(
    "--name",
    default=None,
    metavar="NAME",
    panel=opt.RESULT,
    help="Name in the result's folder (default: the environment's or the program's).",
)
@opt.OUTPUT
@opt.TIMEOUT
@opt.END_LEFTOVERS
@opt.PLAN
@opt.talkative
@opt.JSON
def command(**chosen: Any) -> int:
    """Compare kernels in all configurations, or a program of yours under page policies, interleaved.

    Every round runs each distinct configuration or policy once in randomised order, and each baseline twice
    (A/A). A run whose memory was not on the pages asked for is excluded, with the reason. A program runs
    unchanged, and is bound to CPUs only with --threads, --cores or --cpus. Ctrl-C keeps and reports what was
    measured. Only --reserve-hugepages, --set-thp-sizes and --hardware-prefetchers change settings of the
    machine, which are always restored. See docs/statistics.md and, for programs, docs/programs.md.
    """
    planning, as_json = chosen.pop("planning"), chosen.pop("as_json")
    begin_session(chosen, planning)
    return carry_out(prepared(chosen, opt.make_messages()), planning, as_json)


def prepared(chosen: dict[str, Any], console: Console) -> Any:
    """The comparison that these options ask for."""
    opt.set_default_rounds(chosen)
    if has_program(chosen):
        from pagewise.workloads.program.command import prepare_command

        read_program(chosen)
        if chosen["baseline"] is None:
            chosen["baseline"] = "none"
        return prepare_command(chosen, console, BEGAN)
    from pagewise.workloads.kernels.options import KernelOptions
    from pagewise.workloads.kernels.workload import prepare

    for name in (*_Comparing.of_program, "command"):
        chosen.pop(name)
    chosen["name"] = chosen["name"] or chosen["environment"]
    if chosen["baseline"] is None:
        chosen["baseline"] = BASELINE
    opt.place_threads(chosen)
    opt.split_lists(chosen)
    return prepare(KernelOptions(**chosen), console, BEGAN)
