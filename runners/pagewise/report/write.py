"""Makes all reports of a result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from pagewise.analysis.analysis import KernelResult, analyse_result
from pagewise.core.errors import RefusedError
from pagewise.core.files import write_inside
from pagewise.core.result import Result
from pagewise.report.csv import summary_csv
from pagewise.report.data import verdicts
from pagewise.report.latex import TABLES, latex_tables
from pagewise.report.markdown import MARKDOWN, markdown
from pagewise.report.policies import POLICIES, policies_csv
from pagewise.report.program import MEMORY, METRICS, is_program, memory_csv, metrics_csv, print_program
from pagewise.report.terminal import print_result

REPORT, SUMMARY = "report.html", "summary.csv"


def show(console: Console, result: Result) -> list[KernelResult]:
    """Analyses the records and prints the tables."""
    kernels = analyse_result(result)
    print_result(console, result, kernels)
    if is_program(result):
        print_program(console, result)
    return kernels


def to_dict(result: Result, kernels: Sequence[KernelResult]) -> dict[str, Any]:
    """What the tables say, for programs."""
    return verdicts(result, kernels)


def write_files(result: Result, kernels: Sequence[KernelResult]) -> Path:
    """Writes report.html, figures, CSV, Markdown and LaTeX into the result's folder; the report's path.

    Raises RefusedError when the disk refuses; the records are not touched.
    """
    # Both take long to import (matplotlib, jinja2) and are not needed before.
    from pagewise.report.draw import draw
    from pagewise.report.html import html

    try:
        files = {
            SUMMARY: summary_csv(kernels),
            MARKDOWN: markdown(result, kernels),
            TABLES: latex_tables(result.folder.name, kernels),
            POLICIES: policies_csv(kernels),
        }
        if is_program(result):
            files |= {METRICS: metrics_csv(result), MEMORY: memory_csv(result)}
        for name, text in files.items():
            write_inside(result.folder, name, text)
        drawn = draw(result.folder, kernels, result.manifest)
        write_inside(result.folder, REPORT, html(result, kernels, drawn, list(files)))
    except OSError as fault:
        raise RefusedError(
            f"the report cannot be written: {fault.strerror}",
            where=result.folder,
            remedy=f"free some space or allow writing, then: pagewise report {result.folder}",
        ) from fault
    return result.folder / REPORT


def is_faulty(kernels: Sequence[KernelResult] | None) -> bool:
    """Whether a result or its pages were wrong or a run crashed; pages not to be had are no fault."""
    rows = [row for one in kernels or () for group in one.groups for row in group.unranked]
    return any(row.is_fault for row in rows)
