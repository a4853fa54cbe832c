"""Several folders with the id of one result: copies, earlier states of it, or other content."""

from __future__ import annotations

import filecmp
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import duckdb

from pagewise.core.reading import parse_json
from pagewise.store.columns import columns, row_of
from pagewise.store.sources import FILES, Source
from pagewise.store.store import as_stored

Relation = Literal["copy", "grown", "conflict"]
# Fields of a manifest that do not change while a result is measured or resumed.
_FIXED = ("created", "command", "seed", "host", "configurations", "programs", "subjects")
# Columns that distinguish runs.
_RUN = columns({"": "kernel status", "run": "module round position", "seconds": "repetitions"})
_RUN_COLUMNS = ("program", "status", "module", "round", "position", "repetitions")


def relation(connection: duckdb.DuckDBPyConnection, source: Source) -> Relation:
    """How a folder relates to the result of its id in the store.

    copy: the store has all of it. grown: it has all that the store has, and more. conflict: neither, or its
    manifest is of other programs, another machine or another time.
    """
    stored = connection.execute("SELECT folder, manifest FROM results WHERE result = ?", [source.result])
    folder, manifest = stored.fetchone() or ("", None)
    if _is_same(source.place.folder, Path(folder)):
        return "copy"
    old, new = json.loads(manifest or "{}"), json.loads(as_stored(source.about.get("manifest") or {}))
    if any(old.get(name) != new.get(name) for name in _FIXED):
        return "conflict"
    ours = Counter(_rows(source))
    names = ", ".join(_RUN_COLUMNS)
    held = connection.execute(f"SELECT {names} FROM records WHERE result = ?", [source.result])
    theirs = Counter(map(_countable, held.fetchall()))
    return "copy" if ours <= theirs else "grown" if theirs <= ours else "conflict"


def _is_same(folder: Path, other: Path) -> bool:
    """Whether the files of two folders have the same content."""
    names = [name for name in FILES if (folder / name).is_file()]
    if not other.is_dir() or names != [name for name in FILES if (other / name).is_file()]:
        return False
    _, different, unreadable = filecmp.cmpfiles(folder, other, names, shallow=False)
    return not different and not unreadable


def _rows(source: Source) -> Iterator[tuple[Any, ...]]:
    """The rows of runs as the store has them, without lines that are not records."""
    if source.file is None:
        return
    with source.file.open("rb") as stream:
        for line in stream:
            try:
                row = row_of(parse_json(line), _RUN)
                if row["kernel"] is not None and row["status"] is not None:
                    yield _countable(row.values())
            except (ValueError, TypeError):
                continue


def _countable(cells: Iterable[Any]) -> tuple[Any, ...]:
    """Hashable cells, with numbers as the store has them."""
    return tuple(
        tuple(map(float, cell)) if isinstance(cell, list) else None if isinstance(cell, Mapping) else cell
        for cell in cells
    )
