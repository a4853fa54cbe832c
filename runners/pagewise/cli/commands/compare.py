"""`pagewise compare`: the user's program."""

from __future__ import annotations

from functools import partial

import rich_click as click
from rich.console import Console

from pagewise.cli import options as opt
from pagewise.cli.measuring import (
    BASELINE_OPTION,
    COMPARED_RUNS,
    JUDGED,
    VARIED,
    Measuring,
    Parameters,
    Session,
    TakesProgram,
    complete,
    options_of,
)


class _Comparing(Measuring, TakesProgram):
    """Refuses options that do not belong together."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parse the options; there must be a program, suite or case."""
        extra, params = super().parse_args(context, arguments), context.params
        if not context.resilient_parsing:
            if not (params["command"] or params["suite"] or params["cases"]):
                context.fail(
                    "Name a program after --, or --suite or --case. To compare kernels: pagewise kernels."
                )
            if params["varied"]:
                context.fail(f"--vary {params['varied'][0]}: only kernels have such options.")
        return extra


@opt.command(
    "pagewise compare -- ./my_app input.dat  # your program under page policies",
    "pagewise compare --policies none,thp --metric 'rate[GB/s,higher]=Triad: +([0-9.]+)' -- ./stream",
    "pagewise compare --case redis.yaml  # a service under load, as its file describes it",
    "pagewise compare --suite npb:cg.A,npb:mg.A --ranks 1,2,4  # benchmarks of a suite by ranks",
    "pagewise compare --resume results/20261121T115458Z-my_app -- ./my_app  # after an interruption",
    cls=_Comparing,
    subject=(
        opt.ENVIRONMENT_OR_SUITES,
        opt.MODULES,
        opt.POLICIES,
        partial(
            VARIED,
            help="What else to compare, with its values, the baseline's first: an environment variable, as "
            "OMP_WAIT_POLICY=active,passive (-: unset); node-state=fresh,aged; prefetchers=off; "
            "clocks=boost=on/off (root). Repeat --vary for more (docs/how-to/compare.md).",
        ),
        partial(BASELINE_OPTION, help="Policy to compare against (default: none)."),
        opt.SUITES,
        opt.CASE,
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
        *COMPARED_RUNS,
        partial(
            opt.METHOD,
            help="How runs are compared: in slices of 10 or 40 ms if the program only computes, or whole "
            "runs one by one (runs). turns: in slices also with --metric (docs/explanation/statistics.md).",
        ),
        *opt.SESSION_RUNS,
    ),
    placement=opt.PLACED,
    settings=(opt.PREPARE_PAGES,),
    program=(
        opt.option(
            "--metric metrics",
            "Metric from the output, NAME[UNIT,BETTER]=PATTERN: the group in the pattern's last match, as "
            "'rate[GB/s,higher]=Triad: +([0-9.]+)'.",
            multiple=True,
            metavar="METRIC",
        ),
        *JUDGED,
    ),
    result=(
        partial(opt.NAME, help="Name in the result's folder (default: the program's)."),
        *opt.SESSION_RESULT,
    ),
)
def command(parameters: Parameters, console: Console) -> Session:
    """Compare page policies for your program, interleaved.

    Every round runs the program once under each policy, in randomised order, and the baseline twice (A/A). A
    run whose memory was not on the requested pages is excluded, with the reason. The program runs unchanged,
    and is bound to CPUs only with --threads or --cpus. After Ctrl-C, everything measured so far is kept and
    reported. Only --prepare-pages and --vary of prefetchers, clocks and node-state change settings of the
    machine, which are always restored. See docs/how-to/programs.md and docs/how-to/services.md; to compare
    kernels, use pagewise kernels.
    """
    from pagewise.workloads.program.command import prepare_command
    from pagewise.workloads.program.workload import ProgramOptions

    return prepare_command(options_of(ProgramOptions, complete(parameters, "none")), console)
