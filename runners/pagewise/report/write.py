"""Writes the files of a report into the folder of its result."""

from __future__ import annotations

from pathlib import Path

from pagewise.analysis.rows import ANALYSIS
from pagewise.core.errors import RefusedError
from pagewise.core.files import write_inside
from pagewise.core.text import command_text, json_text
from pagewise.report.model import Figure, Report, blocks_of
from pagewise.report.render import csv, markdown

REPORT, SUMMARY, FIGURES = "report.html", "summary.md", "figures"
_MEASURED = ("records.jsonl", "manifest.json")


def write_files(folder: Path, report: Report, *, png: bool = False, inside: str = "") -> Path:
    """Writes report.html, Markdown, CSV, analysis.json; with `png` each figure too. The page's path.

    inside: the folder in the result's that gets them; empty: that of the result itself.
    Raises RefusedError when the disk refuses; the records are not touched.
    """
    # matplotlib and jinja2 take long to import and are not needed before.
    from pagewise.report.render import figure, html

    try:
        files = {name: csv.render(table) for name, table in report.tables.items()}
        files[SUMMARY] = markdown.render(report)
        for name, text in files.items():
            write_inside(folder, str(Path(inside, name)), text)
        for name, text in report.texts.items():
            if not (folder / inside / name).exists():
                write_inside(folder, str(Path(inside, name)), text)
        measured = [name for name in _MEASURED if (folder / inside / name).exists()]
        if report.analysis is not None:
            write_inside(folder, str(Path(inside, ANALYSIS)), json_text(report.analysis))
        page = write_inside(folder, str(Path(inside, REPORT)), html.render(report, (*measured, *files)))
        for drawn in blocks_of(Figure, report.sections) if png else ():
            write_inside(folder, str(Path(inside, FIGURES, f"{drawn.name}.svg")), figure.svg(drawn))
            write_inside(folder, str(Path(inside, FIGURES, f"{drawn.name}.png")), figure.png(drawn))
    except OSError as fault:
        raise RefusedError(
            f"the report cannot be written: {fault.strerror}",
            where=folder,
            remedy="free some space or allow writing, then: "
            + command_text(("pagewise", "report", str(folder))),
        ) from fault
    return page
