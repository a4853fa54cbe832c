"""`pagewise report`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pagewise.cli import options as opt
from pagewise.cli.output import make_console
from pagewise.cli.reporting import print_runs, publish


@opt.command(
    "pagewise report results/20261121T115458Z-default",
    result=(
        opt.flag("--png", "Also write each figure as PNG and SVG into RESULT/figures."),
        partial(opt.VERBOSE, help="Print all sections, explained."),
        opt.JSON,
    ),
)
@opt.argument("result", required=True)
def command(result: Path, png: bool, as_json: bool) -> int:
    """Write the report of a result again: HTML, Markdown and CSV."""
    from pagewise.core.result import read_result
    from pagewise.report.views import report_of

    read = read_result(result)
    code = publish(read.folder, report_of(read), as_json, png=png)
    print_runs(make_console(as_json), read)
    return code
