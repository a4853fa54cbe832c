"""Queries a store: by the user's SQL, or by a query of pagewise."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb

from pagewise.core.errors import SelectionError
from pagewise.store.store import reading

QueryAnswer = tuple[list[str], list[tuple[Any, ...]]]
_FOLDER = files(__package__) / "queries"


def known() -> dict[str, str]:
    """The queries of pagewise: name and description."""
    queries = {}
    for file in sorted(_FOLDER.iterdir(), key=lambda file: file.name):
        first = file.read_text(encoding="utf-8").partition("\n")[0]
        queries[file.name.removesuffix(".sql")] = first.removeprefix("-- ")
    return queries


def statement(text: str) -> str:
    """The SQL of a query of pagewise, of a file, or the text itself. Raises SelectionError."""
    if text in known():
        return (_FOLDER / f"{text}.sql").read_text(encoding="utf-8")
    if text.endswith(".sql"):
        try:
            return Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise SelectionError(
                f"the query cannot be read: {fault}", where=text, remedy="name a text file of SQL"
            ) from fault
    if " " not in text.strip():
        raise SelectionError(
            f"there is no query {text!r}",
            where="results query",
            remedy=f"name one of {', '.join(known())}; or write SQL, or name a file that ends in .sql",
        )
    return text


def ask(store: Path, sql: str, wait: float) -> QueryAnswer:
    """The answer's columns and rows. Raises SelectionError, RefusedError, FormatError."""
    with reading(store, wait) as connection:
        try:
            answer = connection.execute(sql)
            if answer is None:
                raise duckdb.InvalidInputException("the query is empty")
            return [column[0] for column in answer.description or ()], answer.fetchall()
        except duckdb.Error as fault:
            tables = connection.execute("SELECT table_name FROM information_schema.tables ORDER BY ALL")
            names = ", ".join(name for (name,) in tables.fetchall())
            raise SelectionError(
                f"the store rejects this query: {fault}",
                where=store,
                remedy=f"tables and views: {names}; docs/reference/results.md lists their columns",
            ) from fault
