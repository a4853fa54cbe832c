"""What several commands take, and how their texts are read."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pagewise.cli.output import PlainConsole
from pagewise.cli.shell import values
from pagewise.core.text import json_text

_MEMORIES = re.compile(r",\s*(?=[a-z])")
_PLAIN_WIDTH = 120
#: Thirty years: what timers can wait, and records can hold.
LONGEST_SECONDS = 1e9
# docs/statistics.md tells what these see.
_ROUNDS, _WIDTH = 7, 0.03


class Number(click.FloatRange):
    """A number in a range; `nan` lies in every range of click's."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """The number. Raises BadParameter."""
        number = super().convert(value, parameter, context)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", parameter, context)
        return number


def share(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """An option's callback: 2% or 0.02 as 0.02."""
    if text is None:
        return None
    try:
        share = float(text.rstrip("% ")) / (100.0 if "%" in text else 1.0)
    except ValueError:
        share = 0.0
    if not 0.0 < share < 1.0:
        raise click.BadParameter(f"{text!r} is no share: write it like 2%", context, option)
    return share


def _duration(context: click.Context, option: click.Parameter, text: str) -> float:
    """Seconds of 90s, 10m, 1.5h or 90."""
    try:
        seconds = float(text.rstrip("smh")) * {"m": 60.0, "h": 3600.0}.get(text[-1:], 1.0)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds <= LONGEST_SECONDS:
        raise click.BadParameter(f"{text!r} is no time: write it like 90s, 10m or 1h", context, option)
    return seconds


DEFAULT_ENVIRONMENT = "default"


def environment_option(default: str | None, text: str) -> Callable[[Any], Any]:
    """The option --env with its default and the end of its help."""
    return click.option(
        "--env",
        "environment",
        default=default,
        metavar="NAME",
        shell_complete=values.one_of(values.environments),
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
    help="Another module tree; PAGEWISE_MODULES does the same.",
)
SEED = click.option(
    "--seed",
    type=click.IntRange(0, (1 << 63) - 1),
    default=1,
    show_default=True,
    help="Of the order of runs and of the bootstrap.",
)
RESULTS = click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    metavar="DIR",
    help="Where the result's folder is made.",
)
LIMIT = click.option(
    "--limit",
    type=Number(0.1, LONGEST_SECONDS),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest a run may take.",
)
END_LEFTOVERS = click.option(
    "--end-leftovers",
    is_flag=True,
    help="End processes that a run leaves behind (default: report them).",
)
PREFETCHERS = click.option(
    "--hardware-prefetchers",
    "prefetchers",
    multiple=True,
    metavar="off|NAMES",
    shell_complete=values.list_of(values.prefetchers),
    help="Switch hardware prefetchers off during the command, all or some by name, then restore them (root): "
    "docs/prefetchers.md.",
)
KERNELS = click.option(
    "--kernels",
    multiple=True,
    metavar="NAMES",
    shell_complete=values.list_of(values.kernels),
    help="Kernels by name or glob, as schoenauer_triad, 'memory/*' or '*'; several with commas. By default "
    "those that `pagewise list` marks.",
)
THREADS = click.option(
    "--threads", type=click.IntRange(1, 4096), default=1, show_default=True, help="Threads, one a core."
)
ORDERS = click.option(
    "--placement",
    "orders",
    multiple=True,
    metavar="compact|scatter",
    shell_complete=values.list_of(values.orders),
    help="Threads near to each other (close) or far apart (spread); both with a comma: docs/placement.md.",
)
SMT = click.option(
    "--smt",
    multiple=True,
    metavar="avoid|use|N",
    help="A thread a core, one on each of its hardware threads, or N; several with commas.",
)
MEMORY = click.option(
    "--memory",
    multiple=True,
    metavar="POLICIES",
    shell_complete=values.list_of(values.memory_policies),
    help="first-touch, local, bind or interleave, with NUMA nodes as bind:0-1; several with commas.",
)
_PLACEMENT = (
    click.option(
        "--threads", type=click.IntRange(1, 4096), default=None, help="Threads, one a core without --smt use."
    ),
    click.option(
        "--cores",
        type=click.IntRange(1, 4096),
        default=None,
        help="In place of --threads: so many cores, with a thread on each, or more by --smt.",
    ),
    ORDERS,
    SMT,
    click.option(
        "--cpus",
        "lists",
        multiple=True,
        metavar="LIST",
        help="These CPUs, as 0-3,8: a thread on each. Given again it is another placement.",
    ),
    MEMORY,
)
RESERVE = click.option(
    "--reserve-hugepages",
    "reserve",
    is_flag=True,
    help="Reserve the pages of the pools during the command, then restore the pools (root).",
)
POLICIES = click.option(
    "--policies",
    multiple=True,
    metavar="POLICIES",
    shell_complete=values.list_of(values.page_sizes),
    help="Further page sizes, as thp:64k,hugetlbfs:1g, for configurations of that kind; several with commas.",
)
SUITE = click.option(
    "--suite",
    metavar="NAME",
    shell_complete=values.one_of(values.suites),
    help="Known code with its input, metrics and checks (envs/suites), as the program.",
)
SET_THP_SIZES = click.option(
    "--set-thp-sizes",
    is_flag=True,
    help="Switch the needed THP sizes to madvise during the command, then restore them (root).",
)
ROUNDS = click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=None,
    help="So many rounds, or at least so many with --until; 3 are the fewest that rank. By default 7 with "
    "--until 3%.",
)
UNTIL = click.option(
    "--until",
    callback=share,
    metavar="WIDTH",
    help="Add rounds until every 95 % interval is narrower, as 2%, or the budget ends: docs/statistics.md.",
)
BUDGET = click.option(
    "--budget",
    callback=_duration,
    default="10m",
    show_default=True,
    metavar="TIME",
    help="The longest that all rounds may take with --until, as 90s, 10m, 1h.",
)
AA = click.option(
    "--aa",
    type=click.IntRange(1, 10),
    default=1,
    show_default=True,
    help="A/A pairs: how often more each baseline runs in a round.",
)
PLAN = click.option(
    "--plan",
    "planning",
    is_flag=True,
    help="Tell what would be run and how long that takes by earlier results; nothing is started.",
)
AT_LEAST = click.option(
    "--at-least",
    type=Number(min=0.0, min_open=True),
    default=3.0,
    show_default=True,
    metavar="PERCENT",
    help="Ignore deviations of nodes below this percentage.",
)
JSON = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object; tables and messages go to standard error. docs/json.md.",
)
STORE = click.option(
    "--store",
    type=click.Path(path_type=Path),
    default=Path("results/pagewise.duckdb"),
    show_default=True,
    metavar="FILE",
    help="The store of collected results.",
)
WAIT = click.option(
    "--wait",
    type=Number(0.0, LONGEST_SECONDS),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for others that write the store.",
)


def split_lists(chosen: dict[str, Any]) -> None:
    """Splits the options of kernels that are lists with commas; their policies are further page sizes."""
    chosen["pages"] = chosen.pop("policies")
    for name in ("kernels", "configurations", "pages", "prefetchers"):
        chosen[name] = split_commas(chosen[name])


def placed(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say on which CPUs and with which memory runs are; `take_where` reads them."""
    for option in reversed(_PLACEMENT):
        command = option(command)
    return command


def take_where(chosen: dict[str, Any]) -> Any:
    """What these options say, taken out of those chosen but for the threads. Raises SelectionError."""
    from pagewise.machine.placement import Where

    # Lists of nodes have commas too.
    memory = tuple(part.strip() for text in chosen.pop("memory") for part in _MEMORIES.split(text))
    orders, smt = split_commas(chosen.pop("orders")), split_commas(chosen.pop("smt"))
    return Where.read(orders, smt, chosen.pop("cores", None), chosen.pop("lists", ()), memory)


def place_threads(chosen: dict[str, Any]) -> None:
    """Reads these options; where nothing says how many threads there are, there is one."""
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
    """One JSON object on standard output."""
    click.echo(json_text(data), nl=False)


def make_console(as_json: bool = False) -> Console:
    """Standard output, or standard error beside JSON; where it is no terminal, wide enough for the tables."""
    console = PlainConsole(stderr=as_json)
    if console.is_terminal:
        return console
    return PlainConsole(stderr=as_json, width=int(os.environ.get("COLUMNS", _PLAIN_WIDTH)))


def set_default_rounds(chosen: dict[str, Any]) -> None:
    """Where no --rounds was given: at least 7, until all intervals are narrow enough."""
    if chosen["rounds"] is None:
        chosen |= {"rounds": _ROUNDS, "until": chosen["until"] or _WIDTH}
