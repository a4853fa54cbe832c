"""`pagewise report`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import rich_click as click

from pagewise.cli import options as opt
from pagewise.cli.output import make_console
from pagewise.cli.reporting import print_runs, publish


@opt.command(
    "pagewise report results/20261121T115458Z-default",
    "pagewise report results/*-counters results/*-simulate-ember --layout pearc23",
    "pagewise report results/20261121T121530Z-suites --layout power6",
    result=(
        opt.option(
            "--layout",
            "Tables and figures of a publication, beside its values: pearc23 or eahpc22, from results of "
            "counters and simulate; hager05, power6 or a64fx, from results of compare.",
        ),
        opt.flag("--png", "Also write each figure as PNG and SVG into RESULT/figures."),
        partial(opt.VERBOSE, help="Print all sections, explained."),
        opt.JSON,
    ),
)
@opt.argument("result", required=True, nargs=-1)
def command(result: tuple[Path, ...], layout: str | None, png: bool, as_json: bool) -> int:
    """Write the report of a result again: HTML, Markdown and CSV.

    With --layout, the report of one or several results goes to a folder of that name in the first one.
    """
    from pagewise.core.result import read_result
    from pagewise.report.views import report_of

    if layout is not None:
        return _laid_out(layout, result, png, as_json)
    if len(result) > 1:
        raise click.UsageError("Several results have one report only with --layout.")
    read = read_result(result[0])
    code = publish(read.folder, report_of(read), as_json, png=png)
    print_runs(make_console(as_json), read)
    return code


def _laid_out(layout: str, folders: Sequence[Path], png: bool, as_json: bool) -> int:
    """Publishes results in the tables of a publication; the exit code."""
    from pagewise.core.result import read_result
    from pagewise.report.layouts.definition import find_table_layout
    from pagewise.report.views import layout as counted
    from pagewise.report.views import tables
    from pagewise.workloads.counters.published import read_published

    results = [read_result(folder) for folder in folders]
    publications = {publication.layout.name: publication for publication in read_published()}
    if layout in publications:
        report = counted.view(publications[layout], results)
    else:
        report = tables.view(find_table_layout(layout, tuple(publications)), results)
    return publish(folders[0], report, as_json, png=png, inside=layout)
