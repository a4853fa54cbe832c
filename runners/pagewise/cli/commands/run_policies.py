"""`pagewise run-policies`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pagewise.cli import BEGAN
from pagewise.cli.measured import begin_session, carry_out
from pagewise.cli.options import (
    AA,
    BUDGET,
    END_LEFTOVERS,
    JSON,
    LIMIT,
    LONGEST_SECONDS,
    MODULES,
    PLAN,
    RESERVE,
    RESULTS,
    ROUNDS,
    SEED,
    UNTIL,
    Number,
    make_console,
    placed,
    print_json,
    set_default_rounds,
    split_commas,
    take_where,
)
from pagewise.cli.resumable import Resumable
from pagewise.cli.shell import values

_ENVIRONMENT = click.option(
    "--env",
    "environment",
    default=None,
    metavar="NAME",
    shell_complete=values.one_of(values.environments),
    help="Environment whose modules bring the code of --suite. By default suites, suites-system, then PATH.",
)


@click.command("run-policies", cls=Resumable, context_settings={"allow_interspersed_args": False})
@click.option(
    "--policies",
    multiple=True,
    metavar="NAMES",
    shell_complete=values.list_of(values.policies),
    help="Page policies, as none,thp,hugetlbfs:1g,reuse+glibc; several with commas. --list tells all.",
)
@click.option(
    "--list", "listing", is_flag=True, help="Tell which policies this program can have, and why not."
)
@click.option(
    "--suite",
    metavar="NAME",
    shell_complete=values.one_of(values.suites),
    help="A known code with its input, metrics and checks (envs/suites).",
)
@_ENVIRONMENT
@MODULES
@ROUNDS
@UNTIL
@BUDGET
@AA
@placed
@RESERVE
@click.option(
    "--pool-memory",
    metavar="SIZE",
    help="How much to reserve, as 4GiB. By default what the baseline's trial run used, and a quarter more.",
)
@click.option(
    "--set-thp-sizes",
    is_flag=True,
    help="Switch the needed THP sizes during the command, then restore them (root).",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME[UNIT,BETTER]=PATTERN",
    help="A metric of its output: the group of the last match, as 'rate[GB/s,higher]=Triad: +([0-9.]+)'",
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="PATTERN|COMMAND",
    help="Its output must have this pattern; '! pattern': must not; '| command' gets it, and ends with 0.",
)
@click.option(
    "--exit-code", "ok", multiple=True, type=int, metavar="N", help="Exit codes that are good. 0 by default."
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    help="Run in a fresh folder with copies of these. By default it runs in this folder.",
)
@click.option(
    "--read",
    "reads",
    multiple=True,
    metavar="FILE",
    help="A file that it writes: taken as a part of its output.",
)
@click.option(
    "--sample-interval",
    "interval",
    type=Number(0.001, LONGEST_SECONDS),
    default=None,
    metavar="SECONDS",
    help="Between looks at its memory. By default as often as costs 1 % of a CPU.",
)
@click.option(
    "--enough-coverage",
    "enough",
    type=Number(0.0, 1.0),
    default=0.8,
    show_default=True,
    metavar="SHARE",
    help="The least share of the memory that a policy is for which must be on its pages.",
)
@click.option(
    "--baseline",
    default="none",
    show_default=True,
    metavar="POLICY",
    shell_complete=values.one_of(values.policies),
    help="The policy compared against.",
)
@SEED
@click.option(
    "--name", default=None, metavar="NAME", help="Name in the result's folder. The program's by default."
)
@RESULTS
@LIMIT
@END_LEFTOVERS
@PLAN
@JSON
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(**chosen: Any) -> int:
    """Compare a program of yours, unchanged, under page policies: pagewise run-policies -- ./my_app args

    Each round runs it once under each policy in shuffled order, the baseline twice (A/A). A run whose memory
    was not on the pages asked for is shown as not ranked, with the reason. It is bound, and OpenMP set, only
    where --threads, --cores or --cpus are given. Only --reserve-hugepages and --set-thp-sizes change settings
    of the machine, which are restored whatever ends it. See docs/run-policies.md.
    """
    planning, as_json = chosen.pop("planning"), chosen.pop("as_json")
    console = make_console(as_json)
    if chosen.pop("listing"):
        from pagewise.workloads.program.command import look, print_survey, survey_data

        chosen["policies"] = split_commas(chosen["policies"])
        found = look(chosen, console)
        if as_json:
            print_json(survey_data(*found))
        else:
            print_survey(console, *found)
        return 0
    begin_session(chosen, planning)
    return carry_out(prepared(chosen, console), console, planning, as_json)


def prepared(chosen: dict[str, Any], console: Console) -> Any:
    """The comparison that these options ask for."""
    from pagewise.workloads.program.command import prepare_command

    chosen["policies"] = split_commas(chosen["policies"])
    set_default_rounds(chosen)
    chosen["where"] = take_where(chosen)
    return prepare_command(chosen, console, BEGAN)
