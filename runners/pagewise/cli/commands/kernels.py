"""`pagewise kernels`."""

from __future__ import annotations

from functools import partial

from rich.console import Console

from pagewise.cli import options as opt
from pagewise.cli.measuring import (
    BASELINE_OPTION,
    COMPARED_RUNS,
    VARIED,
    Measuring,
    Parameters,
    Session,
    complete,
    options_of,
)
from pagewise.core.configuration import BASELINE


@opt.command(
    "pagewise kernels --env quick  # kernels that list marks, all configurations",
    "pagewise kernels -k 'memory/*' -t 8 --until 2%  # kernels of a group, on 8 threads",
    "pagewise kernels -k ember --vary layout=studies,soa  # data structures of a mini-app",
    "pagewise kernels --env quick --resume results/20261121T115458Z-default  # after an interruption",
    cls=Measuring,
    subject=(
        opt.ENVIRONMENT,
        opt.MODULES,
        opt.KERNELS,
        partial(
            opt.CONFIGURATIONS,
            help="Configurations by glob, as 'gcc-*/thp/*'; several with commas (default: all). Baselines "
            "are always measured.",
        ),
        partial(
            opt.POLICIES,
            help="Further page sizes, as thp:64k,hugetlbfs:1g, for each configuration of that kind.",
        ),
        VARIED,
        opt.SCALE,
        partial(BASELINE_OPTION, help=f"Configuration to compare against (default: {BASELINE})."),
    ),
    runs=(
        *COMPARED_RUNS,
        opt.flag(
            "--no-sweep sweep",
            "Omit the curves (sweeps).",
            flag_value=False,
            default=True,
            show_default=False,
        ),
        partial(
            opt.METHOD,
            help="How runs are compared: in turns of about 10 ms (turns), or whole runs one by one (runs); "
            "auto: in turns where that is valid (docs/explanation/statistics.md).",
        ),
        *opt.SESSION_RUNS,
    ),
    placement=opt.PLACED,
    settings=(opt.PREPARE_PAGES,),
    result=(
        partial(opt.NAME, help="Name in the result's folder (default: the environment's)."),
        *opt.SESSION_RESULT,
    ),
)
def command(parameters: Parameters, console: Console) -> Session:
    """Compare kernels in all configurations, interleaved.

    Every round runs each distinct configuration once in randomised order, and each baseline twice (A/A). A
    run whose memory was not on the requested pages is excluded, with the reason. After Ctrl-C, everything
    measured so far is kept and reported. Only --prepare-pages and --vary of prefetchers, clocks and
    node-state change settings of the machine, which are always restored. See docs/explanation/statistics.md.
    """
    from pagewise.workloads.kernels.choose import KernelOptions
    from pagewise.workloads.kernels.workload import prepare

    options = options_of(KernelOptions, complete(parameters, BASELINE))
    return prepare(options.with_defaults_of_name(options.environment), console)
