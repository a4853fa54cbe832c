"""The user's program after `--`: commands that take it, and their options."""

from __future__ import annotations

from pathlib import Path

import rich_click as click
from click.core import ParameterSource

from pagewise.cli.options import Command, option, rare_option
from pagewise.cli.types import Duration, Percent

#: How the runs of a program are made and judged.
JUDGED = (
    option(
        "--check checks",
        "Pattern that the output must match; '! pattern' must not match; '| command' reads the "
        "output and must exit with 0.",
        multiple=True,
        metavar="PATTERN|COMMAND",
    ),
    rare_option(
        "--exit-code ok", "Exit code of a valid run (default: 0).", multiple=True, type=int, metavar="N"
    ),
    option(
        "--input inputs",
        "Input file, copied to a new folder where the program runs (default: run in this folder).",
        multiple=True,
        type=click.Path(path_type=Path, exists=True),
        metavar="FILE",
    ),
    rare_option(
        "--read reads",
        "File that the program writes, read as part of its output.",
        multiple=True,
        metavar="FILE",
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
#: A program that serves, and what loads it.
SERVICE = (
    option(
        "--service",
        "Command of a service to start under each policy, as 'redis-server --port {port}'; {port} is a free "
        "TCP port of each run (docs/how-to/services.md).",
        metavar="COMMAND",
    ),
    option(
        "--load",
        "Command that loads the service, never under the policy: its time is compared, its output has the "
        "metrics.",
        metavar="COMMAND",
    ),
    rare_option(
        "--ready",
        "When the service is ready: tcp:PORT; '| command', which must exit with 0; or a pattern of its "
        "output (default: with its first listening socket).",
        metavar="tcp:PORT|COMMAND|PATTERN",
    ),
    rare_option(
        "--setup",
        "Shell command before the service starts, in the folder of the run; not timed, not under the policy.",
        multiple=True,
        metavar="COMMAND",
    ),
    rare_option(
        "--fill",
        "Shell command when the service is ready, before the load; not timed, not under the policy.",
        multiple=True,
        metavar="COMMAND",
    ),
)
OF_SERVICE = ("load", "ready", "setup", "fill")
#: Parameters for programs only that every command which measures programs has.
OF_PROGRAM = ("suite", "checks", "ok", "inputs", "reads", "interval", "enough")


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
