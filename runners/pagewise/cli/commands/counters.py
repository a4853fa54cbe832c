"""`pagewise counters`."""

from __future__ import annotations

from typing import Any

import rich_click as click
from rich.console import Console

from pagewise.cli import BEGAN
from pagewise.cli import options as opt
from pagewise.cli.measured import begin_session, carry_out
from pagewise.cli.program import POLICIES, POOL_MEMORY, KernelsOrProgram, has_program, judged, read_program
from pagewise.cli.resumable import Resumable
from pagewise.cli.shell import values
from pagewise.core.configuration import BASELINE

_EXAMPLES = opt.examples(
    "pagewise counters --env mini-apps  # all groups of events of this CPU",
    "pagewise counters -k ember --groups tlb --region hydro",
    "pagewise counters -k schoenauer_triad --events generic -n 5",
    "pagewise counters --policies none,thp -- ./my_app input.dat  # your program under page policies",
)


class _Counting(Resumable, KernelsOrProgram):
    """Resumable, for kernels or a program."""

    of_kernels = ("kernels", "configurations", "region", "prefetchers")


@click.command(cls=_Counting, epilog=_EXAMPLES)
@opt.ENVIRONMENT_OR_SUITES
@opt.MODULES
@opt.KERNELS
@click.option(
    "--configurations",
    multiple=True,
    metavar="GLOBS",
    shell_complete=values.list_of(values.configurations),
    panel=opt.SUBJECT,
    help="Configurations by glob, as 'gcc-*/thp/*'; several with commas (default: those that differ from the "
    "baseline in compiler or hugepages).",
)
@click.option(
    "--groups",
    multiple=True,
    metavar="NAMES",
    shell_complete=values.list_of(values.event_groups),
    panel="Events",
    help="Groups of events, as tlb,cache; several with commas (default: all).",
)
@click.option(
    "--events",
    metavar="NAME",
    shell_complete=values.one_of(values.event_files),
    panel="Events",
    help="Event file, as generic or software (default: that of this CPU).",
)
@click.option(
    "--region",
    metavar="NAME",
    panel="Events",
    help="Region of the programs to count in, as hydro (default: the measured pass).",
)
@click.option(
    "--multiplex",
    is_flag=True,
    panel="Events",
    help="Count all events in one run by multiplexing, which estimates (default: one run per group).",
)
@click.option(
    "-n",
    "--rounds",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=3,
    show_default=True,
    panel=opt.RUNS,
    help="Number of rounds; ratios have intervals from 3 on.",
)
@opt.placed
@POLICIES
@opt.RESERVE
@POOL_MEMORY
@opt.SET_THP_SIZES
@opt.PREFETCHERS
@opt.SUITE
@judged
@opt.SEED
@click.option(
    "--name",
    default=None,
    metavar="NAME",
    panel=opt.RESULT,
    help="Name in the result's folder (default: counters, or the program's).",
)
@opt.OUTPUT
@opt.TIMEOUT
@opt.END_LEFTOVERS
@opt.PLAN
@opt.talkative
@opt.JSON
def command(**chosen: Any) -> int:
    """Count events of kernels, or of a program of yours, and show what huge pages and compilers change.

    Each configuration or page policy runs once per group of events and round. A program runs unchanged, and
    perf counts it as a whole, from outside. Ctrl-C keeps and reports what was counted. See docs/counters.md
    for the events of each CPU.
    """
    planning, as_json = chosen.pop("planning"), chosen.pop("as_json")
    begin_session(chosen, planning)
    return carry_out(prepared(chosen, opt.make_messages()), planning, as_json)


def prepared(chosen: dict[str, Any], console: Console) -> Any:
    """The counting that these options ask for."""
    from pagewise.workloads.counters.counting import Wanted, prepare

    wanted = Wanted(
        opt.split_commas(chosen.pop("groups")),
        chosen.pop("events"),
        chosen.pop("region"),
        chosen.pop("multiplex"),
    )
    if has_program(chosen):
        from pagewise.workloads.counters import program
        from pagewise.workloads.program.command import chosen_program

        read_program(chosen)
        chosen["baseline"] = "none"
        return program.prepare(*chosen_program(chosen, console), wanted, console, BEGAN)
    from pagewise.workloads.kernels.options import KernelOptions

    for name in (*_Counting.of_program, "command"):
        chosen.pop(name)
    chosen["name"] = chosen["name"] or "counters"
    opt.place_threads(chosen)
    opt.split_lists(chosen)
    options = KernelOptions(**chosen, baseline=BASELINE, sweep=False)
    return prepare(options, wanted, console, BEGAN)
