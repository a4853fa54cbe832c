"""What commands that measure share: measuring, showing, writing, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pagewise.cli.options import make_console, print_json
from pagewise.core.errors import Interrupted, PagewiseError

_INVALID = 1


def begin_session(chosen: Mapping[str, Any], planning: bool) -> None:
    """Before the machine is looked at: a session where settings are changed, until the command ends.

    What a killed session left is restored by that, and otherwise only reported. Raises RefusedError.
    """
    from pagewise.machine.settings.session import session, traces
    from pagewise.store.rerun import CHANGING

    if planning:
        return
    if any(chosen.get(name) for name in CHANGING):
        click.get_current_context().with_resource(session())
        return
    for trace in traces():
        if not trace.running:
            places = "; ".join(change.text for change in trace.changes)
            text = f"a killed session left settings of this machine changed, which were before: {places}"
            click.echo(f"pagewise: warning: {text}\n  remedy: as root: pagewise doctor --restore", err=True)


def carry_out(comparison: Any, planning: bool, as_json: bool) -> int:
    """Measures what was prepared, or shows its plan; the exit code."""
    console = make_console(as_json)
    return show_plan(comparison, console, as_json) if planning else measure(comparison, console, as_json)


def measure(comparison: Any, console: Console, as_json: bool = False) -> int:
    """Measures, shows and writes what was prepared; the exit code."""
    from pagewise.report.write import write_files

    comparison.begin()
    result = comparison.measure()
    faults = [] if comparison.ending is None else [comparison.ending]
    report = None
    try:
        comparison.close()
        report = show_report(console, result)
        page = write_files(result.folder, report)
        comparison.close()
        console.print(f"Report: {page}", highlight=False, soft_wrap=True)
    except PagewiseError as fault:
        report = report or show_report(console, result)
        faults.append(fault)
    print_summary(console, result)
    if as_json:
        print_json(report.data)
    for failure in faults:
        stopped = isinstance(failure, Interrupted)
        text = "interrupted: the above is what was measured" if stopped else f"error: {failure}"
        click.echo(f"pagewise: {text}", err=True)
    return faults[0].exit_code if faults else exit_code(report)


def show_plan(comparison: Any, console: Console, as_json: bool) -> int:
    """Shows what was prepared; nothing is measured or written."""
    from pagewise.report.render import terminal
    from pagewise.report.views import plan

    report = plan.view(comparison)
    if as_json:
        print_json(report.data)
    else:
        terminal.show(console, report)
    return 0


def show_report(console: Console, result: Any) -> Any:
    """Analyses a result and prints its report, which is returned."""
    from pagewise.report.render import terminal
    from pagewise.report.views import report_of

    report = report_of(result)
    terminal.show(console, report)
    return report


def publish(console: Console, folder: Path, report: Any, as_json: bool, *, png: bool = False) -> int:
    """Writes a report, shows it, and prints its data as JSON; the exit code."""
    from pagewise.report.render import terminal
    from pagewise.report.write import write_files

    # Written first: Ctrl-C may have ended the reader of our output as well.
    page = write_files(folder, report, png=png)
    terminal.show(console, report)
    console.print(f"Report: {page}", highlight=False, soft_wrap=True)
    if as_json:
        print_json(report.data)
    return exit_code(report)


def print_summary(console: Console, result: Any) -> None:
    """Prints in one line how much was measured, and the runner overhead."""
    from pagewise.report.views.session import runs_text

    if text := runs_text(result.manifest):
        console.print(text, highlight=False)


def exit_code(report: Any) -> int:
    """1 when a result or its pages were wrong or a run crashed; unavailable pages are no fault."""
    return _INVALID if report.faulty else 0


def report_cluster(folder: Path, at_least: float, as_json: bool) -> int:
    """Shows and writes the report of `pagewise cluster run`, also while it still runs; the exit code."""
    from pagewise.cluster import campaign
    from pagewise.cluster.findings import find
    from pagewise.report.views import cluster

    findings = find(folder, campaign.read(folder), at_least)
    return publish(make_console(as_json), folder, cluster.view(findings), as_json)
