"""The command line: `pagewise COMMAND`; the commands are the files of `commands`."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import time
from typing import NoReturn

import click
from click.shell_completion import add_completion_class

import pagewise
from pagewise.cli import commands as folder
from pagewise.errors import Interrupted, PagewiseError
from pagewise.near import choose_of

BEGAN = time.monotonic()
COMPLETE = "_PAGEWISE_COMPLETE"
_INTERRUPTED = 130
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class _Folder(click.Group):
    """The commands of a folder, each imported when it is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(folder.__path__))

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(context):
            return None
        file = importlib.import_module(f"{folder.__name__}.{name.replace('-', '_')}")
        return file.command

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

    Exit codes: 0 done; 1 a result is invalid (compare) or something lacks (doctor); 2 wrong usage; 3 not set
    up; 4 the system refused something; 130 interrupted.
    """


def main() -> NoReturn:
    """Runs the command line; errors of our own are printed without a traceback, with their exit code."""
    if COMPLETE in os.environ:
        from pagewise.cli.shell.complete import SHELLS

        for name, shell in SHELLS.items():
            add_completion_class(shell, name)
    try:
        code = commands.main(prog_name="pagewise", standalone_mode=False)
    except click.exceptions.Abort:
        code = _INTERRUPTED
    except click.ClickException as fault:
        fault.show()
        code = fault.exit_code
    except PagewiseError as fault:
        click.echo(f"pagewise: error: {fault}", err=True)
        code = fault.exit_code
    except (Interrupted, KeyboardInterrupt) as fault:
        code = fault.exit_code if isinstance(fault, Interrupted) else _INTERRUPTED
    sys.exit(code if isinstance(code, int) else 0)
