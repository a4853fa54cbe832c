"""The command line: `pagewise COMMAND`; the commands are the files of `commands`."""

from __future__ import annotations

import dataclasses
import importlib
import os
import pkgutil
import sys
import time
from typing import NoReturn

import rich_click as click
from click.exceptions import Exit
from click.shell_completion import shell_complete

import pagewise
from pagewise.cli import commands
from pagewise.cli import options as opt
from pagewise.cli.output import ignore_bad_sizes, report_ending, standard_streams
from pagewise.core.errors import Interrupted

BEGAN = time.monotonic()
# Without color: text of others, as in a default, may hold control characters.
_HELP = {
    "theme": "default-slim",
    "text_markup": None,
    "color_system": None,
    "max_width": 110,
    "padding_helptext_first_line": (0, 0, 1, 0),
    "options_table_help_sections": ["help", "required", "envvar", "default"],
    "command_groups": {
        "pagewise": [
            {"name": "Measure", "commands": ["compare", "kernels", "counters", "simulate", "where"]},
            {"name": "Results", "commands": ["report", "results", "cluster", "export"]},
            {"name": "This machine", "commands": ["doctor", "list", "run", "exec", "site"]},
        ]
    },
}
# rich-click before 1.9 (Spack's newest) has fewer settings of the look of --help.
_KNOWN = {field.name for field in dataclasses.fields(click.RichHelpConfiguration)}
_SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 110,
    "show_default": True,
    "rich_help_config": {name: value for name, value in _HELP.items() if name in _KNOWN},
}


class Root(opt.CommandGroup):
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


@click.group(cls=Root, context_settings=_SETTINGS)
@click.version_option(pagewise.__version__, prog_name="pagewise")
def root() -> None:
    """Compare what huge pages, prefetching, store types and compilers do on this node, with evidence.

    Exit codes: 0 done; 1 a negative finding: an invalid result (compare), a missing prerequisite (doctor), a
    regression (results diff); 2 wrong usage; 3 not set up; 4 refused by the system; 70 internal error; 130
    interrupted (128 + the signal's number).
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
    if instruction := os.environ.get(opt.COMPLETE):
        return shell_complete(root, {}, "pagewise", opt.COMPLETE, instruction)
    # Instead of root.main(), which ends with 1 when nobody reads the output.
    try:
        with root.make_context("pagewise", sys.argv[1:]) as context:
            code = root.invoke(context)
    except Exit as done:
        code = done.exit_code
    return code if isinstance(code, int) else 0
