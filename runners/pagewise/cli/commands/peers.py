"""`pagewise peers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click
from rich.console import Console

from pagewise.cli import BEGAN
from pagewise.cli.measured import begin_session, carry_out
from pagewise.cli.options import (
    BUDGET,
    END_LEFTOVERS,
    ENVIRONMENT,
    JSON,
    MEMORY,
    MODULES,
    ORDERS,
    OUTPUT,
    PLAN,
    RUNS,
    SEED,
    SMT,
    SUBJECT,
    TIMEOUT,
    UNTIL,
    examples,
    make_messages,
    split_commas,
    take_where,
    talkative,
)
from pagewise.cli.resumable import Resumable
from pagewise.cli.shell import values

_EXAMPLES = examples(
    "pagewise peers --quick  # first-level cache and memory, one core",
    "pagewise peers --peers stream,likwid-bench -k stream_triad",
)


@click.command(cls=Resumable, epilog=_EXAMPLES)
@ENVIRONMENT
@MODULES
@click.option(
    "-n",
    "--rounds",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=None,
    panel=RUNS,
    help="Number of rounds (default: 9, with --quick 3).",
)
@click.option(
    "--peers",
    multiple=True,
    metavar="NAMES",
    shell_complete=values.list_of(values.peers),
    panel=SUBJECT,
    help="Peers by name; several with commas (default: all that are installed).",
)
@click.option(
    "-k",
    "--kernels",
    multiple=True,
    metavar="GLOBS",
    panel=SUBJECT,
    help="Kernels or comparisons by glob, as stream_triad or '*/L1/*'; several with commas.",
)
@click.option(
    "--quick",
    is_flag=True,
    panel=RUNS,
    help="Measure first-level cache and memory only, on one core, in 3 rounds.",
)
@click.option(
    "--peer-path",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    panel=SUBJECT,
    help="Folder with programs of peers, searched before PATH (also: PAGEWISE_PEERS, DIR:DIR).",
)
@ORDERS
@SMT
@MEMORY
@SEED
@OUTPUT
@TIMEOUT
@END_LEFTOVERS
@UNTIL
@BUDGET
@PLAN
@talkative
@JSON
def command(**chosen: Any) -> int:
    """Compare the kernels with installed peer benchmarks, interleaved.

    Lists missing peers; docs/peers.md describes how to get them. Exit code 1 when something could not run as
    asked; a missed target is not a failure. Ctrl-C keeps and reports what was measured.
    """
    planning, as_json = chosen.pop("planning"), chosen.pop("as_json")
    begin_session(chosen, planning)
    return carry_out(prepared(chosen, make_messages()), planning, as_json)


def prepared(chosen: dict[str, Any], console: Console) -> Any:
    """The comparison that these options ask for."""
    from pagewise.workloads.peers.plan import QUICK_ROUNDS, ROUNDS
    from pagewise.workloads.peers.run import PeerOptions, prepare

    for name in ("peers", "kernels"):
        chosen[name] = split_commas(chosen[name])
    chosen["where"] = take_where(chosen)
    chosen["rounds"] = chosen["rounds"] or (QUICK_ROUNDS if chosen["quick"] else ROUNDS)
    return prepare(PeerOptions(**chosen, name="peers", baseline="", threads=None), console, BEGAN)
