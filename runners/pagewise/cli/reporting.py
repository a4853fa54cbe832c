"""What commands do with a report: print it, write its files, and end with its exit code."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console, RenderableType

from pagewise.cli.output import is_selected, make_console, print_json
from pagewise.core.errors import Interrupted, PagewiseError

if TYPE_CHECKING:
    from pagewise.analysis.analysis import Drafts
    from pagewise.core.result import Result
    from pagewise.report.model import Report
    from pagewise.session.session import Session

_INVALID = 1


def show(report: Report, as_json: bool) -> None:
    """Prints a report, or its data as JSON."""
    from pagewise.report.render import terminal

    if as_json:
        print_json(report.data)
    else:
        terminal.show(make_console(), report, explained=is_selected("verbose"))


def publish(folder: Path, report: Report, as_json: bool, *, png: bool = False, inside: str = "") -> int:
    """Writes a report, prints it, and with `as_json` its data on standard output; the exit code.

    inside: the folder in the result's that gets the files.
    """
    from pagewise.report.render import terminal
    from pagewise.report.write import write_files

    console = make_console(as_json)
    # Written first: Ctrl-C may have ended the reader of our output as well.
    page = write_files(folder, report, png=png, inside=inside)
    terminal.show(console, report, explained=is_selected("verbose"))
    console.print(f"Report: {page}", soft_wrap=True)
    if as_json:
        print_json(report.data)
    return _exit_code(report)


def publish_session(session: Session, as_json: bool) -> int:
    """Measures what was prepared, and publishes its report even if it ends early; the exit code."""
    from pagewise.report.write import write_files

    console = make_console(as_json)
    session.is_verbose = is_selected("verbose")
    session.verdicts = None if as_json else partial(_verdicts, session.console, {})
    session.begin()
    session.measure()
    faults = [] if session.ending is None else [session.ending]
    report = None
    try:
        session.close()
        report = _show_result(console, session.result)
        page = write_files(session.result.folder, report)
        session.close()
        console.print(f"Report: {page}", soft_wrap=True)
    except PagewiseError as fault:
        report = report or _show_result(console, session.result)
        faults.append(fault)
    print_runs(console, session.result)
    if as_json:
        print_json(report.data)
    for failure in faults:
        stopped = isinstance(failure, Interrupted)
        text = "interrupted: the above is what was measured" if stopped else f"error: {failure}"
        click.echo(f"pagewise: {text}", err=True)
    return faults[0].exit_code if faults else _exit_code(report)


def print_runs(console: Console, result: Result) -> None:
    """Prints in one line how much was measured, and the runner overhead."""
    from pagewise.report.views.session import runs_text

    if text := runs_text(result):
        console.print(text)


def _show_result(console: Console, result: Result) -> Report:
    from pagewise.report.render import terminal
    from pagewise.report.views import report_of

    report = report_of(result)
    terminal.show(console, report, explained=is_selected("verbose"))
    return report


def _verdicts(console: Console, drafts: Drafts, result: Result) -> RenderableType:
    from pagewise.report.render import terminal
    from pagewise.report.views import kernels

    known = kernels.verdicts(result, drafts)
    return terminal.summary(console, *known) if known else ""


def _exit_code(report: Report) -> int:
    """1 when a result or its pages were wrong or a run crashed; unavailable pages are not a fault."""
    return _INVALID if report.faulty else 0
