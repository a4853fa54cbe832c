"""The user's program after `--`: commands that take it, and their options."""

from __future__ import annotations

import rich_click as click
from click.core import ParameterSource

from pagewise.cli.options import Command, option, rare_option
from pagewise.cli.types import Duration, Percent

#: How the runs of a program are judged.
JUDGED = (
    option(
        "--check checks",
        "Pattern that the output must match; '! pattern' must not match; '| command' reads the "
        "output and must exit with 0.",
        multiple=True,
        metavar="PATTERN|COMMAND",
    ),
    rare_option(
        "--sample-interval interval",
        "Sampling interval of memory, as 0.05s (default: adaptive, at most 1 % of one CPU).",
        type=Duration(0.001),
    ),
    rare_option(
        "--enough-coverage enough",
        "Minimum share of a policy's memory that must be on the requested pages.",
        type=Percent(closed=True),
        default="80%",
    ),
)
#: Parameters for programs only that every command which measures programs has.
OF_PROGRAM = ("suite", "cases", "checks", "interval", "enough")


class TakesProgram(Command):
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
