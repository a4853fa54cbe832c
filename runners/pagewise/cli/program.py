"""Commands that take the user's program after `--`."""

from __future__ import annotations

import rich_click as click
from click.core import ParameterSource


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
