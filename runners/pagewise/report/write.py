"""Writes the files of a report into the folder of its result."""

from __future__ import annotations

from pathlib import Path

from pagewise.core.errors import RefusedError
from pagewise.core.files import write_inside
from pagewise.report.model import Report, figures
from pagewise.report.render import csv, latex, markdown

REPORT, SUMMARY, TABLES, FIGURES = "report.html", "summary.md", "tables.tex", "figures"
_MEASURED = ("records.jsonl", "manifest.json")


def write_files(folder: Path, report: Report, *, png: bool = False) -> Path:
    """Writes report.html, Markdown, LaTeX and CSV; with `png` each figure as PNG and SVG. The page's path.

    Raises RefusedError when the disk refuses; the records are not touched.
    """
    # matplotlib and jinja2 take long to import and are not needed before.
    from pagewise.report.render import figure, html

    try:
        files = {name: csv.render(table) for name, table in report.tables.items()}
        files |= {SUMMARY: markdown.render(report), TABLES: latex.render(report)}
        for name, text in files.items():
            write_inside(folder, name, text)
        measured = [name for name in _MEASURED if (folder / name).exists()]
        page = write_inside(folder, REPORT, html.render(report, (*measured, *files)))
        for drawn in figures(report.sections) if png else ():
            write_inside(folder, f"{FIGURES}/{drawn.name}.svg", figure.svg(drawn))
            write_inside(folder, f"{FIGURES}/{drawn.name}.png", figure.png(drawn))
    except OSError as fault:
        raise RefusedError(
            f"the report cannot be written: {fault.strerror}",
            where=folder,
            remedy=f"free some space or allow writing, then: pagewise report {folder}",
        ) from fault
    return page
