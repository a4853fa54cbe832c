"""The user's program after `--`: commands that take it, and their options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import rich_click as click
from click.core import ParameterSource

from pagewise.cli.options import option
from pagewise.cli.shell import values
from pagewise.cli.types import Duration, Percent
from pagewise.stack.paths import DEFAULT_ENVIRONMENT

POLICIES = option(
    "--policies",
    "Page policies; several with commas. For a program: the policies to compare, as "
    "none,thp,hugetlbfs:1g,reuse+glibc (pagewise list policies). For kernels: further page sizes, as "
    "thp:64k,hugetlbfs:1g, for each configuration of that kind.",
    metavar="POLICIES",
    list_of=values.policies,
)
POOL_MEMORY = option(
    "--pool-memory",
    "Memory to reserve for a program, as 4GiB (default: 1.25 times what the baseline's trial run used).",
    metavar="SIZE",
)
#: How the runs of a program are made and judged.
JUDGED = (
    option(
        "--check checks",
        "Pattern that the output must match; '! pattern' must not match; '| command' reads the "
        "output and must exit with 0.",
        multiple=True,
        metavar="PATTERN|COMMAND",
    ),
    option("--exit-code ok", "Exit code of a valid run (default: 0).", multiple=True, type=int, metavar="N"),
    option(
        "--input inputs",
        "Input file, copied to a new folder where the program runs (default: run in this folder).",
        multiple=True,
        type=click.Path(path_type=Path, exists=True),
        metavar="FILE",
    ),
    option(
        "--read reads",
        "File that the program writes, read as part of its output.",
        multiple=True,
        metavar="FILE",
    ),
    option(
        "--sample-interval interval",
        "Memory sampling interval, as 0.05s (default: adaptive, at most 1 % of one CPU).",
        type=Duration(0.001),
    ),
    option(
        "--enough-coverage enough",
        "Minimum share of a policy's memory that must be on the requested pages.",
        type=Percent(closed=True),
        default="80%",
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
            chosen["environment"] = DEFAULT_ENVIRONMENT
        programs = f"programs: {self.name} -- PROGRAM or {self.name} --suite"
        subject, refused = ("kernels only", self.of_kernels) if is_program else (programs, self.of_program)
        for parameter in self.params if not context.resilient_parsing else ():
            given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
            if given and parameter.name in refused:
                context.fail(f"{parameter.opts[0]} is for {subject}.")
        return extra


def has_program(chosen: Mapping[str, Any]) -> bool:
    """Whether the subject is a program, not kernels."""
    return bool(chosen["command"] or chosen["suite"])
