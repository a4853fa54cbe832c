"""`pagewise report`."""

from __future__ import annotations

from pathlib import Path

import click

from pagewise.cli.measured import exit_code, reports_of
from pagewise.cli.options import (
    make_console,
)
from pagewise.cli.shell import values


@click.command()
@click.argument("result", type=click.Path(path_type=Path), shell_complete=values.one_of(values.results))
def command(result: Path) -> int:
    """Make the tables, CSV files, figures and report.html of a RESULT folder again."""
    from pagewise.report.terminal import print_summary
    from pagewise.result import read_result

    console, read = make_console(), read_result(result)
    reports = reports_of(read)
    found = reports.show(console, read)
    console.print(f"Report: {reports.write_files(read, found)}", highlight=False, soft_wrap=True)
    print_summary(console, read)
    return exit_code(reports.is_faulty(found))
