"""`pagewise counters`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import rich_click as click
from click.core import ParameterSource
from rich.console import Console

from pagewise.cli import options as opt
from pagewise.cli.measuring import (
    JUDGED,
    OF_PROGRAM,
    Measuring,
    Parameters,
    Session,
    TakesProgram,
    options_of,
    varies,
)
from pagewise.core.configuration import BASELINE
from pagewise.stack.paths import DEFAULT_ENVIRONMENT

#: Parameters for kernels only.
_OF_KERNELS = ("kernels", "configurations", "scale", "region")


class _CountersCommand(Measuring, TakesProgram):
    """Refuses options that the subject, kernels or a program, does not have."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parse the options, and choose the environment of kernels."""
        extra = super().parse_args(context, arguments)
        params = context.params
        if context.resilient_parsing:
            return extra
        subject, refused = "kernels only", set(_OF_KERNELS)
        if not _has_program(params):
            params["environment"] = params["environment"] or DEFAULT_ENVIRONMENT
            subject, refused = "programs: counters -- PROGRAM, --suite or --case", set(OF_PROGRAM)
        elif params["varied"]:
            context.fail(f"--vary {params['varied'][0]}: only kernels have such options.")
        for parameter in self.params:
            given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
            if given and parameter.name in refused:
                context.fail(f"{parameter.opts[0]} is for {subject}.")
        return extra


def _has_program(params: Parameters) -> bool:
    return bool(params["command"] or params["suite"] or params["cases"])


@opt.command(
    "pagewise counters --env mini-apps  # all groups of events of this CPU",
    "pagewise counters -k ember --groups tlb --region hydro",
    "pagewise counters -k schoenauer_triad --events generic -n 5",
    "pagewise counters --policies none,thp -- ./my_app input.dat  # your program under page policies",
    cls=_CountersCommand,
    subject=(
        opt.ENVIRONMENT_OR_SUITES,
        opt.MODULES,
        opt.KERNELS,
        partial(
            opt.CONFIGURATIONS,
            help="Configurations by glob, as 'gcc-*/thp/*'; several with commas (default: those that differ "
            "from the baseline in compiler or hugepages).",
        ),
        partial(
            opt.POLICIES,
            help="Page policies; several with commas. For a program: the policies to compare, as "
            "none,thp,hugetlbfs:1g (pagewise list policies). For kernels: further page sizes, as thp:64k.",
        ),
        varies(
            ("prefetchers",),
            "What else to compare, with its values, the baseline's first: an option of kernels, as layout, "
            "layout=studies,soa or all; prefetchers=off (root). Repeat --vary for more.",
        ),
        opt.SCALE,
        opt.SUITES,
        opt.CASE,
    ),
    events=(
        opt.option(
            "--groups",
            "Groups of events, as tlb,cache; several with commas (default: all).",
            is_list=True,
        ),
        opt.option(
            "--events",
            "Event file, as generic or software (default: that of this CPU).",
        ),
        opt.option("--region", "Region of the programs to count in, as hydro (default: the measured pass)."),
    ),
    runs=(
        partial(
            opt.ROUNDS, default=3, help="Number of rounds; ratios have intervals if there are at least 3."
        ),
        *opt.SESSION_RUNS,
    ),
    placement=opt.PLACED,
    settings=(opt.PREPARE_PAGES,),
    program=JUDGED,
    result=(
        partial(opt.NAME, help="Name in the result's folder (default: counters, or the program's)."),
        *opt.SESSION_RESULT,
    ),
)
def command(parameters: Parameters, console: Console) -> Session:
    """Count events of kernels, or of your program, and show what huge pages and compilers change.

    Each configuration or page policy runs once per group of events and round. A program runs unchanged, and
    perf counts it as a whole, from outside. After Ctrl-C, everything counted so far is kept and reported. See
    docs/how-to/counters.md for the events of each CPU.
    """
    from pagewise.workloads.counters.counting import Selection, prepare

    selection = options_of(Selection, parameters)
    if _has_program(parameters):
        from pagewise.workloads.counters import program
        from pagewise.workloads.program.command import single_program
        from pagewise.workloads.program.workload import ProgramOptions

        of_program = replace(options_of(ProgramOptions, parameters), baseline="none")
        return program.prepare(*single_program(of_program, console), selection, console)
    from pagewise.workloads.kernels.choose import KernelOptions

    options = replace(options_of(KernelOptions, parameters), baseline=BASELINE)
    return prepare(options.with_defaults_of_name("counters"), selection, console)
