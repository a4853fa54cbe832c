"""A group of commands that is a package: one file per command, imported when the command is used."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import rich_click as click

from pagewise.core.suggestions import choose_of


class Folder(click.RichGroup):
    """The commands of a package: the file `show.py` with a function `command` is the command `show`."""

    def __init__(self, *arguments: Any, package: str, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.package = package

    def list_commands(self, context: click.Context) -> list[str]:
        """The names of the commands."""
        path = importlib.import_module(self.package).__path__
        return sorted(module.name for module in pkgutil.iter_modules(path))

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of this name, None when there is none."""
        if name not in self.list_commands(context):
            return None
        command: click.Command = importlib.import_module(f"{self.package}.{name}").command
        command.name = name
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names. Suggests a name for an unknown one."""
        known = self.list_commands(context)
        if arguments[0] not in known and not arguments[0].startswith("-"):
            context.fail(f"There is no command {arguments[0]!r}: {choose_of(arguments[0], known)}.")
        return super().resolve_command(context, arguments)
