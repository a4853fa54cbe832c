"""Groups of commands: `pagewise` itself, one file per command, and those of one file."""

from __future__ import annotations

import importlib
import pkgutil

import rich_click as click

from pagewise.cli import commands
from pagewise.core.suggestions import choose_of


class Group(click.RichGroup):
    """Suggests a command for an unknown one."""

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names."""
        known = self.list_commands(context)
        if arguments[0] not in known and not arguments[0].startswith("-"):
            context.fail(f"There is no command {arguments[0]!r}: {choose_of(arguments[0], known)}.")
        return super().resolve_command(context, arguments)


class Root(Group):
    """The files of `commands`, each with a function `command`, imported when the command is used."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names of the commands."""
        return sorted(module.name for module in pkgutil.iter_modules(commands.__path__))

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of this name, None when there is none."""
        if name not in self.list_commands(context):
            return None
        command: click.Command = importlib.import_module(f"{commands.__name__}.{name}").command
        command.name = name
        return command
