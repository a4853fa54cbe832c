"""`pagewise counters`."""

from __future__ import annotations

import shlex
from typing import Any

import rich_click as click
from rich.console import Console

from pagewise.cli import BEGAN
from pagewise.cli import options as opt
from pagewise.cli.measured import begin_session, carry_out
from pagewise.cli.program import TakesProgram
from pagewise.cli.resumable import Resumable
from pagewise.cli.shell import values
from pagewise.core.configuration import BASELINE
from pagewise.core.errors import SelectionError

_EXAMPLES = opt.examples(
    "pagewise counters --env mini-apps  # all groups of events of this CPU",
    "pagewise counters -k ember --groups tlb --region hydro",
    "pagewise counters -k schoenauer_triad --events generic -n 5",
)


class _Counting(Resumable, TakesProgram):
    """Resumable. Programs are accepted for a better message than that of an unknown argument."""


@click.command(cls=_Counting, epilog=_EXAMPLES)
@opt.ENVIRONMENT
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
@opt.RESERVE
@opt.POLICIES
@opt.SET_THP_SIZES
@opt.PREFETCHERS
@opt.SEED
@click.option(
    "--name",
    default="counters",
    show_default=True,
    metavar="NAME",
    panel=opt.RESULT,
    help="Name in the result's folder.",
)
@opt.OUTPUT
@opt.TIMEOUT
@opt.END_LEFTOVERS
@opt.PLAN
@opt.talkative
@opt.JSON
def command(**chosen: Any) -> int:
    """Count events of kernels, and show what huge pages and compilers change.

    Each configuration runs once per group of events and round. Writes text, CSV, LaTeX and HTML. Ctrl-C keeps
    and reports what was counted. See docs/counters.md for the events of each CPU.
    """
    if program := chosen.pop("command"):
        raise SelectionError(
            "events of a program that does not measure its own regions cannot be counted",
            where=shlex.join(program),
            remedy="count the whole process: perf stat -- PROGRAM; simulate its TLB and cache misses: "
            "pagewise simulate -- PROGRAM; or compare its time: pagewise compare -- PROGRAM",
        )
    planning, as_json = chosen.pop("planning"), chosen.pop("as_json")
    begin_session(chosen, planning)
    return carry_out(prepared(chosen, opt.make_messages()), planning, as_json)


def prepared(chosen: dict[str, Any], console: Console) -> Any:
    """The counting that these options ask for."""
    from pagewise.workloads.counters.counting import Wanted, prepare
    from pagewise.workloads.kernels.options import KernelOptions

    wanted = Wanted(
        opt.split_commas(chosen.pop("groups")),
        chosen.pop("events"),
        chosen.pop("region"),
        chosen.pop("multiplex"),
    )
    opt.place_threads(chosen)
    opt.split_lists(chosen)
    options = KernelOptions(**chosen, baseline=BASELINE, sweep=False)
    return prepare(options, wanted, console, BEGAN)
