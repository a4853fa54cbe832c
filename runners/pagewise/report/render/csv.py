"""A table as CSV, for programs and spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from pagewise.report.model import Table

# Spreadsheets read text with these first characters as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render(table: Table) -> str:
    """The table, with the names of its columns as the first line."""
    return text([column.name for column in table.columns], (row.values() for row in table.records()))


def text(names: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV. Text that a spreadsheet would compute as a formula gets an apostrophe before it."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_inert(value) for value in row] for row in rows)
    return stream.getvalue()


def _inert(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
