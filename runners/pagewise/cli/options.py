"""Options that several commands take, each declared once, and the commands and groups made of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import rich_click as click

from pagewise.cli.types import (
    Duration,
    Folder,
    Number,
    Percent,
    Prepared,
    split,
    split_nodes,
    whole_numbers,
)
from pagewise.core.text import choose_of
from pagewise.stack.paths import DEFAULT_ENVIRONMENT

#: An option to which a command gives a panel of --help, and changes, as another default.
OptionMaker = Callable[..., Callable[[Any], Any]]

#: The panels of --help by the names that `command` takes; None is the panel of --help itself.
_PANELS = {
    "subject": "What to run",
    "runs": "Rounds and runs",
    "events": "Events",
    "placement": "Placement",
    "settings": "Machine settings, restored afterwards (root)",
    "program": "Your program",
    "nodes": "Nodes and jobs",
    "machine": "This machine",
    "store": "Store",
    "verdicts": "Verdicts",
    "result": "Result and output",
    "options": None,
}


class _Panelled(click.Option):
    """An option for rich-click before 1.9, Spack's newest, which shows a single panel in --help."""

    def __init__(self, *arguments: Any, panel: str | None = None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.panel = panel


#: The variable by which a shell asks for completions.
COMPLETE = "_PAGEWISE_COMPLETE"
# Commands with more options have --help-all.
_MOST_SHOWN = 28
#: rich-click's own class from 1.9 on.
_CLASS: dict[str, Any] = {} if hasattr(click, "RichOption") else {"cls": _Panelled}


#: Options that were replaced, with their new form.
REPLACED = {
    **dict.fromkeys(("-k", "--kernels", "--configurations", "--scale", "--no-sweep"), "for pagewise kernels"),
    "--option": "--vary NAME=VALUES",
    "--setting": "--vary VARIABLE=VALUES",
    "--hardware-prefetchers": "--vary prefetchers=SETTING",
    "--node-state": "--vary node-state=STATES",
    "--clocks": "--vary clocks=SETTINGS",
    "--reserve-hugepages": "--prepare-pages",
    "--set-thp-sizes": "--prepare-pages",
    "--pool-memory": "--prepare-pages 2M:SIZE",
    "--service": "--case FILE: programs and arguments, with service",
    "--load": "--case FILE: load, of service",
    "--ready": "--case FILE: ready, of service",
    "--fill": "--case FILE: fill, of service",
    "--setup": "--case FILE: setup",
    "--input": "--case FILE: inputs",
    "--read": "--case FILE: reads",
    "--exit-code": "--case FILE: exit_codes",
    "--memory-budget": "--case FILE: memory_budget",
    "--placement": "--bind close or --bind spread",
    "--rank-placement": "--bind close or --bind spread",
    "--smt": "--bind smt or --bind fill",
    "--cores": "--threads N, with --bind fill for the hardware threads of N cores",
    "--memory": "--bind with first-touch, first-thread, local, membind or interleave",
}


class Command(click.RichCommand):
    """Explains options that were replaced."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parse the arguments."""
        try:
            return super().parse_args(context, arguments)
        except click.NoSuchOption as fault:
            if fault.option_name in REPLACED:
                context.fail(f"{fault.option_name} is now {REPLACED[fault.option_name]}.")
            raise


class CommandGroup(click.RichGroup):
    """Suggests a command for an unknown one."""

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names."""
        known = self.list_commands(context)
        if arguments[0] not in known and not arguments[0].startswith("-"):
            context.fail(f"There is no command {arguments[0]!r}: {choose_of(arguments[0], known)}.")
        return super().resolve_command(context, arguments)


def command(
    *examples: str,
    cls: type[Command] = Command,
    parent: click.Group | None = None,
    name: str | None = None,
    **panels: Sequence[OptionMaker],
) -> Callable[[Callable[..., Any]], click.RichCommand]:
    """Makes a command of a function: the options of each panel, in their order, and examples.

    parent: the group of the command, if it is not `pagewise`. name: the function's, if not given.
    """
    epilog = "\n\n".join(("Examples:", *examples)) if examples else None

    def make(function: Callable[..., Any]) -> click.RichCommand:
        for panel, options in reversed(panels.items()):
            for option in reversed(options):
                function = option(panel=_PANELS[panel])(function)
        made = click.command(name, cls=cls, epilog=epilog)(function)
        rare = [each for each in made.params if isinstance(each, click.Option) and each.hidden]
        # A completion offers all.
        if len(made.params) > _MOST_SHOWN and COMPLETE not in os.environ:
            made.params.append(_HELP_ALL)
        else:
            _hide(rare, False)
        if parent is not None:
            parent.add_command(made)
        return made

    return make


def option(
    names: str,
    text: str = "",
    *,
    is_list: bool = False,
    rare: bool = False,
    **attributes: Any,
) -> OptionMaker:
    """An option, with attributes of click's.

    names: as "-n --rounds", and the parameter's if it differs: "-o --output results". text: its help.
    is_list: takes several values, with commas or repeated. rare: only --help-all shows it,
    in commands with more than _MOST_SHOWN options.
    """
    if "type" not in attributes and "is_flag" not in attributes and "/" not in names:
        attributes = {"metavar": "NAMES" if is_list else "NAME", **attributes}
    if is_list:
        attributes = {"callback": split, **attributes, "multiple": True}
    return partial(click.option, *names.split(), help=text, hidden=rare, **_CLASS, **attributes)


#: An option that only --help-all shows.
rare_option = partial(option, rare=True)


def flag(names: str, text: str, **attributes: Any) -> OptionMaker:
    """An option without a value."""
    return option(names, text, is_flag=True, **attributes)


def argument(name: str, **attributes: Any) -> Callable[[Any], Any]:
    """Return an argument that is the path of a folder."""
    return click.argument(name, **{"type": Folder(), **attributes})


def _keep(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Keeps a choice that every console of the command depends on."""
    if value:
        context.meta[f"pagewise.{parameter.name}"] = True


@contextmanager
def all_shown(command: click.Command) -> Iterator[None]:
    """Show all options of a command in its help, also rare ones."""
    rare = [each for each in command.params if isinstance(each, click.Option) and each.hidden]
    _hide(rare, False)
    try:
        yield
    finally:
        _hide(rare, True)


def _hide(options: Sequence[click.Option], hidden: bool) -> None:
    for each in options:
        each.hidden = hidden


def _print_all(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        with all_shown(context.command):
            click.echo(context.get_help())
        context.exit()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_all,
    help="Show all options.",
)

# What is run.
ENVIRONMENT = option(
    "-e --env environment",
    "Environment whose modules are used: .pagewise/modules/NAME; without a checkout: those of your Spack.",
    default=DEFAULT_ENVIRONMENT,
    envvar="PAGEWISE_ENV",
    show_envvar=True,
)
#: With a known code as the program there is no one default.
ENVIRONMENT_OR_SUITES = partial(
    ENVIRONMENT,
    default=None,
    help="Environment whose modules are used: .pagewise/modules/NAME "
    f"(default: {DEFAULT_ENVIRONMENT}; with --suite: suites, then PATH).",
)
MODULES = option(
    "--modules",
    "Module tree to use instead of an environment's (also: PAGEWISE_MODULES).",
    type=Folder(),
    rare=True,
)
KERNELS = option(
    "-k --kernels",
    "Kernels by name or glob, as schoenauer_triad, 'memory/*' or '*'; several with commas "
    "(default: those marked in pagewise list kernels).",
    is_list=True,
)
CONFIGURATIONS = option(
    "--configurations",
    "Configurations by glob, as 'gcc-*/thp/*'; several with commas (default: all).",
    metavar="GLOBS",
    is_list=True,
)
POLICIES = option(
    "--policies",
    "Page policies to compare, as none,thp,hugetlbfs:1g,reuse+malloc; several with commas (pagewise list "
    "policies).",
    metavar="POLICIES",
    is_list=True,
)
SCALE = option(
    "--scale",
    "Problem size of the kernels, as their kernel.yaml names it: studies for that of the FLASH studies "
    "(default: a size for any machine).",
    metavar="NAME",
    rare=True,
)
SUITES = option(
    "--suite",
    "Known code to run as the program, with its input, metrics and checks (envs/suites), or a case of it, as "
    "npb:mg.C; several with commas run in one session.",
    is_list=True,
)

CASE = option(
    "--case cases",
    "File that describes the program: its input, metrics and checks, a service and its load; for an example: "
    "pagewise list case. Repeat it to run several in one session.",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE",
)

# Rounds and runs.
ROUNDS = option(
    "-n --rounds",
    "Number of rounds (with --until: the minimum); verdicts need 3 (default: 3, then until each difference "
    "is clear or its interval narrower than 3 %).",
    type=Number(1, 1000),
)
UNTIL = option(
    "--until",
    "Add rounds until every 95 % interval is narrower than this, as 2%, also where a difference is clear, or "
    "the budget is spent (docs/explanation/statistics.md).",
    type=Percent(),
    metavar="WIDTH",
)
BUDGET = option(
    "--budget",
    "Maximum duration of all rounds without --rounds or with --until, as 90s, 10m or 1h.",
    type=Duration(0.1),
    default="10m",
)
METHOD = rare_option("--method", type=click.Choice(("auto", "turns", "runs")), default="auto")
SEED = option(
    "--seed",
    "Seed of the run order and of the bootstrap.",
    type=Number(0, (1 << 63) - 1),
    default=1,
    rare=True,
)
TIMEOUT = option(
    "--timeout limit",
    "Maximum duration of one run, as 90s or 10m; a longer run is ended and excluded.",
    type=Duration(0.1),
    default="5m",
    rare=True,
)
END_LEFTOVERS = flag(
    "--end-leftovers",
    "End processes that a run leaves behind (default: report them).",
    rare=True,
)

# Placement.
THREADS = option(
    "-t --threads",
    "Number of threads, one per core (default: 1; for a program: its own); to compare several: 1,2,4.",
    metavar="N[,N...]",
    is_list=True,
    callback=whole_numbers,
)
PLACED = (
    THREADS,
    option(
        "--ranks",
        "Number of MPI ranks, each with --threads threads; to compare several: 1,2,4 (docs/how-to/ranks.md).",
        metavar="N[,N...]",
        is_list=True,
        callback=whole_numbers,
    ),
    option(
        "--cpus",
        "CPUs, as 0-3,8, one thread each; repeat the option to compare placements.",
        multiple=True,
        metavar="LIST",
    ),
    option(
        "--bind",
        "Threads close together (close) or far apart (spread), several per core (smt, fill), and memory, as "
        "spread+interleave; to compare several: close,spread (docs/explanation/placement.md).",
        metavar="PLACES",
        is_list=True,
        callback=split_nodes,
    ),
)

PREPARE_PAGES = option(
    "--prepare-pages prepare",
    "Reserve huge pages and enable THP sizes as the policies need, during the command (root); or only these: "
    "pools, thp, thp:64k, 2M:512 (pages), 2M:4GiB, 1G:2@0 (on a NUMA node; docs/explanation/pages.md).",
    type=Prepared(),
    is_flag=False,
    flag_value="all",
)

# Results.
OUTPUT = option(
    "-o --output results", "Parent folder of the result's folder.", type=Folder(), default=Path("results")
)
NAME = rare_option("--name", "Name in the result's folder.", default="", show_default=False)
PLAN = flag("--plan planning", "Show what would run, and start nothing.")
VERBOSE = flag(
    "-v --verbose",
    "Print every run with its duration, and at the end all sections of the report, explained.",
    expose_value=False,
    callback=_keep,
)
MESSAGES = (
    flag(
        "-q --quiet",
        "Print results and errors only, no progress and no messages.",
        rare=True,
        expose_value=False,
        callback=_keep,
    ),
    VERBOSE,
)
JSON = flag("--json as_json", "Print one JSON object; tables go to standard error (docs/reference/json.md).")
RESUME = option(
    "--resume",
    "Resume the interrupted RESULT in its folder; the other options and the program are those that began it.",
    type=Folder(exists=True, resolved=True),
    metavar="RESULT",
)
#: The end of the panel `result` of every command that measures.
SESSION_RESULT = (OUTPUT, PLAN, *MESSAGES, JSON, RESUME)
#: The end of the panel `runs` of every command that measures.
SESSION_RUNS = (SEED, TIMEOUT, END_LEFTOVERS)
