"""The store: one DuckDB file, or a folder of Parquet files to read from."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from json import dumps
from pathlib import Path
from typing import Any

import duckdb

from pagewise.core.errors import FormatError, RefusedError, SelectionError
from pagewise.core.text import command_text

LAYOUT = 2
TABLES = ("results", "sources", "cells", "records")
_RETRY_SECONDS = 0.2


def text_of(name: str) -> str:
    """One of the SQL files of this folder."""
    return (files(__package__) / name).read_text(encoding="utf-8")


@contextmanager
def writing(file: Path, wait: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """The store, created if missing. One process writes at a time; others wait up to `wait` seconds.

    Raises RefusedError, FormatError.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise RefusedError(
            f"the store's folder cannot be created: {fault.strerror}",
            where=file.parent,
            remedy="name another file: --store FILE",
        ) from fault
    with _connected(file, wait, read_only=False) as connection:
        _check(connection, file)
        connection.execute(text_of("layout.sql"))
        if not connection.execute("SELECT 1 FROM store").fetchone():
            connection.execute("INSERT INTO store VALUES (?)", [LAYOUT])
        # Rows need no order, so several threads can read files.
        connection.execute("SET preserve_insertion_order = false")
        yield connection


@contextmanager
def reading(store: Path, wait: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """The store, or a folder of Parquet files exported from one, read-only.

    Statements on this connection can access these tables only: no other file, no extension, no network.
    Raises SelectionError, RefusedError, FormatError.
    """
    if store.is_dir():
        with _parquet(store) as connection:
            _confine(connection)
            yield connection
        return
    if not store.exists():
        raise SelectionError(
            "there is no store here",
            where=store,
            remedy=command_text(("pagewise", "results", "collect", "--store", str(store), "results")),
        )
    with _connected(store, wait, read_only=True) as connection:
        _confine(connection)
        _check(connection, store)
        yield connection


def as_stored(row: Mapping[str, Any]) -> bytes:
    """A row as JSON; the database has no text for bytes that are not UTF-8."""
    return dumps(row, ensure_ascii=False).encode(errors="replace")


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Inserts rows into a table; columns that a row omits are NULL."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as stream:
        size = sum(stream.write(as_stored(row) + b"\n") for row in rows)
        stream.flush()
        if size:
            described = connection.execute(f"DESCRIBE {table}").fetchall()
            types = ", ".join(f"\"{name}\": '{_quoted(kind)}'" for name, kind, *_ in described)
            connection.execute(
                f"INSERT INTO {table} BY NAME "
                f"SELECT * FROM read_json($file, columns = {{{types}}}, format = 'newline_delimited')",
                {"file": stream.name},
            )


def export(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Writes one Parquet file per table; concurrent readers see the old file or the new one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as aside:
            for table in TABLES:
                file = Path(aside) / f"{table}.parquet"
                connection.execute(f"COPY {table} TO '{_quoted(file)}' (FORMAT parquet, COMPRESSION zstd)")
                file.replace(folder / file.name)
    except (OSError, duckdb.IOException) as fault:
        raise RefusedError(
            f"the Parquet files cannot be written: {fault}",
            where=folder,
            remedy="free some space, or name another folder: --parquet DIR; the store is not affected",
        ) from fault


@contextmanager
def _parquet(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    missing = [table for table in TABLES if not (folder / f"{table}.parquet").is_file()]
    if missing:
        raise SelectionError(
            f"this folder is not an exported store: {missing[0]}.parquet is missing",
            where=folder,
            remedy="name a store (.duckdb), or export one: pagewise results collect --parquet DIR",
        )
    with duckdb.connect() as connection:
        for table in TABLES:
            # A copy, not a view: a view would need external access, which also allows writing files.
            file = _quoted(folder / f"{table}.parquet")
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet('{file}')")
        for statement in text_of("layout.sql").split(";"):
            if "VIEW" in statement:
                connection.execute(statement)
        yield connection


@contextmanager
def _connected(file: Path, wait: float, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    until = time.monotonic() + wait
    while True:
        try:
            connection = duckdb.connect(str(file), read_only=read_only)
            break
        except duckdb.IOException as fault:
            # DuckDB's lock: a writing process excludes all others.
            if "lock" not in str(fault):
                raise _refused(file, fault) from fault
            if time.monotonic() > until:
                raise RefusedError(
                    "another process is writing the store",
                    where=file,
                    remedy="wait for it, or wait longer: --wait TIME",
                ) from fault
            time.sleep(_RETRY_SECONDS)
        except duckdb.Error as fault:
            raise _refused(file, fault) from fault
    with connection:
        yield connection


def _confine(connection: duckdb.DuckDBPyConnection) -> None:
    """Denies the connection all but what is open: other files, extensions, settings."""
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _refused(file: Path, fault: duckdb.Error) -> Exception:
    message = str(fault).splitlines()[0]
    if "not a valid DuckDB" in message:
        return FormatError("this file is not a store", where=file, remedy="name another: --store FILE")
    return RefusedError(
        f"the store cannot be opened: {message}",
        where=file,
        remedy="allow this user to read and write it, or name another: --store FILE",
    )


def _check(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Raises FormatError if the file holds other tables, or a store of another layout."""
    tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables").fetchall()}
    if tables and "store" not in tables:
        raise FormatError(
            "this DuckDB file contains other tables", where=file, remedy="name another: --store FILE"
        )
    layout = connection.execute("SELECT layout FROM store").fetchone() if tables else None
    if layout and layout[0] != LAYOUT:
        raise FormatError(
            f"the store has layout {layout[0]}, this pagewise reads {LAYOUT}",
            where=file,
            remedy="collect the results into a new store, with one version of pagewise",
        )


def _quoted(text: object) -> str:
    return str(text).replace("'", "''")
