"""How the program ends when something goes wrong: what it prints, and its exit code."""

from __future__ import annotations

import errno
import re
import signal
import sys
import traceback
from collections.abc import MutableMapping

import click

import pagewise
from pagewise.core.errors import (
    Interrupted,
    PagewiseError,
    RefusedError,
    missing_package,
    refused_by_system,
)
from pagewise.core.text import command_text

#: EX_SOFTWARE of sysexits.h: `results diff` and others use 1 for a finding.
INTERNAL_ERROR = 70
_NO_THREAD = "can't start new thread"
_INTERRUPTED = 128 + signal.SIGINT
_SIZE = re.compile("[1-9][0-9]{0,3}")


def report_ending(fault: BaseException) -> int:
    """Prints what ended the program to standard error; the exit code."""
    if isinstance(fault, Interrupted):
        return fault.exit_code
    if isinstance(fault, (KeyboardInterrupt, click.exceptions.Abort)):
        return _INTERRUPTED
    fault = missing_package(fault) or _refused(fault) or fault
    if isinstance(fault, click.ClickException):
        fault.show()
    elif isinstance(fault, PagewiseError):
        click.echo(f"pagewise: error: {fault}", err=True)
    else:
        click.echo(_describe_internal(fault), err=True)
    if isinstance(fault, (click.ClickException, PagewiseError)):
        return fault.exit_code
    return INTERNAL_ERROR


def _refused(fault: BaseException) -> PagewiseError | None:
    """The error of a file or folder that this user cannot access, or whose name is impossible; of a limit."""
    if isinstance(fault, MemoryError):
        return RefusedError(
            "there is not enough memory, or a limit allows no more",
            where="ulimit -v, or the job's memory",
            remedy="allow more memory, or name fewer results",
        )
    if isinstance(fault, RuntimeError) and str(fault) == _NO_THREAD:
        fault = OSError(errno.EAGAIN, _NO_THREAD)
    if not isinstance(fault, OSError) or isinstance(fault, BrokenPipeError):
        return None
    return refused_by_system(fault)


def ignore_bad_sizes(environ: MutableMapping[str, str]) -> None:
    """Removes COLUMNS and LINES if they are not usable numbers: libraries that print tables use them."""
    for name in ("COLUMNS", "LINES"):
        if not _SIZE.fullmatch(environ.get(name, "")):
            environ.pop(name, None)


def _describe_internal(fault: BaseException) -> str:
    """The traceback, and a request to report it."""
    command = command_text(["pagewise", *sys.argv[1:]])
    version = f"pagewise {pagewise.__version__}, Python {sys.version.split()[0]}"
    lines = [
        "".join(traceback.format_exception(fault)).rstrip(),
        f"pagewise: internal error: {type(fault).__name__}: {fault}",
        f"  where:  {command} ({version})",
        "  remedy: report it to the maintainers of pagewise, with all lines above",
    ]
    return "\n".join(lines)
