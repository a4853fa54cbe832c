"""`pagewise report`."""

from __future__ import annotations

from pathlib import Path

import click

from pagewise.cli.measured import exit_code, report_cluster, reports_of
from pagewise.cli.options import AT_LEAST, JSON, make_console, print_json
from pagewise.cli.shell import values


@click.command()
@click.argument("result", type=click.Path(path_type=Path), shell_complete=values.one_of(values.results))
@AT_LEAST
@JSON
def command(result: Path, at_least: float, as_json: bool) -> int:
    """Write the tables, CSV files, figures and report.html of a RESULT folder again.

    A RESULT of `pagewise cluster run` is reported also while it still runs.
    """
    from pagewise.cluster import campaign
    from pagewise.core.result import read_result
    from pagewise.report.terminal import print_summary

    if (result / campaign.FILE).exists():
        return report_cluster(result, at_least, as_json)
    console, read = make_console(as_json), read_result(result)
    reports = reports_of(read)
    found = reports.show(console, read)
    console.print(f"Report: {reports.write_files(read, found)}", highlight=False, soft_wrap=True)
    print_summary(console, read)
    if as_json:
        print_json(reports.to_dict(read, found))
    return exit_code(reports.is_faulty(found))
