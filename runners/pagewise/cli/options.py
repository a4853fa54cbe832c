"""What several commands take, and how their texts are read."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rich_click as click
from rich.console import Console

from pagewise.cli.output import PlainConsole
from pagewise.cli.shell import values
from pagewise.cli.types import Duration, Percent
from pagewise.core.text import json_text

_MEMORIES = re.compile(r",\s*(?=[a-z])")
_PLAIN_WIDTH = 120
# docs/statistics.md: what these detect.
_ROUNDS, _WIDTH = 7, 0.03


#: Groups of options in --help.
SUBJECT, PROGRAM, RUNS, PLACEMENT = "What to run", "A program of yours", "Rounds and runs", "Placement"
SETTINGS, RESULT = "Machine settings, restored afterwards (root)", "Result and output"
DEFAULT_ENVIRONMENT = "default"


def environment_option(default: str | None, text: str) -> Callable[[Any], Any]:
    """The option --env with its default and the end of its help."""
    return click.option(
        "-e",
        "--env",
        "environment",
        default=default,
        envvar="PAGEWISE_ENV",
        show_envvar=True,
        metavar="NAME",
        shell_complete=values.one_of(values.environments),
        panel=SUBJECT,
        help=f"Environment whose modules are used, .pagewise/modules/NAME (default: {text}).",
    )


ENVIRONMENT = environment_option(DEFAULT_ENVIRONMENT, DEFAULT_ENVIRONMENT)
#: With a known code as the program there is no one default.
ENVIRONMENT_OR_SUITES = environment_option(
    None, f"{DEFAULT_ENVIRONMENT}; with --suite: suites, suites-system, then PATH"
)
MODULES = click.option(
    "--modules",
    type=click.Path(path_type=Path),
    metavar="DIR",
    panel=SUBJECT,
    help="Module tree, instead of that of an environment (also: PAGEWISE_MODULES).",
)
SEED = click.option(
    "--seed",
    type=click.IntRange(0, (1 << 63) - 1),
    metavar="N",
    default=1,
    show_default=True,
    panel=RUNS,
    help="Seed of the order of runs and of the bootstrap.",
)
OUTPUT = click.option(
    "-o",
    "--output",
    "results",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    metavar="DIR",
    panel=RESULT,
    help="Parent folder of the result's folder.",
)
TIMEOUT = click.option(
    "--timeout",
    "limit",
    type=Duration(0.1),
    default="5m",
    show_default=True,
    metavar="TIME",
    panel=RUNS,
    help="Maximum duration of one run, as 90s or 10m; a longer run is ended and excluded.",
)
END_LEFTOVERS = click.option(
    "--end-leftovers",
    is_flag=True,
    panel=RUNS,
    help="End processes that a run leaves behind (default: report them).",
)
PREFETCHERS = click.option(
    "--hardware-prefetchers",
    "prefetchers",
    multiple=True,
    metavar="off|NAMES",
    shell_complete=values.list_of(values.prefetchers),
    panel=SETTINGS,
    help="Switch hardware prefetchers off, all or by name, during the command, then restore them (root; "
    "docs/prefetchers.md).",
)
KERNELS = click.option(
    "-k",
    "--kernels",
    multiple=True,
    metavar="NAMES",
    shell_complete=values.list_of(values.kernels),
    panel=SUBJECT,
    help="Kernels by name or glob, as schoenauer_triad, 'memory/*' or '*'; several with commas (default: "
    "those marked in pagewise list kernels).",
)
THREADS = click.option(
    "-t",
    "--threads",
    type=click.IntRange(1, 4096),
    metavar="N",
    default=1,
    show_default=True,
    panel=PLACEMENT,
    help="Number of threads, one per core.",
)
ORDERS = click.option(
    "--placement",
    "orders",
    multiple=True,
    metavar="compact|scatter",
    shell_complete=values.list_of(values.orders),
    panel=PLACEMENT,
    help="Place threads close together, or spread over caches and sockets; both with a comma "
    "(docs/placement.md).",
)
SMT = click.option(
    "--smt",
    multiple=True,
    metavar="avoid|use|N",
    panel=PLACEMENT,
    help="Threads per core: one, one per hardware thread, or N; several with commas.",
)
MEMORY = click.option(
    "--memory",
    multiple=True,
    metavar="POLICIES",
    shell_complete=values.list_of(values.memory_policies),
    panel=PLACEMENT,
    help="Memory policy: first-touch, local, bind or interleave, with NUMA nodes as bind:0-1; several with "
    "commas.",
)
_PLACEMENT = (
    click.option(
        "-t",
        "--threads",
        type=click.IntRange(1, 4096),
        metavar="N",
        default=None,
        panel=PLACEMENT,
        help="Number of threads, one per core unless --smt is given (default: 1; of a program: its own).",
    ),
    click.option(
        "--cores",
        type=click.IntRange(1, 4096),
        metavar="N",
        default=None,
        panel=PLACEMENT,
        help="Number of cores, with one thread each, or more with --smt; instead of --threads.",
    ),
    ORDERS,
    SMT,
    click.option(
        "--cpus",
        "lists",
        multiple=True,
        metavar="LIST",
        panel=PLACEMENT,
        help="CPUs, as 0-3,8, with one thread each; repeat the option to compare placements.",
    ),
    MEMORY,
)
RESERVE = click.option(
    "--reserve-hugepages",
    "reserve",
    is_flag=True,
    panel=SETTINGS,
    help="Reserve huge pages in the hugetlb pools during the command, then restore the pools (root).",
)
SUITE = click.option(
    "--suite",
    metavar="NAME",
    shell_complete=values.one_of(values.suites),
    panel=SUBJECT,
    help="Known code with its input, metrics and checks (envs/suites), as the program.",
)
SET_THP_SIZES = click.option(
    "--set-thp-sizes",
    is_flag=True,
    panel=SETTINGS,
    help="Enable the needed THP sizes during the command, then restore them (root).",
)
ROUNDS = click.option(
    "-n",
    "--rounds",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=None,
    panel=RUNS,
    help="Number of rounds, with --until the minimum; verdicts need 3 (default: 7 with --until 3%).",
)
UNTIL = click.option(
    "--until",
    type=Percent(),
    metavar="WIDTH",
    panel=RUNS,
    help="Add rounds until every 95 % interval is narrower than this, as 2%, or the budget is spent "
    "(docs/statistics.md).",
)
BUDGET = click.option(
    "--budget",
    type=Duration(0.1),
    default="10m",
    show_default=True,
    metavar="TIME",
    panel=RUNS,
    help="Maximum duration of all rounds with --until, as 90s, 10m or 1h.",
)
AA = click.option(
    "--aa",
    type=click.IntRange(1, 10),
    metavar="N",
    default=1,
    show_default=True,
    panel=RUNS,
    help="Number of additional runs of each baseline per round (A/A).",
)
PLAN = click.option(
    "--plan",
    "planning",
    is_flag=True,
    panel=RESULT,
    help="Show what would run, and how long it takes according to earlier results; start nothing.",
)
AT_LEAST = click.option(
    "--at-least",
    type=Percent(),
    default="3%",
    show_default=True,
    metavar="PERCENT",
    help="Ignore deviations of cluster nodes below this percentage.",
)


def _choose(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Keeps a choice that every console of the command depends on."""
    if value:
        context.meta[f"pagewise.{parameter.name}"] = True


_MESSAGES = (
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=_choose,
        panel=RESULT,
        help="Print results and errors only, no progress and no messages.",
    ),
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=_choose,
        panel=RESULT,
        help="Print every run with its duration.",
    ),
)
JSON = click.option(
    "--json",
    "as_json",
    is_flag=True,
    panel=RESULT,
    help="Print one JSON object; tables go to standard error (docs/json.md).",
)
STORE = click.option(
    "--store",
    type=click.Path(path_type=Path),
    default=Path("results/pagewise.duckdb"),
    show_default=True,
    metavar="FILE",
    help="Store of collected results.",
)
WAIT = click.option(
    "--wait",
    type=Duration(),
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Maximum time to wait for another writer of the store.",
)


def examples(*lines: str) -> str:
    """The end of a command's help: one paragraph per line, which rich-click prints without gaps."""
    return "\n\n".join(("Examples:", *lines))


def split_lists(chosen: dict[str, Any]) -> None:
    """Splits the options of kernels that are lists with commas; their policies are further page sizes."""
    chosen["pages"] = chosen.pop("policies")
    for name in ("kernels", "configurations", "pages", "prefetchers"):
        chosen[name] = split_commas(chosen[name])


def talkative(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose how much is printed beside results; `make_messages` reads them."""
    for option in reversed(_MESSAGES):
        command = option(command)
    return command


def placed(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose the CPUs and the memory of runs; `take_where` reads them."""
    for option in reversed(_PLACEMENT):
        command = option(command)
    return command


def take_where(chosen: dict[str, Any]) -> Any:
    """The placement; its options except --threads are removed from `chosen`. Raises SelectionError."""
    from pagewise.machine.placement import Where

    # Lists of nodes have commas too.
    memory = tuple(part.strip() for text in chosen.pop("memory") for part in _MEMORIES.split(text))
    orders, smt = split_commas(chosen.pop("orders")), split_commas(chosen.pop("smt"))
    return Where.read(orders, smt, chosen.pop("cores", None), chosen.pop("lists", ()), memory)


def place_threads(chosen: dict[str, Any]) -> None:
    """Reads these options; without a number of threads or cores, one thread runs."""
    chosen["where"] = take_where(chosen)
    if chosen["threads"] is None and not chosen["where"].counts:
        chosen["threads"] = 1


def find_catalog(environment: str, modules: Path | None) -> Any:
    """The catalog of an environment, or of another module tree."""
    from pagewise.stack import lmod
    from pagewise.stack.catalog import read_catalog
    from pagewise.stack.paths import module_tree
    from pagewise.stack.setup import setup_facts

    return read_catalog(module_tree(environment, modules), lmod.find_init(setup_facts()))


def split_commas(texts: Sequence[str]) -> tuple[str, ...]:
    """The parts of texts with commas."""
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def print_json(data: Any) -> None:
    """One JSON object on standard output, from typed data."""
    from pagewise.report.render import json

    click.echo(json_text(json.render(data)), nl=False)


def make_console(as_json: bool = False) -> Console:
    """The console of results: standard output, or beside JSON standard error."""
    return _console(stderr=as_json, quiet=as_json and _is_chosen("quiet"))


def make_messages() -> Console:
    """The console of progress and messages: standard error, silent with --quiet.

    With --verbose what the session logs, every run, is printed there until the command ends.
    """
    console = _console(stderr=True, quiet=_is_chosen("quiet"))
    context = click.get_current_context(silent=True)
    if context is not None and _is_chosen("verbose"):
        handler, logger = _Messages(console), logging.getLogger("pagewise")
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        context.call_on_close(lambda: logger.removeHandler(handler))
    return console


class _Messages(logging.Handler):
    """Prints log records on a console, above the progress bar."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(record.getMessage(), highlight=False, soft_wrap=True)


def _is_chosen(name: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(f"pagewise.{name}"))


def _console(*, stderr: bool, quiet: bool) -> Console:
    console = PlainConsole(stderr=stderr, quiet=quiet)
    if not console.is_terminal:
        # Wide enough for the tables.
        console.width = int(os.environ.get("COLUMNS", _PLAIN_WIDTH))
    return console


def set_default_rounds(chosen: dict[str, Any]) -> None:
    """Where no --rounds was given: at least 7, until all intervals are narrow enough."""
    if chosen["rounds"] is None:
        chosen |= {"rounds": _ROUNDS, "until": chosen["until"] or _WIDTH}
