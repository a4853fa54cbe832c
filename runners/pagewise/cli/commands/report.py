"""`pagewise report`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pagewise.cli import options as opt
from pagewise.cli.output import make_console
from pagewise.cli.reporting import print_runs, publish, publish_cluster
from pagewise.cli.shell import values


@opt.command(
    "pagewise report results/20261121T115458Z-default",
    "pagewise report results/20261121T120211Z-cluster --at-least 5%",
    result=(
        opt.flag("--png", "Also write each figure as PNG and SVG into RESULT/figures."),
        opt.AT_LEAST,
        partial(opt.VERBOSE, help="Print all sections, explained."),
        opt.JSON,
    ),
)
@opt.argument("result", one_of=values.results, required=True)
def command(result: Path, png: bool, at_least: float, as_json: bool) -> int:
    """Write the report of a result again: HTML, Markdown, LaTeX and CSV.

    A RESULT of `pagewise cluster run` can be reported while its jobs still run.
    """
    from pagewise.cluster import campaign
    from pagewise.core.result import read_result
    from pagewise.report.views import report_of

    if _holds(result, campaign.FILE):
        return publish_cluster(result, at_least, as_json)
    read = read_result(result)
    code = publish(read.folder, report_of(read), as_json, png=png)
    print_runs(make_console(as_json), read)
    return code


def _holds(folder: Path, name: str) -> bool:
    try:
        return (folder / name).exists()
    except OSError:
        # `read_result` reports why the folder cannot be read.
        return False
