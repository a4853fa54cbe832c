"""`pagewise compare`: kernels, or the user's program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rich_click as click
from click.core import ParameterSource
from rich.console import Console

from pagewise.cli import BEGAN
from pagewise.cli import options as opt
from pagewise.cli.measured import begin_session, carry_out
from pagewise.cli.program import TakesProgram
from pagewise.cli.resumable import Resumable
from pagewise.cli.shell import values
from pagewise.cli.types import Duration, Percent
from pagewise.core.configuration import BASELINE

#: Options for kernels only, and for a program only, by their parameters.
_OF_KERNELS = ("kernels", "configurations", "sweep", "prefetchers")
_OF_PROGRAM = ("suite", "metrics", "checks", "ok", "inputs", "reads", "interval", "enough", "pool_memory")
_EXAMPLES = opt.examples(
    "pagewise compare --env quick  # kernels that list marks, all configurations",
    "pagewise compare -k 'memory/*' -t 8 --until 2%  # kernels of a group, on 8 threads",
    "pagewise compare -- ./my_app input.dat  # your program under page policies",
    "pagewise compare --policies none,thp --metric 'rate[GB/s,higher]=Triad: +([0-9.]+)' -- ./stream",
    "pagewise compare --resume results/20261121T115458Z-default",
)


class _KernelsOrProgram(TakesProgram):
    """Refuses options that the subject, kernels or a program, does not have."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parses the options, and chooses the environment of kernels."""
        extra = super().parse_args(context, arguments)
        chosen = context.params
        is_program = _has_program(chosen)
        if not is_program and chosen["environment"] is None:
            chosen["environment"] = opt.DEFAULT_ENVIRONMENT
        for parameter in self.params if not context.resilient_parsing else ():
            given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
            if given and parameter.name in (_OF_KERNELS if is_program else _OF_PROGRAM):
                subject = "kernels only" if is_program else "programs: compare -- PROGRAM or compare --suite"
                context.fail(f"{parameter.opts[0]} is for {subject}.")
        return extra


class _Comparing(Resumable, _KernelsOrProgram):
    """Resumable, for kernels or a program."""


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
@click.option(
    "--policies",
    multiple=True,
    metavar="POLICIES",
    shell_complete=values.list_of(values.policies),
    panel=opt.SUBJECT,
    help="Page policies; several with commas. Of a program: the policies to compare, as "
    "none,thp,hugetlbfs:1g,reuse+glibc (pagewise list policies). Of kernels: further page sizes, as "
    "thp:64k,hugetlbfs:1g, for each configuration of that kind.",
)
@opt.ROUNDS
@opt.UNTIL
@opt.BUDGET
@opt.AA
@opt.placed
@opt.RESERVE
@click.option(
    "--pool-memory",
    metavar="SIZE",
    panel=opt.SETTINGS,
    help="Memory to reserve for a program, as 4GiB (default: 1.25 times what the baseline's trial run used).",
)
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
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="PATTERN|COMMAND",
    panel=opt.PROGRAM,
    help="Pattern that the output must match; '! pattern' must not match; '| command' reads the output and "
    "must exit with 0.",
)
@click.option(
    "--exit-code",
    "ok",
    multiple=True,
    type=int,
    metavar="N",
    panel=opt.PROGRAM,
    help="Exit code of a valid run (default: 0).",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    panel=opt.PROGRAM,
    help="Input file, copied to a new folder in which the program runs (default: run in this folder).",
)
@click.option(
    "--read",
    "reads",
    multiple=True,
    metavar="FILE",
    panel=opt.PROGRAM,
    help="File that the program writes, read as part of its output.",
)
@click.option(
    "--sample-interval",
    "interval",
    type=Duration(0.001),
    default=None,
    metavar="TIME",
    panel=opt.PROGRAM,
    help="Memory sampling interval, as 0.05s (default: adaptive, at most 1 % of one CPU).",
)
@click.option(
    "--enough-coverage",
    "enough",
    type=Percent(closed=True),
    default="80%",
    show_default=True,
    metavar="PERCENT",
    panel=opt.PROGRAM,
    help="Minimum share of a policy's memory that must be on the pages asked for.",
)
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
    if _has_program(chosen):
        from pagewise.workloads.program.command import prepare_command

        chosen["policies"] = opt.split_commas(chosen["policies"])
        if chosen["baseline"] is None:
            chosen["baseline"] = "none"
        chosen["where"] = opt.take_where(chosen)
        return prepare_command(chosen, console, BEGAN)
    from pagewise.workloads.kernels.options import KernelOptions
    from pagewise.workloads.kernels.workload import prepare

    for name in (*_OF_PROGRAM, "command"):
        chosen.pop(name)
    chosen["name"] = chosen["name"] or chosen["environment"]
    if chosen["baseline"] is None:
        chosen["baseline"] = BASELINE
    opt.place_threads(chosen)
    opt.split_lists(chosen)
    return prepare(KernelOptions(**chosen), console, BEGAN)


def _has_program(chosen: Mapping[str, Any]) -> bool:
    return bool(chosen["command"] or chosen["suite"])
