"""Standard output and standard error, as commands write to them, and how the program ends.

Names and messages of others come without control characters, and output that cannot be written does not end
a measurement: it continues and is saved.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

import pagewise
from pagewise.core.errors import (
    Interrupted,
    PagewiseError,
    RefusedError,
    missing_package,
    refused_by_system,
)
from pagewise.core.text import command_text, json_text, printable

_PLAIN_WIDTH = 120
#: EX_SOFTWARE of sysexits.h: `results diff` and others use 1 for a finding.
INTERNAL_ERROR = 70
_NO_THREAD = "can't start new thread"
_INTERRUPTED = 128 + signal.SIGINT
_SIZE = re.compile("[1-9][0-9]{0,3}")
_REFUSED, _CLOSED = 4, 128 + signal.SIGPIPE


class Output:
    """A standard stream. After the first failure to write, which is kept in `failure`, it drops all text.

    `styled` takes text with the escape sequences of a Console.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.failure: OSError | None = None
        if stream is None:
            # Closed by the program that started this one.
            self.failure = OSError(errno.EBADF, os.strerror(errno.EBADF))
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 lives as long as this
        self._stream = stream
        self.styled = _Styled(self)

    def write(self, text: str) -> int:
        """Writes a text without its control characters."""
        return self.put(printable(text))

    def put(self, text: str) -> int:
        """Writes a text as it is."""
        self._attempt(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Writes what is buffered."""
        self._attempt(self._stream.flush)

    def _attempt(self, action: Callable[..., Any], *arguments: str) -> None:
        if self.failure is not None:
            return
        try:
            action(*arguments)
        except OSError as failure:
            self.failure = failure
            self._drop()

    def _drop(self) -> None:
        """Redirects what the stream still buffers to /dev/null: Python writes it at exit."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the stream's: its encoding, whether it is a terminal."""
        return getattr(self._stream, name)


class _Styled:
    """The stream of a Console."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.write, self.flush = output.put, output.flush

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)


class PlainConsole(Console):
    """A Console whose texts come without control characters; its own styles and movements stay.

    No text is markup, because names of others may hold brackets and colons, and numbers have no colors.
    """

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        file = getattr(stream, "styled", stream)
        super().__init__(file=file, stderr=stderr, quiet=quiet, markup=False, highlight=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed, piece by piece."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text), piece.style)


@contextmanager
def standard_streams() -> Iterator[Callable[[int], int]]:
    """Standard output and error are Outputs in the block; yields a function that returns the final exit code.

    0 becomes 141 when the reader of standard output went away, as in shells, and 4 when it could not be
    written for another reason, which is reported.
    """
    _open_closed_descriptors()
    before = sys.stdout, sys.stderr
    for stream in before:
        if hasattr(stream, "reconfigure"):
            # Not every terminal supports every character.
            stream.reconfigure(errors="replace")
    output, messages = Output(sys.stdout), Output(sys.stderr)
    sys.stdout, sys.stderr = output, messages

    def exit_code(code: int) -> int:
        output.flush()
        if isinstance(output.failure, BrokenPipeError):
            code = code or _CLOSED
        elif output.failure is not None:
            click.echo(
                f"pagewise: error: cannot write to standard output: {output.failure.strerror}\n"
                "  remedy: free some space or name another file; everything measured is saved",
                err=True,
            )
            code = code or _REFUSED
        messages.flush()
        return code

    try:
        yield exit_code
    finally:
        sys.stdout, sys.stderr = before


def _open_closed_descriptors() -> None:
    """A file that is opened later must not get the number of a standard stream."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def make_console(as_json: bool = False) -> Console:
    """The console of results: standard output, or standard error if JSON is printed."""
    return _console(stderr=as_json, quiet=as_json and is_selected("quiet"))


def make_messages() -> Console:
    """The console of progress and messages: standard error, silent with --quiet."""
    return _console(stderr=True, quiet=is_selected("quiet"))


def is_selected(name: str) -> bool:
    """Whether a flag that applies to all commands, such as `verbose`, was given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(f"pagewise.{name}"))


def _console(*, stderr: bool, quiet: bool) -> Console:
    console = PlainConsole(stderr=stderr, quiet=quiet)
    if not console.is_terminal:
        # Wide enough for the tables.
        console.width = int(os.environ.get("COLUMNS", _PLAIN_WIDTH))
    return console


def print_json(data: Any) -> None:
    """One JSON object on standard output, from typed data."""
    from pagewise.report.render import json

    click.echo(json_text(json.render(data)), nl=False)


def print_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints the rows; where standard output is not a terminal, one line per row."""
    from pagewise.report.model import Column, Table
    from pagewise.report.render.terminal import show_table

    if not names:
        click.echo("done")
        return
    console = make_console()
    columns = []
    for place, name in enumerate(names):
        numbers = bool(rows) and all(isinstance(row[place], int | float | None) for row in rows)
        # Programs read files and pipes by line.
        wrap = console.is_terminal and not numbers
        columns.append(Column(name, name, "plain" if numbers else "text", wrap=wrap))
    show_table(console, Table("", tuple(columns), tuple(map(tuple, rows))))
    if not rows:
        click.echo("no rows", err=True)


def report_ending(fault: BaseException) -> int:
    """Prints what ended the program to standard error; the exit code."""
    if isinstance(fault, Interrupted):
        return fault.exit_code
    if isinstance(fault, (KeyboardInterrupt, click.exceptions.Abort)):
        return _INTERRUPTED
    fault = missing_package(fault) or _refusal(fault) or fault
    if isinstance(fault, click.ClickException):
        fault.show()
    elif isinstance(fault, PagewiseError):
        click.echo(f"pagewise: error: {fault}", err=True)
    else:
        click.echo(_describe_internal(fault), err=True)
    if isinstance(fault, (click.ClickException, PagewiseError)):
        return fault.exit_code
    return INTERNAL_ERROR


def _refusal(fault: BaseException) -> PagewiseError | None:
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
