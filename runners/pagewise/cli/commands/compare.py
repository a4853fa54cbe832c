"""`pagewise compare`."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console

from pagewise.cli import BEGAN
from pagewise.cli.measured import begin_session, carry_out
from pagewise.cli.options import (
    AA,
    BUDGET,
    END_LEFTOVERS,
    ENVIRONMENT,
    JSON,
    KERNELS,
    LIMIT,
    MODULES,
    PAGES,
    PLAN,
    PREFETCHERS,
    RESERVE,
    RESULTS,
    ROUNDS,
    SEED,
    SET_THP_SIZES,
    UNTIL,
    make_console,
    place_threads,
    placed,
    set_default_rounds,
    split_lists,
)
from pagewise.cli.resumable import Resumable
from pagewise.cli.shell import values
from pagewise.core.configuration import BASELINE


@click.command(cls=Resumable)
@ENVIRONMENT
@MODULES
@KERNELS
@click.option(
    "--configurations",
    multiple=True,
    metavar="GLOBS",
    shell_complete=values.list_of(values.configurations),
    help="Configurations by glob, as 'gcc-*/thp/*'; several with commas. Baselines are always measured.",
)
@ROUNDS
@UNTIL
@BUDGET
@AA
@placed
@RESERVE
@PAGES
@SET_THP_SIZES
@PREFETCHERS
@click.option(
    "--baseline",
    default=BASELINE,
    show_default=True,
    metavar="GLOB",
    shell_complete=values.one_of(values.baselines),
    help="The configuration compared against.",
)
@click.option("--no-sweep", "sweep", flag_value=False, default=True, help="Leave the curves (sweeps) out.")
@SEED
@click.option(
    "--name", default=None, metavar="NAME", help="Name in the result's folder. The environment's by default."
)
@RESULTS
@LIMIT
@END_LEFTOVERS
@PLAN
@JSON
def command(**chosen: Any) -> int:
    """Measure kernels in all configurations, interleaved, and say what is faster.

    Every round runs each distinct configuration once in shuffled order, each compiler's baseline twice (A/A).
    Ctrl-C keeps and reports what was measured. Only --reserve-hugepages, --set-thp-sizes and
    --hardware-prefetchers change settings of the machine, which are restored whatever ends it.
    """
    planning, as_json = chosen.pop("planning"), chosen.pop("as_json")
    console = make_console(as_json)
    begin_session(chosen, planning)
    return carry_out(prepared(chosen, console), console, planning, as_json)


def prepared(chosen: dict[str, Any], console: Console) -> Any:
    """The comparison that these options ask for."""
    from pagewise.session.comparison import prepare
    from pagewise.session.options import Options

    chosen["name"] = chosen["name"] or chosen["environment"]
    set_default_rounds(chosen)
    place_threads(chosen)
    return prepare(Options(**chosen | split_lists(chosen)), console, BEGAN)
