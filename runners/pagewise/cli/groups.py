"""Groups of commands."""

from __future__ import annotations

import rich_click as click

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
