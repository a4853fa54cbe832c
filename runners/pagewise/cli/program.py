"""Commands that take the user's program after `--`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import rich_click as click
from click.core import ParameterSource

from pagewise.cli import options as opt
from pagewise.cli.shell import values
from pagewise.cli.types import Duration, Percent

POLICIES = click.option(
    "--policies",
    multiple=True,
    metavar="POLICIES",
    shell_complete=values.list_of(values.policies),
    panel=opt.SUBJECT,
    help="Page policies; several with commas. Of a program: the policies to compare, as "
    "none,thp,hugetlbfs:1g,reuse+glibc (pagewise list policies). Of kernels: further page sizes, as "
    "thp:64k,hugetlbfs:1g, for each configuration of that kind.",
)
POOL_MEMORY = click.option(
    "--pool-memory",
    metavar="SIZE",
    panel=opt.SETTINGS,
    help="Memory to reserve for a program, as 4GiB (default: 1.25 times what the baseline's trial run used).",
)
_JUDGED = (
    click.option(
        "--check",
        "checks",
        multiple=True,
        metavar="PATTERN|COMMAND",
        panel=opt.PROGRAM,
        help="Pattern that the output must match; '! pattern' must not match; '| command' reads the output "
        "and must exit with 0.",
    ),
    click.option(
        "--exit-code",
        "ok",
        multiple=True,
        type=int,
        metavar="N",
        panel=opt.PROGRAM,
        help="Exit code of a valid run (default: 0).",
    ),
    click.option(
        "--input",
        "inputs",
        multiple=True,
        type=click.Path(path_type=Path, exists=True),
        metavar="FILE",
        panel=opt.PROGRAM,
        help="Input file, copied to a new folder in which the program runs (default: run in this folder).",
    ),
    click.option(
        "--read",
        "reads",
        multiple=True,
        metavar="FILE",
        panel=opt.PROGRAM,
        help="File that the program writes, read as part of its output.",
    ),
    click.option(
        "--sample-interval",
        "interval",
        type=Duration(0.001),
        default=None,
        metavar="TIME",
        panel=opt.PROGRAM,
        help="Memory sampling interval, as 0.05s (default: adaptive, at most 1 % of one CPU).",
    ),
    click.option(
        "--enough-coverage",
        "enough",
        type=Percent(closed=True),
        default="80%",
        show_default=True,
        metavar="PERCENT",
        panel=opt.PROGRAM,
        help="Minimum share of a policy's memory that must be on the pages asked for.",
    ),
)
#: Parameters for programs only that every command which measures programs has.
OF_PROGRAM = ("suite", "checks", "ok", "inputs", "reads", "interval", "enough", "pool_memory")


class TakesProgram(click.RichCommand):
    """A command with `-- PROGRAM ARGS`: the parameter `command` is the program with its arguments, or ()."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parses the options before `--`. An empty program is wrong usage."""
        place = arguments.index("--") if "--" in arguments else len(arguments)
        options, program = arguments[:place], tuple(arguments[place + 1 :])
        context.allow_extra_args = True
        extra = super().parse_args(context, options)
        if not context.resilient_parsing:
            if extra:
                hint = "name kernels with --kernels, and a program after --"
                context.fail(f"Unexpected argument {extra[0]!r}: {hint}.")
            if place < len(arguments) and not program:
                context.fail("There is no program after --.")
        context.params["command"] = program
        source = ParameterSource.COMMANDLINE if program else ParameterSource.DEFAULT
        context.set_parameter_source("command", source)
        return extra

    def collect_usage_pieces(self, context: click.Context) -> list[str]:
        """The words of the usage line."""
        return [*super().collect_usage_pieces(context), "[-- PROGRAM ARGS]"]


class KernelsOrProgram(TakesProgram):
    """Refuses options that the subject, kernels or a program, does not have."""

    of_kernels: ClassVar[tuple[str, ...]] = ()
    of_program: ClassVar[tuple[str, ...]] = OF_PROGRAM

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parses the options, and chooses the environment of kernels."""
        extra = super().parse_args(context, arguments)
        chosen = context.params
        is_program = has_program(chosen)
        if not is_program and chosen["environment"] is None:
            chosen["environment"] = opt.DEFAULT_ENVIRONMENT
        for parameter in self.params if not context.resilient_parsing else ():
            given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
            if given and parameter.name in (self.of_kernels if is_program else self.of_program):
                subject = (
                    "kernels only"
                    if is_program
                    else f"programs: {self.name} -- PROGRAM or {self.name} --suite"
                )
                context.fail(f"{parameter.opts[0]} is for {subject}.")
        return extra


def judged(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose how a program's runs are made and judged."""
    for option in reversed(_JUDGED):
        command = option(command)
    return command


def has_program(chosen: Mapping[str, Any]) -> bool:
    """Whether the subject is a program, not kernels."""
    return bool(chosen["command"] or chosen["suite"])


def read_program(chosen: dict[str, Any]) -> None:
    """Reads the options of a program that are lists or places. Raises SelectionError."""
    chosen["policies"] = opt.split_commas(chosen["policies"])
    chosen["where"] = opt.take_where(chosen)
