"""The command line: `pagewise COMMAND`; the commands are the files of `commands`."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import time
from typing import NoReturn

import click
from click.shell_completion import add_completion_class, shell_complete

import pagewise
from pagewise.cli import commands as folder
from pagewise.cli.ending import ignore_bad_sizes, report_ending
from pagewise.cli.output import standard_streams
from pagewise.core.errors import Interrupted
from pagewise.core.suggestions import choose_of

BEGAN = time.monotonic()
COMPLETE = "_PAGEWISE_COMPLETE"
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class _Folder(click.Group):
    """The commands of a folder, each imported when it is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(folder.__path__))

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(context):
            return None
        module = importlib.import_module(f"{folder.__name__}.{name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named first; of one that is not known, what may have been meant."""
        known = self.list_commands(context)
        if arguments[0] not in known and not arguments[0].startswith("-"):
            context.fail(f"There is no command {arguments[0]!r}: {choose_of(arguments[0], known)}.")
        return super().resolve_command(context, arguments)


@click.group(cls=_Folder, context_settings=_SETTINGS)
@click.version_option(pagewise.__version__, prog_name="pagewise")
def commands() -> None:
    """Compares huge pages, prefetching, store type and compilers on this node, with evidence.

    Exit codes: 0 done; 1 a negative finding: an invalid result (compare), a missing prerequisite (doctor), a
    regression (diff); 2 wrong usage; 3 not set up; 4 refused by the system; 70 an error of pagewise itself;
    130 interrupted (128 + the signal's number).
    """


def main() -> NoReturn:
    """Runs the command line. However it ends, the exit code is one of those above."""
    with standard_streams() as ended:
        try:
            code = _run()
        except (Exception, Interrupted, KeyboardInterrupt) as fault:
            code = report_ending(fault)
        code = ended(code)
    sys.exit(code)


def _run() -> int:
    """Runs the command that is named; its exit code."""
    ignore_bad_sizes(os.environ)
    if asked := os.environ.get(COMPLETE):
        from pagewise.cli.shell.complete import SHELLS

        for name, shell in SHELLS.items():
            add_completion_class(shell, name)
        return shell_complete(commands, {}, "pagewise", COMPLETE, asked)
    # Instead of commands.main(), which ends with 1 when nobody reads the output.
    try:
        with commands.make_context("pagewise", sys.argv[1:]) as context:
            code = commands.invoke(context)
    except click.exceptions.Exit as done:
        code = done.exit_code
    return code if isinstance(code, int) else 0
