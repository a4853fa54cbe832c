"""`pagewise compare`: kernels, or the user's program."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from rich.console import Console

from pagewise.cli import BEGAN
from pagewise.cli import options as opt
from pagewise.cli.chosen import kernel_options
from pagewise.cli.measuring import Measuring
from pagewise.cli.program import (
    JUDGED,
    OF_PROGRAM,
    OF_SERVICE,
    POLICIES,
    POOL_MEMORY,
    SERVICE,
    KernelsOrProgram,
    has_program,
)
from pagewise.cli.types import Number, Percent
from pagewise.cli.vary import varies
from pagewise.core.configuration import BASELINE
from pagewise.core.errors import SelectionError
from pagewise.core.node_state import STATES

# docs/explanation/statistics.md: what these detect.
_ROUNDS, _WIDTH = 7, 0.03


class _Comparing(Measuring, KernelsOrProgram):
    """Compares kernels or a program."""

    of_kernels = ("kernels", "configurations", "scale", "sweep")
    of_program = (*OF_PROGRAM, "metrics", "memory_budget", "builds", "service", *OF_SERVICE)


@opt.command(
    "pagewise compare --env quick  # kernels that list marks, all configurations",
    "pagewise compare -k 'memory/*' -t 8 --until 2%  # kernels of a group, on 8 threads",
    "pagewise compare -- ./my_app input.dat  # your program under page policies",
    "pagewise compare --policies none,thp --metric 'rate[GB/s,higher]=Triad: +([0-9.]+)' -- ./stream",
    "pagewise compare --service 'redis-server --port {port}' --load 'redis-benchmark -p {port} -t get'",
    "pagewise compare --suite npb:cg.A,npb:mg.A --ranks 1,2,4  # benchmarks of a suite by ranks",
    "pagewise compare --env quick --resume results/20261121T115458Z-default  # after an interruption",
    cls=_Comparing,
    subject=(
        opt.ENVIRONMENT_OR_SUITES,
        opt.MODULES,
        opt.KERNELS,
        partial(
            opt.CONFIGURATIONS,
            help="Configurations by glob, as 'gcc-*/thp/*'; several with commas (default: all). Baselines "
            "are always measured.",
        ),
        POLICIES,
        varies(
            ("variables", "node-state", "prefetchers", "clocks"),
            "What else to compare, with its values, the baseline's first: an option of kernels, as layout, "
            "layout=studies,soa or all; an environment variable, as OMP_WAIT_POLICY=active,passive (-: "
            "unset); node-state=fresh,aged; prefetchers=off; clocks=boost=on/off (root). Repeat --vary for "
            "more (docs/how-to/compare.md).",
        ),
        opt.SCALE,
        opt.rare_option(
            "--baseline",
            f"Configuration to compare against (default: {BASELINE}), or a program's policy (default: none).",
            metavar="GLOB|POLICY",
        ),
        opt.SUITES,
        opt.option(
            "--build builds",
            "Build of the codes to compare, as old=DIR with a folder of programs, or tuned='npb/*-tuned' "
            "with a module; repeat it for each, the baseline first.",
            multiple=True,
            metavar="NAME=DIR|MODULE",
            rare=True,
        ),
    ),
    runs=(
        opt.ROUNDS,
        opt.UNTIL,
        opt.BUDGET,
        opt.option(
            "--aa",
            "Number of additional runs of each baseline per round (A/A).",
            type=Number(1, 10),
            default=1,
            rare=True,
        ),
        opt.flag(
            "--no-sweep sweep",
            "Omit the curves (sweeps).",
            rare=True,
            flag_value=False,
            default=True,
            show_default=False,
        ),
        *opt.SESSION_RUNS,
    ),
    placement=opt.PLACED,
    settings=(
        opt.RESERVE,
        POOL_MEMORY,
        opt.SET_THP_SIZES,
    ),
    program=(
        opt.option(
            "--metric metrics",
            "Metric from the output, NAME[UNIT,BETTER]=PATTERN: the group in the pattern's last match, as "
            "'rate[GB/s,higher]=Triad: +([0-9.]+)'.",
            multiple=True,
            metavar="METRIC",
        ),
        *JUDGED,
        opt.rare_option(
            "--memory-budget",
            "How much more peak memory than the baseline an advised policy may need, as 10% (default: no "
            "limit).",
            type=Percent(closed=True),
            metavar="SHARE",
        ),
    ),
    service=SERVICE,
    result=(
        partial(opt.NAME, help="Name in the result's folder (default: the environment's or the program's)."),
        *opt.SESSION_RESULT,
    ),
)
def command(chosen: dict[str, Any], console: Console) -> Any:
    """Compare kernels in all configurations, or a program of yours under page policies, interleaved.

    Every round runs each distinct configuration or policy once in randomised order, and each baseline twice
    (A/A). A run whose memory was not on the requested pages is excluded, with the reason. A program runs
    unchanged, and is bound to CPUs only with --threads, --cores or --cpus. After Ctrl-C, everything measured
    so far is kept and reported. Only --reserve-hugepages, --set-thp-sizes and --vary of prefetchers,
    clocks and node-state change settings of the machine, which are always restored. See
    docs/explanation/statistics.md and, for programs, docs/how-to/programs.md and docs/how-to/services.md.
    """
    chosen["settings"] = _settings(chosen["settings"])
    _check_states(chosen["node_states"])
    if chosen["rounds"] is None:
        chosen |= {"rounds": _ROUNDS, "until": chosen["until"] or _WIDTH}
    if has_program(chosen):
        from pagewise.workloads.program.command import prepare_command

        return prepare_command(_with_baseline(chosen, "none"), console, BEGAN)
    from pagewise.workloads.kernels.workload import prepare

    for name in (*_Comparing.of_program, "command"):
        chosen.pop(name)
    chosen["name"] = chosen["name"] or chosen["environment"]
    return prepare(kernel_options(_with_baseline(chosen, BASELINE)), console, BEGAN)


def _settings(given: Sequence[tuple[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """The values by variable. Raises SelectionError for a variable that is given twice."""
    settings = dict(given)
    if len(settings) < len(given):
        raise SelectionError(
            "a variable is given twice", where="--vary", remedy="write its values with commas: NAME=a,b,c"
        )
    return settings


def _check_states(states: Sequence[str]) -> None:
    """Raises SelectionError for an unknown state, or one that is given twice."""
    if not set(states) <= set(STATES) or len(set(states)) < len(states):
        raise SelectionError(
            f"{', '.join(states)} are not different states of the node",
            where="--vary node-state",
            remedy=f"choose from {', '.join(STATES)}",
        )


def _with_baseline(chosen: dict[str, Any], default: str) -> dict[str, Any]:
    """The options with the default baseline if none was given; an empty one is refused later."""
    return {**chosen, "baseline": default if chosen["baseline"] is None else chosen["baseline"]}
