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


def carry_out(comparison: Any, console: Console, planning: bool, as_json: bool) -> int:
    """Measures what was prepared, or tells its plan; the exit code."""
    return show_plan(comparison, console, as_json) if planning else measure(comparison, console, as_json)


def measure(comparison: Any, console: Console, as_json: bool = False) -> int:
    """Measures, shows and writes what was prepared; the exit code."""
    from pagewise.report.terminal import print_summary

    comparison.begin()
    result = comparison.measure()
    faults = [] if comparison.ending is None else [comparison.ending]
    reports, found = reports_of(result), None
    try:
        comparison.close()
        found = reports.show(console, result)
        report = reports.write_files(result, found)
        comparison.close()
        console.print(f"Report: {report}", highlight=False, soft_wrap=True)
    except PagewiseError as fault:
        found = found or reports.show(console, result)
        faults.append(fault)
    print_summary(console, result)
    if as_json:
        print_json(reports.to_dict(result, found))
    for failure in faults:
        stopped = isinstance(failure, Interrupted)
        text = "interrupted: the above is what was measured" if stopped else f"error: {failure}"
        click.echo(f"pagewise: {text}", err=True)
    return faults[0].exit_code if faults else exit_code(reports.is_faulty(found))


def show_plan(comparison: Any, console: Console, as_json: bool) -> int:
    """Tells what was prepared; nothing is measured or written."""
    from pagewise.report.plan import planned, print_plan

    plan = planned(comparison)
    if as_json:
        print_json(plan)
    else:
        print_plan(console, plan)
    return 0


def reports_of(result: Any) -> Any:
    """The module that shows such a result: `show`, `write_files`, `is_faulty`."""
    if result.manifest["kind"] == "counters":
        from pagewise.report import counters as of_counters

        return of_counters
    from pagewise.report import write

    return write


def exit_code(faulty: bool) -> int:
    """1 when a result or its pages were wrong or a run crashed; pages not to be had are no fault."""
    return _INVALID if faulty else 0


def report_cluster(folder: Path, at_least: float, as_json: bool) -> int:
    """Shows and writes the report of `pagewise cluster run`, also while it still runs; the exit code."""
    from pagewise.cluster import campaign
    from pagewise.cluster.findings import find
    from pagewise.report import cluster as reports

    found = find(folder, campaign.read(folder), at_least)
    written = reports.write_files(found)
    if as_json:
        print_json(reports.as_json(found))
    else:
        console = make_console()
        reports.show(console, found)
        console.print(f"\nReport: {written}", highlight=False, soft_wrap=True)
    return _INVALID if found.missing else 0
