"""Queries results by SQL: DuckDB reads their files through the views of views.sql."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb

from pagewise.analysis.analysis import analyse_result
from pagewise.analysis.rows import ANALYSIS, SCHEMA, TableRow, excluded_rows, judgement
from pagewise.analysis.validity import nothing_excluded
from pagewise.core.errors import SelectionError
from pagewise.core.reading import parse_json, read_file
from pagewise.core.record import read_records
from pagewise.core.result import MANIFEST, RECORDS
from pagewise.core.structure import to_data
from pagewise.store.sources import Source, find_sources

_HERE = files(__package__)
_TABLES = ("results", "cells", "records")
# What cannot write a file of a result.
_READING = ("SELECT", "CREATE")
_MOST_FAULTS = 20
# In paths: bytes that are not UTF-8, and what DuckDB takes for a pattern.
_ODD = re.compile(r"[][*?\udc80-\udcff]")
# JSON has escapes for bytes that are not UTF-8; DuckDB does not accept them.
_SURROGATE = re.compile(rb"\\u[dD]")


@dataclass(frozen=True)
class QueryResult:
    """Columns and rows; by folder, what of it is not in them, and why.

    skipped: whole folders. partial: parts of a result. conflicts: folders with one id and other records.
    """

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    skipped: Mapping[str, str]
    partial: Mapping[str, Sequence[str]]
    conflicts: Mapping[str, str]


def known_queries() -> dict[str, str]:
    """The queries of pagewise: name and description."""
    queries = {}
    for file in sorted((_HERE / "queries").iterdir(), key=lambda file: file.name):
        first = file.read_text(encoding="utf-8").partition("\n")[0]
        queries[file.name.removesuffix(".sql")] = first.removeprefix("-- ")
    return queries


def statement(text: str) -> str:
    """The SQL of a query of pagewise, of a file, or the text itself. Raises SelectionError."""
    if text in known_queries():
        return (_HERE / "queries" / f"{text}.sql").read_text(encoding="utf-8")
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
            remedy=f"name one of {', '.join(known_queries())}; or SQL, or a file that ends in .sql",
        )
    return text


def ask(folders: Iterable[Path], sql: str, write: Path | None = None) -> QueryResult:
    """Queries the results at or below the folders; the SQL may write files into `write` only.

    A folder that cannot be read is skipped. Raises SelectionError, RefusedError.
    """
    sources, skipped = find_sources(folders)
    skipped |= {source.name: source.altered for source in sources if source.altered is not None}
    sources, conflicts = _distinct([source for source in sources if source.altered is None], skipped)
    rows = []
    with (
        tempfile.TemporaryDirectory() as aside,
        duckdb.connect(config={"temp_directory": aside}) as connection,
    ):
        for number, source in enumerate(sources):
            try:
                rows.append(_row(source, Path(aside, str(number))))
            except MemoryError:
                raise
            # A fault of one folder must not prevent reading its neighbours.
            except Exception as fault:
                skipped[source.name] = f"not as pagewise writes it: {type(fault).__name__}: {fault}"
        listed = Path(aside, "folders.jsonl")
        listed.write_bytes(b"".join(map(_line, rows)))
        connection.execute("SET VARIABLE folders = $file", {"file": str(listed)})
        connection.execute((_HERE / "views.sql").read_text(encoding="utf-8"))
        columns, values = _answer(connection, sql, rows, str(listed), write)
    partial = {row["folder"]: row["faults"] for row in rows if row["faults"]}
    return QueryResult(columns, values, skipped, partial, conflicts)


def _answer(
    connection: duckdb.DuckDBPyConnection, sql: str, rows: Sequence[TableRow], listed: str, write: Path | None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows. The statements reach the files of the results only, and those in `write`."""
    paths = [row[name] for row in rows for name in ("manifest", "records", "analysis")] or [listed]
    try:
        if write is not None:
            # Copied, so that the statements need no access to the files of the results.
            for name in _TABLES:
                connection.execute(f"CREATE TABLE copied AS FROM {name}; DROP VIEW {name}")
                connection.execute(f"ALTER TABLE copied RENAME TO {name}")
            connection.execute("SET allowed_directories = $it", {"it": [str(write.resolve())]})
        else:
            connection.execute("SET allowed_paths = $it", {"it": paths})
        connection.execute("SET allow_persistent_secrets = false")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        statements = connection.extract_statements(sql)
        if not statements:
            raise duckdb.InvalidInputException("the query is empty")
        for item in statements:
            if write is None and item.type.name not in _READING:
                raise duckdb.PermissionException(f"{item.type.name} needs --write DIR")
            connection.execute(item)
        return [column[0] for column in connection.description or ()], connection.fetchall()
    except duckdb.Error as fault:
        raise SelectionError(
            f"DuckDB rejects this query: {fault}",
            where="results query",
            remedy=f"tables and views: {', '.join(_TABLES)}, runs, ratios; docs/reference/results.md lists "
            "their columns",
        ) from fault


def _distinct(sources: Sequence[Source], skipped: dict[str, str]) -> tuple[list[Source], dict[str, str]]:
    """One source per result: the copy with the most records. Conflicts: copies that differ."""
    by_id: dict[str, list[Source]] = {}
    for source in sources:
        by_id.setdefault(source.manifest["id"], []).append(source)
    kept = []
    conflicts: dict[str, str] = {}
    for name, group in by_id.items():
        if len(group) > 1:
            group.sort(key=lambda copy: (len(copy.content), copy.state == "complete"))
        *copies, most = group
        if all(most.content.startswith(copy.content) for copy in copies):
            kept.append(most)
            skipped |= {copy.name: f"a copy of {most.name}" for copy in copies}
        else:
            text = f"several folders with other records have its id {name}"
            conflicts |= {copy.name: text for copy in group}
    return kept, conflicts


def _row(source: Source, aside: Path) -> TableRow:
    """The files of a result for DuckDB; copies where it could not read them as they are."""
    folder, faults = source.folder, source.faults
    if not _is_readable(source):
        faults, folder = [*faults, *_copy(source, aside)], aside
    names = {"manifest": MANIFEST, "records": RECORDS, "analysis": ANALYSIS}
    paths = {key: str(folder / name) for key, name in names.items()}
    return {"result": source.manifest["id"], "folder": source.name, "faults": faults, **paths}


def _is_readable(source: Source) -> bool:
    """Whether DuckDB can read the files: complete, analysed, of a plain path, and valid Unicode."""
    read = source.read
    if read is None or source.faults or source.state == "running" or _ODD.search(str(source.folder)):
        return False
    try:
        analysis = read_file(source.folder / ANALYSIS)
        judged = parse_json(analysis)
        is_current = judged["schema"] == SCHEMA and judged["records"] == to_data(read.manifest.records)
        contents = (analysis, read_file(source.folder / MANIFEST), source.content)
        return is_current and not any(map(_SURROGATE.search, contents))
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _copy(source: Source, aside: Path) -> list[str]:
    """Writes the files of a result as pagewise reads them, analysed; what cannot be read of its records."""
    file, read = source.folder / RECORDS, source.read
    records, faults = read_records(file) if file.is_file() else ([], [])
    analysis: Mapping[str, object]
    if read is None:
        analysis = {"excluded": list(excluded_rows(records, nothing_excluded))}
    else:
        result = replace(read, records=records)
        is_comparison = read.manifest.kind in ("kernels", "programs")
        analysis = judgement(result, analyse_result(result) if is_comparison else ())
    aside.mkdir()
    (aside / MANIFEST).write_bytes(_line(source.manifest))
    (aside / ANALYSIS).write_bytes(_line(analysis))
    (aside / RECORDS).write_bytes(b"".join(_line(to_data(record)) for record in records))
    more = [f"and {len(faults) - _MOST_FAULTS} more lines"] if len(faults) > _MOST_FAULTS else []
    return [*map(str, faults[:_MOST_FAULTS]), *more]


def _line(row: object) -> bytes:
    """A row as a line of JSON; the database has no text for bytes that are not UTF-8."""
    return json.dumps(row, ensure_ascii=False).encode(errors="replace") + b"\n"
