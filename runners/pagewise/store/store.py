"""The store: one DuckDB file, or a folder of Parquet files to read from."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from json import dumps
from pathlib import Path
from typing import Any

import duckdb

from pagewise.core.errors import FormatError, RefusedError, SelectionError

LAYOUT = 1
TABLES = ("results", "sources", "cells", "records", "peer_samples")
_LOOK_AGAIN = 0.2


def text_of(name: str) -> str:
    """One of the SQL files of this folder."""
    return (files(__package__) / name).read_text(encoding="utf-8")


@contextmanager
def writing(file: Path, wait: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """The store, made where there is none. One process writes at a time; others wait up to `wait` seconds.

    Raises RefusedError, FormatError.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise RefusedError(
            f"the store's folder cannot be made: {fault.strerror}",
            where=file.parent,
            remedy="name another place: --store FILE",
        ) from fault
    with _connected(file, wait, read_only=False) as connection:
        _check(connection, file)
        connection.execute(text_of("layout.sql"))
        if not connection.execute("SELECT 1 FROM store").fetchone():
            connection.execute("INSERT INTO store VALUES (?)", [LAYOUT])
        # Rows need no order: files are read by several threads.
        connection.execute("SET preserve_insertion_order = false")
        yield connection


@contextmanager
def reading(store: Path, wait: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """The store, or a folder of Parquet files that was exported from one; nothing can be changed.

    Statements on this connection reach these tables only: no other file, no extension, no network. Raises
    SelectionError, RefusedError, FormatError.
    """
    if store.is_dir():
        with _parquet(store) as connection:
            _confine(connection)
            yield connection
        return
    if not store.exists():
        raise SelectionError(
            "there is no store here", where=store, remedy=f"pagewise results collect --store {store} results"
        )
    with _connected(store, wait, read_only=True) as connection:
        _confine(connection)
        _check(connection, store)
        yield connection


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Puts rows into a table; what a row does not name is NULL."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as stream:
        stream.writelines(dumps(row, ensure_ascii=False) + "\n" for row in rows)
        stream.flush()
        if stream.tell():
            read_lines(connection, table, [stream.name])


def read_lines(
    connection: duckdb.DuckDBPyConnection, table: str, named: Sequence[str], *, filename: bool = False
) -> None:
    """Puts the JSON lines of files into a table, by name and with the table's types."""
    described = connection.execute(f"DESCRIBE {table}").fetchall()
    columns = {name: kind for name, kind, *_ in described if not (filename and name == "filename")}
    connection.execute(
        f"INSERT INTO {table} BY NAME SELECT * FROM read_json($files, columns = {_literal(columns)}, "
        f"format = 'newline_delimited', filename = {filename})",
        {"files": list(named)},
    )


def export(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Writes a Parquet file for each table; whoever reads meanwhile sees the old file or the new one."""
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
            remedy="free some space, or name another folder: --parquet DIR; the store itself is whole",
        ) from fault


@contextmanager
def _parquet(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    missing = [table for table in TABLES if not (folder / f"{table}.parquet").is_file()]
    if missing:
        raise SelectionError(
            f"this folder is no exported store: it lacks {missing[0]}.parquet",
            where=folder,
            remedy="name a store (.duckdb), or export one: pagewise results collect --parquet DIR",
        )
    with duckdb.connect() as connection:
        for table in TABLES:
            # A copy, not a view: DuckDB can allow a file to be read only together with writing to it.
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
            # DuckDB's own lock: a process that writes is alone.
            if "lock" not in str(fault):
                raise _refused(file, fault) from fault
            if time.monotonic() > until:
                raise RefusedError(
                    "another process has been writing the store all the time",
                    where=file,
                    remedy="wait for it, or give it longer: --wait TIME",
                ) from fault
            time.sleep(_LOOK_AGAIN)
        except duckdb.Error as fault:
            raise _refused(file, fault) from fault
    with connection:
        yield connection


def _confine(connection: duckdb.DuckDBPyConnection) -> None:
    """Closes the connection to everything but what is open: files, extensions, settings."""
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _refused(file: Path, fault: duckdb.Error) -> Exception:
    told = str(fault).splitlines()[0]
    if "not a valid DuckDB" in told:
        return FormatError("this file is no store", where=file, remedy="name another: --store FILE")
    return RefusedError(
        f"the store cannot be opened: {told}",
        where=file,
        remedy="allow this user to read and write it, or name another: --store FILE",
    )


def _check(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Raises FormatError when the file holds other tables, or a store of a layout that is not this one."""
    tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables").fetchall()}
    if tables and "store" not in tables:
        raise FormatError(
            "this DuckDB file holds other tables", where=file, remedy="name another: --store FILE"
        )
    found = connection.execute("SELECT layout FROM store").fetchone() if tables else None
    if found and found[0] != LAYOUT:
        raise FormatError(
            f"the store has layout {found[0]}, this pagewise knows {LAYOUT}",
            where=file,
            remedy="collect the results into a new store, with one version of pagewise",
        )


def _literal(columns: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"\"{name}\": '{_quoted(kind)}'" for name, kind in columns.items()) + "}"


def _quoted(text: object) -> str:
    return str(text).replace("'", "''")
