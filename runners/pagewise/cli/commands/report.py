"""`pagewise report`."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from pagewise.cli.measured import print_summary, publish, report_cluster
from pagewise.cli.options import AT_LEAST, JSON, examples, make_console
from pagewise.cli.shell import values

_EXAMPLES = examples(
    "pagewise report results/20261121T115458Z-default",
    "pagewise report results/20261121T120211Z-cluster --at-least 5%",
)


@click.command(epilog=_EXAMPLES)
@click.argument("result", type=click.Path(path_type=Path), shell_complete=values.one_of(values.results))
@click.option("--png", is_flag=True, help="Also write each figure as PNG and SVG into RESULT/figures.")
@AT_LEAST
@JSON
def command(result: Path, png: bool, at_least: float, as_json: bool) -> int:
    """Write the report of a RESULT folder again: HTML, Markdown, LaTeX, CSV.

    A RESULT of `pagewise cluster run` is reported also while it still runs.
    """
    from pagewise.cluster import campaign
    from pagewise.core.result import read_result
    from pagewise.report.views import report_of

    if _holds(result, campaign.FILE):
        return report_cluster(result, at_least, as_json)
    console, read = make_console(as_json), read_result(result)
    code = publish(console, read.folder, report_of(read), as_json, png=png)
    print_summary(console, read)
    return code


def _holds(folder: Path, name: str) -> bool:
    try:
        return (folder / name).exists()
    except OSError:
        # `read_result` reports why the folder cannot be read.
        return False
