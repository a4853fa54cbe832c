"""`pagewise peers`."""

from __future__ import annotations

from functools import partial
from typing import Any

from rich.console import Console

from pagewise.cli import BEGAN
from pagewise.cli import options as opt
from pagewise.cli.measuring import Measuring
from pagewise.cli.types import Folder


@opt.command(
    "pagewise peers --quick  # first-level cache and memory, one core",
    "pagewise peers --peers stream,likwid-bench -k stream_triad",
    cls=Measuring,
    subject=(
        opt.ENVIRONMENT,
        opt.MODULES,
        opt.option(
            "--peers",
            "Peers by name; several with commas (default: all that are installed).",
            is_list=True,
        ),
        partial(
            opt.KERNELS,
            metavar="GLOBS",
            help="Kernels or comparisons by glob, as stream_triad or '*/L1/*'; several with commas (default: "
            "all).",
        ),
        opt.option(
            "--peer-path",
            "Folder with peer programs, searched before PATH (also: PAGEWISE_PEERS, DIR:DIR).",
            multiple=True,
            type=Folder(exists=True),
        ),
    ),
    runs=(
        partial(opt.ROUNDS, help="Number of rounds (default: 9, with --quick 3)."),
        opt.flag("--quick", "Measure first-level cache and memory only, on one core, in 3 rounds."),
        opt.UNTIL,
        opt.BUDGET,
        *opt.SESSION_RUNS,
    ),
    placement=opt.PLACED_MEMORY,
    result=opt.SESSION_RESULT,
)
def command(chosen: dict[str, Any], console: Console) -> Any:
    """Compare the kernels with installed peer benchmarks, interleaved.

    Missing peers are listed; docs/how-to/peers.md describes how to get them. Exit code 1 if a comparison
    could not run as requested; a missed target is not a failure. After Ctrl-C, everything measured so far is
    kept and reported.
    """
    from pagewise.workloads.peers.plan import QUICK_ROUNDS, ROUNDS
    from pagewise.workloads.peers.run import PeerOptions, prepare

    chosen["rounds"] = chosen["rounds"] or (QUICK_ROUNDS if chosen["quick"] else ROUNDS)
    return prepare(PeerOptions(**chosen, name="peers", baseline="", threads=None), console, BEGAN)
