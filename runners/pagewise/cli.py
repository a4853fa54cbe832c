"""The command line: `pagewise doctor|list|run|compare|run-policies|counters|peers|model|report`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Console

import pagewise
from pagewise.configuration import BASELINE
from pagewise.errors import Interrupted, PagewiseError, SelectionError

_BEGAN = time.monotonic()
_INTERRUPTED = 130
_INVALID = 1
_PLAIN_WIDTH = 120
# docs/statistics.md tells what these see.
_ROUNDS, _WIDTH = 7, 0.03

_ENVIRONMENT = click.option(
    "--env",
    "environment",
    default="default",
    show_default=True,
    metavar="NAME",
    help="Environment whose modules are used (.pagewise/modules/NAME).",
)
_MODULES = click.option(
    "--modules",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Another module tree; PAGEWISE_MODULES does the same.",
)
_SEED = click.option(
    "--seed", type=int, default=1, show_default=True, help="Of the order of runs and of the bootstrap."
)
_RESULTS = click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    metavar="DIR",
    help="Where the result's folder is made.",
)
_LIMIT = click.option(
    "--limit",
    type=click.FloatRange(min=0.1),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest a run may take.",
)
_PREFETCHERS = click.option(
    "--hardware-prefetchers",
    "prefetchers",
    multiple=True,
    metavar="off|NAMES",
    help="Switch hardware prefetchers off meanwhile, all or some by name, and put them back (root); see "
    "docs/prefetchers.md.",
)
_ENVIRONMENT_OF_SUITES = click.option(
    "--env",
    "environment",
    default=None,
    metavar="NAME",
    help="Environment whose modules bring the code of --suite. By default suites, suites-system, then PATH.",
)
_KERNELS = click.option(
    "--kernels",
    multiple=True,
    metavar="NAMES",
    help="Kernels by name or glob, as schoenauer_triad, 'memory/*' or '*'; several with commas. By default "
    "those that `pagewise list` marks.",
)
_THREADS = click.option(
    "--threads", type=click.IntRange(1, 4096), default=1, show_default=True, help="Threads, one a core."
)
_RESERVE = click.option(
    "--reserve-hugepages",
    "reserve",
    is_flag=True,
    help="Reserve the pages of the pools meanwhile, and put the pools back (root).",
)
_PAGES = click.option(
    "--pages",
    multiple=True,
    metavar="POLICIES",
    help="Further page sizes, as thp:64k,hugetlbfs:1g: each configuration of that kind is run with them too.",
)
_SET_THP_SIZES = click.option(
    "--set-thp-sizes",
    is_flag=True,
    help="Switch the needed sizes of transparent huge pages to madvise meanwhile, and put them back (root).",
)
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


def _share(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """2% or 0.02 as 0.02."""
    if text is None:
        return None
    try:
        share = float(text.rstrip("% ")) / (100.0 if "%" in text else 1.0)
    except ValueError:
        share = 0.0
    if not 0.0 < share < 1.0:
        raise click.BadParameter(f"{text!r} is no width: write it like 2%", context, option)
    return share


def _duration(context: click.Context, option: click.Parameter, text: str) -> float:
    """Seconds of 90s, 10m, 1.5h or 90."""
    try:
        seconds = float(text.rstrip("smh")) * {"m": 60.0, "h": 3600.0}.get(text[-1:], 1.0)
    except ValueError:
        seconds = 0.0
    if seconds <= 0.0:
        raise click.BadParameter(f"{text!r} is no time: write it like 90s, 10m or 1h", context, option)
    return seconds


def main() -> NoReturn:
    """Runs the command line; errors of our own are printed without a traceback, with their exit code."""
    try:
        code = commands.main(standalone_mode=False)
    except click.exceptions.Abort:
        code = _INTERRUPTED
    except click.ClickException as fault:
        fault.show()
        code = fault.exit_code
    except PagewiseError as fault:
        click.echo(f"pagewise: error: {fault}", err=True)
        code = fault.exit_code
    except (Interrupted, KeyboardInterrupt) as fault:
        code = fault.exit_code if isinstance(fault, Interrupted) else _INTERRUPTED
    sys.exit(code if isinstance(code, int) else 0)


_ROUNDS_OF = click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=None,
    help="So many rounds, or at least so many with --until; 3 are the fewest that rank. By default 7 with "
    "--until 3%.",
)
_UNTIL = click.option(
    "--until",
    callback=_share,
    metavar="WIDTH",
    help="Add rounds until every 95 % interval is narrower, as 2%, or the budget ends: docs/statistics.md.",
)
_BUDGET = click.option(
    "--budget",
    callback=_duration,
    default="10m",
    show_default=True,
    metavar="TIME",
    help="The longest that all rounds may take with --until, as 90s, 10m, 1h.",
)
_AA = click.option(
    "--aa",
    type=click.IntRange(1, 10),
    default=1,
    show_default=True,
    help="A/A pairs: how often more each baseline runs in a round.",
)


@click.group(context_settings=_SETTINGS)
@click.version_option(pagewise.__version__, prog_name="pagewise")
def commands() -> None:
    """Compares huge pages, prefetching, store type and compilers on this node, with evidence.

    Exit codes: 0 done; 1 a result is invalid (compare) or something lacks (doctor); 2 wrong usage; 3 not set
    up; 4 the system refused something; 130 interrupted.
    """


@commands.command()
@_ENVIRONMENT
@_MODULES
@click.option("--noise/--no-noise", default=True, help="Measure for two seconds how steady this machine is.")
def doctor(environment: str, modules: Path | None, noise: bool) -> int:
    """Tell what this node has, and the remedy for each lack."""
    from pagewise.doctor import examine, print_findings

    findings = examine(environment, modules, noise)
    print_findings(_console(), findings)
    return _INVALID if any(finding.lacks for finding in findings) else 0


@commands.command("list")
@_ENVIRONMENT
@_MODULES
@click.option(
    "--kernels",
    is_flag=False,
    flag_value="*",
    metavar="[NAMES]",
    help="Kernels alone: all, or by name or glob as in compare.",
)
@click.option(
    "--configurations",
    is_flag=False,
    flag_value="*",
    metavar="[GLOBS]",
    help="Configurations alone: all, or by glob as in compare.",
)
def list_(environment: str, modules: Path | None, kernels: str | None, configurations: str | None) -> None:
    """List the configurations and kernels of an environment."""
    from pagewise.listing import print_configurations, print_kernels

    console, catalog = _console(), _catalog(environment, modules)
    if configurations or not kernels:
        print_configurations(console, catalog, catalog.select_entries(_commas([configurations or "*"])))
    if kernels or not configurations:
        found = catalog.select_kernels(_commas([kernels or "*"])) if catalog.kernels else []
        print_kernels(console, found)


@commands.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@_ENVIRONMENT
@_MODULES
@_PREFETCHERS
@click.argument("module")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    environment: str,
    modules: Path | None,
    prefetchers: Sequence[str],
    module: str,
    command: Sequence[str],
) -> int:
    """Load MODULE and run a program in it: pagewise run MODULE -- pw-schoenauer_triad --sweep working-set.

    MODULE is a name, its end (gcc-12.2.0/thp/hardware-regular), or a glob that fits one. Programs measure
    once, or a curve: over the working set, over another option by values of the program's own (--sweep
    prefetch-distance), or by named ones (--sweep prefetch-distance=4,8,16). pw-<kernel> --help lists the
    options.
    """
    if command[0] == "--":
        command = command[1:]
    if not command:
        raise click.UsageError("name the program after --")
    entries = _catalog(environment, modules).select_entries([module])
    if len(entries) > 1:
        names = "\n    ".join(entry.configuration.module for entry in entries)
        raise SelectionError(f"{module!r} fits several modules:\n    {names}", remedy="name one of them")
    program = entries[0].program(command[0])
    if program is None:
        raise SelectionError(
            f"there is no program {command[0]!r} when this module is loaded",
            where=entries[0].configuration.module,
            remedy="see `pagewise list` for its kernels",
        )
    if prefetchers:
        from pagewise.launch import run_without_prefetchers

        return run_without_prefetchers(_commas(prefetchers), [program, *command[1:]], entries[0].environment)
    os.execve(program, list(command), entries[0].environment)


@commands.command()
@_ENVIRONMENT
@_MODULES
@_KERNELS
@click.option(
    "--configurations",
    multiple=True,
    metavar="GLOBS",
    help="Configurations by glob, as 'gcc-*/thp/*'; several with commas. Baselines are always measured.",
)
@_ROUNDS_OF
@_UNTIL
@_BUDGET
@_AA
@_THREADS
@_RESERVE
@_PAGES
@_SET_THP_SIZES
@_PREFETCHERS
@click.option(
    "--baseline",
    default=BASELINE,
    show_default=True,
    metavar="GLOB",
    help="The configuration compared against.",
)
@click.option("--no-sweep", "sweep", flag_value=False, default=True, help="Leave the curves (sweeps) out.")
@_SEED
@click.option(
    "--name", default=None, metavar="NAME", help="Name in the result's folder. The environment's by default."
)
@_RESULTS
@_LIMIT
def compare(**chosen: Any) -> int:
    """Measure kernels in all configurations, interleaved, and say what is faster.

    Every round runs each distinct configuration once in shuffled order, each compiler's baseline twice (A/A).
    Ctrl-C keeps and reports what was measured. Only --reserve-hugepages, --set-thp-sizes and
    --hardware-prefetchers change settings of the machine, and all put them back.
    """
    from pagewise.comparison import Options, prepare

    console = _console()
    chosen["name"] = chosen["name"] or chosen["environment"]
    if chosen["rounds"] is None:
        chosen |= {"rounds": _ROUNDS, "until": chosen["until"] or _WIDTH}
    return _measured(prepare(Options(**chosen | _lists(chosen)), console, _BEGAN), console)


@commands.command()
@_ENVIRONMENT
@_MODULES
@_KERNELS
@click.option(
    "--configurations",
    multiple=True,
    metavar="GLOBS",
    help="Configurations by glob, as 'gcc-*/thp/*'; several with commas. By default those that differ from "
    "the baseline in compiler and pages.",
)
@click.option(
    "--groups",
    multiple=True,
    metavar="NAMES",
    help="Groups of events, as tlb,cache; several with commas. All by default.",
)
@click.option(
    "--events", metavar="NAME", help="Another event file than that for this CPU, as generic or software."
)
@click.option("--region", metavar="NAME", help="Count in this region of the programs alone, as hydro.")
@click.option(
    "--multiplex", is_flag=True, help="Count all events by turns in one run, by estimate, not a group a run."
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="Rounds; from 3 on ratios have intervals.",
)
@_THREADS
@_RESERVE
@_PAGES
@_SET_THP_SIZES
@_PREFETCHERS
@_SEED
@click.option("--name", default="counters", show_default=True, metavar="NAME", help="In the folder's name.")
@_RESULTS
@_LIMIT
def counters(**chosen: Any) -> int:
    """Count events of kernels by compiler and pages, and say what huge pages and compilers change.

    Each configuration runs once a group of events in each round; docs/counters.md tells what is counted
    where. Writes text, CSV, LaTeX and HTML. Ctrl-C keeps and reports what was counted.
    """
    from pagewise.comparison import Options
    from pagewise.counters.counting import Wanted, prepare

    console = _console()
    wanted = Wanted(
        _commas(chosen.pop("groups")), chosen.pop("events"), chosen.pop("region"), chosen.pop("multiplex")
    )
    options = Options(**chosen | _lists(chosen), baseline=BASELINE, sweep=False)
    return _measured(prepare(options, wanted, console, _BEGAN), console)


@commands.command("run-policies", context_settings={"allow_interspersed_args": False})
@click.option(
    "--policies",
    multiple=True,
    metavar="NAMES",
    help="Page policies, as none,thp,hugetlbfs:1g,reuse+glibc; several with commas. --list tells all.",
)
@click.option(
    "--list", "listing", is_flag=True, help="Tell which policies this program can have, and why not."
)
@click.option(
    "--suite", metavar="NAME", help="A known code with its input, metrics and checks (envs/suites)."
)
@_ENVIRONMENT_OF_SUITES
@_MODULES
@_ROUNDS_OF
@_UNTIL
@_BUDGET
@_AA
@click.option(
    "--threads",
    type=click.IntRange(1, 4096),
    default=None,
    help="Bind it to so many cores and set OpenMP to as many threads. By default nothing is bound or set.",
)
@_RESERVE
@click.option(
    "--pool-memory",
    metavar="SIZE",
    help="How much to reserve, as 4GiB. By default what the baseline's trial run used, and a quarter more.",
)
@click.option(
    "--set-thp-sizes",
    is_flag=True,
    help="Switch the needed sizes of transparent huge pages meanwhile, and put them back (root).",
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
    type=click.FloatRange(min=0.001),
    default=None,
    metavar="SECONDS",
    help="Between looks at its memory. By default as often as costs 1 % of a CPU.",
)
@click.option(
    "--enough-coverage",
    "enough",
    type=click.FloatRange(0.0, 1.0),
    default=0.8,
    show_default=True,
    metavar="SHARE",
    help="The least share of the memory that a policy is for which must be on its pages.",
)
@click.option(
    "--baseline", default="none", show_default=True, metavar="POLICY", help="The policy compared against."
)
@_SEED
@click.option(
    "--name", default=None, metavar="NAME", help="Name in the result's folder. The program's by default."
)
@_RESULTS
@_LIMIT
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def run_policies(**chosen: Any) -> int:
    """Compare a program of yours, unchanged, under page policies: pagewise run-policies -- ./my_app args

    Each round runs it once under each policy in shuffled order, the baseline twice (A/A). A run whose memory
    was not on the pages asked for is shown as not ranked, with the reason. Only --reserve-hugepages and
    --set-thp-sizes change settings of the machine, and both put them back. See docs/run-policies.md.
    """
    from pagewise.own_program.command import prepare_command, print_survey

    console = _console()
    chosen["policies"] = _commas(chosen["policies"])
    if chosen["rounds"] is None:
        chosen |= {"rounds": _ROUNDS, "until": chosen["until"] or _WIDTH}
    if chosen.pop("listing"):
        print_survey(console, chosen)
        return 0
    return _measured(prepare_command(chosen, console, _BEGAN), console)


def _measured(comparison: Any, console: Console) -> int:
    """Measures, shows and writes what was prepared; the exit code."""
    from pagewise.report.terminal import print_summary

    result = comparison.measure()
    faults = [] if comparison.ending is None else [comparison.ending]
    reports, found = _reports(result), None
    try:
        comparison.close()
        found = reports.show(console, result)
        report = reports.write_files(result, found)
        comparison.close()
        console.print(f"Report: {report}", highlight=False, soft_wrap=True)
    except PagewiseError as fault:
        found = found or reports.show(console, result)
        faults.append(fault)
    print_summary(console, result)
    for fault in faults:
        text = (
            "interrupted: the above is what was measured"
            if isinstance(fault, Interrupted)
            else f"error: {fault}"
        )
        click.echo(f"pagewise: {text}", err=True)
    return faults[0].exit_code if faults else _code(reports.is_faulty(found))


def _reports(result: Any) -> Any:
    """The module that shows such a result: `show`, `write_files`, `is_faulty`."""
    if "counters" in result.manifest:
        from pagewise.report import counters as of_counters

        return of_counters
    from pagewise.report import write

    return write


@commands.command()
@_ENVIRONMENT
@_MODULES
@click.option(
    "--rounds", type=click.IntRange(1, 1000), default=None, help="Rounds; 9 by default, 3 with --quick."
)
@click.option("--peers", multiple=True, metavar="NAMES", help="Peers by name; several with commas.")
@click.option(
    "--kernels",
    multiple=True,
    metavar="GLOBS",
    help="Kernels or comparisons by glob, as stream_triad or '*/L1/*'; several with commas.",
)
@click.option("--quick", is_flag=True, help="First-level cache and memory, one core, 3 rounds.")
@click.option(
    "--peer-path",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="A folder with peers' programs, before PATH; PAGEWISE_PEERS (DIR:DIR) does the same.",
)
@_SEED
@_RESULTS
@_LIMIT
def peers(**chosen: Any) -> int:
    """Measure our kernels beside peer benchmarks, alternately, and say whether they reach them.

    Uses the peers that are installed and says which are missing: docs/peers.md tells where they come from.
    Exit code 1 when something could not run as asked; a target that is not met is no fault. Ctrl-C keeps and
    reports what was measured.
    """
    from pagewise.peers.report import print_rows, write_files
    from pagewise.peers.run import Options, prepare

    console = _console()
    names = {name: _commas(chosen.pop(name)) for name in ("peers", "kernels")}
    comparison = prepare(Options(**chosen, **names), console)
    found = comparison.measure()
    # Written first: Ctrl-C may have ended the reader of our output as well.
    write_files(comparison.folder, found, comparison.to_dict())
    print_rows(console, found)
    console.print(f"Result: {comparison.folder / 'peers.md'}", highlight=False, soft_wrap=True)
    for fault in comparison.faults:
        click.echo(f"pagewise: could not run as asked: {fault}", err=True)
    if comparison.ending is None:
        return _INVALID if comparison.faults else 0
    stopped = isinstance(comparison.ending, Interrupted)
    text = "interrupted: the above is what was measured" if stopped else f"error: {comparison.ending}"
    click.echo(f"pagewise: {text}", err=True)
    return comparison.ending.exit_code


@commands.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--geometry",
    default="a64fx",
    show_default=True,
    metavar="NAME|FILE",
    help="The machine that is modelled: a64fx, zen4, or a geometry file of your own (.yaml).",
)
@click.option(
    "--policies",
    multiple=True,
    default=("none,thp",),
    show_default=True,
    metavar="NAMES",
    help="Page policies, the baseline first; several with commas. Assumed ones too: fjmpg (heap, stack and "
    "static data on huge pages, as by Fujitsu's libmpg), huge and base (everything).",
)
@click.option("--compiler", default="gcc", show_default=True, help="Whose build is traced: gcc, llvm.")
@click.option(
    "--build",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="A build folder with traceable programs and the model, in place of one made by a preset.",
)
@click.option(
    "--functions",
    type=click.IntRange(0, 40),
    default=5,
    show_default=True,
    help="How many of the functions that miss the TLB are shown.",
)
@_RESULTS
@_LIMIT
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def model(command: Sequence[str], results: Path, functions: int, **chosen: Any) -> int:
    """Model TLBs and caches without counters: pagewise model KERNEL [ARGUMENTS], or -- PROGRAM [ARGUMENTS].

    The program runs in QEMU's user-mode emulation; its accesses feed a model of another machine's TLBs and
    caches. A kernel or mini-app is built for that, runs small unless arguments say otherwise, and once for
    each page policy. Any other program is named by a path and runs once. Figures are modelled, never
    measured: docs/model.md.
    """
    from datetime import datetime, timezone

    from pagewise.model.report import print_records, write_csv
    from pagewise.model.run import Options, prepare
    from pagewise.model.run import model as run_model
    from pagewise.record import RecordWriter
    from pagewise.result import RECORDS, create_folder

    console = _console()
    chosen["policies"] = _commas(chosen["policies"])
    modelling = prepare(Options(**chosen), command[1:] if command[0] == "--" else command, console)
    records, missing = run_model(modelling, console)
    name = modelling.subject.name
    for policy, fault in missing.items():
        click.echo(f"pagewise: policy {policy} is left out: {fault}", err=True)
    if not records:
        return next(iter(missing.values())).exit_code
    folder = create_folder(results, f"model-{name}", datetime.now(timezone.utc))
    with RecordWriter(folder / RECORDS) as writer:
        for record in records.values():
            writer.append(record)
    print_records(console, name, modelling.geometry, records, functions)
    console.print(f"Result: {write_csv(folder, records)}", highlight=False, soft_wrap=True)
    return 0


@commands.command()
@click.argument("result", type=click.Path(path_type=Path))
def report(result: Path) -> int:
    """Make the tables, CSV files, figures and report.html of a RESULT folder again."""
    from pagewise.report.terminal import print_summary
    from pagewise.result import read_result

    console, read = _console(), read_result(result)
    reports = _reports(read)
    found = reports.show(console, read)
    console.print(f"Report: {reports.write_files(read, found)}", highlight=False, soft_wrap=True)
    print_summary(console, read)
    return _code(reports.is_faulty(found))


def _code(faulty: bool) -> int:
    """1 when a result or its pages were wrong or a run crashed; pages not to be had are no fault."""
    return _INVALID if faulty else 0


def _lists(chosen: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """The options that are lists with commas."""
    return {name: _commas(chosen[name]) for name in ("kernels", "configurations", "pages", "prefetchers")}


def _catalog(environment: str, modules: Path | None) -> Any:
    from pagewise import lmod
    from pagewise.catalog import read_catalog
    from pagewise.paths import module_tree, setup_facts

    return read_catalog(module_tree(environment, modules), lmod.find_init(setup_facts()))


def _commas(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def _console() -> Console:
    """Standard output; where it is no terminal, wide enough for the tables."""
    console = Console()
    return console if console.is_terminal else Console(width=int(os.environ.get("COLUMNS", _PLAIN_WIDTH)))
