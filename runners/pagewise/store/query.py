"""Asks a store: SQL of the user's, or a question that comes with pagewise."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb

from pagewise.core.errors import SelectionError
from pagewise.store.store import reading

Answer = tuple[list[str], list[tuple[Any, ...]]]
_FOLDER = files(__package__) / "queries"


def known() -> dict[str, str]:
    """The questions that come with pagewise: the name, and what is asked."""
    found = {}
    for file in sorted(_FOLDER.iterdir(), key=lambda one: one.name):
        first = file.read_text(encoding="utf-8").partition("\n")[0]
        found[file.name.removesuffix(".sql")] = first.removeprefix("-- ")
    return found


def statement(text: str) -> str:
    """The SQL of a known question, of a file, or the text itself. Raises SelectionError."""
    if text in known():
        return (_FOLDER / f"{text}.sql").read_text(encoding="utf-8")
    if text.endswith(".sql"):
        try:
            return Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise SelectionError(
                f"the query cannot be read: {fault}", where=text, remedy="name a text file of SQL"
            ) from fault
    if not text.strip() or " " not in text.strip():
        raise SelectionError(
            f"no question is called {text!r}",
            where="results query",
            remedy=f"there are: {', '.join(known())}; or write SQL, or name a file that ends in .sql",
        )
    return text


def ask(store: Path, sql: str, wait: float) -> Answer:
    """The answer's columns and rows. Raises SelectionError, RefusedError, FormatError."""
    with reading(store, wait) as connection:
        try:
            found = connection.execute(sql)
            if found is None:
                raise duckdb.InvalidInputException("the query is empty")
            return [column[0] for column in found.description or ()], found.fetchall()
        except duckdb.Error as fault:
            tables = [
                name
                for (name,) in connection.execute(
                    "SELECT table_name FROM information_schema.tables ORDER BY ALL"
                ).fetchall()
            ]
            raise SelectionError(
                f"the store does not take this query: {fault}",
                where=store,
                remedy=f"tables and views: {', '.join(tables)}; docs/results.md tells their columns",
            ) from fault
