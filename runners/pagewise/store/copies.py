"""Several folders with the id of one result: copies, earlier states of it, or other content under its id."""

from __future__ import annotations

import filecmp
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import duckdb

from pagewise.core.reading import parse_json
from pagewise.store.sources import FILES, Source

Relation = Literal["copy", "grown", "conflict"]
# What does not change while a result is measured or resumed.
_FIXED = ("created", "command", "seed", "host", "configurations", "programs", "subjects")
_HELD_RECORDS = """
    SELECT program, module, status, round, position, repetitions FROM records WHERE result = ?
"""
_HELD_SAMPLES = """
    SELECT match, side, candidate, series, round, value FROM peer_samples WHERE result = ?
"""


def relation(connection: duckdb.DuckDBPyConnection, source: Source) -> Relation:
    """What a folder is to the result of its id in the store.

    copy: the store has all of it. grown: it has all that the store has, and more. conflict: neither, or its
    manifest says that it is of other programs, another machine or another moment.
    """
    stored = connection.execute("SELECT folder, manifest FROM results WHERE result = ?", [source.result])
    folder, manifest = stored.fetchone() or ("", None)
    if _is_same(source.place.folder, Path(folder)):
        return "copy"
    held, new = json.loads(manifest or "{}"), source.about.get("manifest") or {}
    if any(held.get(name) != new.get(name) for name in _FIXED if name in held or name in new):
        return "conflict"
    mine = Counter(_rows(source))
    question = _HELD_RECORDS if source.records is not None or not source.samples else _HELD_SAMPLES
    known = Counter(map(_row, connection.execute(question, [source.result]).fetchall()))
    return "copy" if mine <= known else "grown" if known <= mine else "conflict"


def _is_same(folder: Path, other: Path) -> bool:
    """Whether the files of two folders have the same content."""
    names = [name for name in FILES if (folder / name).is_file()]
    if not other.is_dir() or names != [name for name in FILES if (other / name).is_file()]:
        return False
    _, different, unreadable = filecmp.cmpfiles(folder, other, names, shallow=False)
    return not different and not unreadable


def _rows(source: Source) -> Iterable[tuple[Any, ...]]:
    """What distinguishes runs, as the store has it; lines that are no records are left out."""
    for sample in source.samples:
        yield _row(sample[name] for name in ("match", "side", "candidate", "series", "round", "value"))
    if source.records is None:
        return
    with source.records.open("rb") as stream:
        for line in stream:
            try:
                record = parse_json(line)
                run, seconds = record.get("run") or {}, record.get("seconds") or {}
                module, number, position = (run.get(name) for name in ("module", "round", "position"))
                name, status = record["kernel"], record["status"]
                yield _row((name, module, status, number, position, seconds.get("repetitions")))
            except (ValueError, LookupError, TypeError, AttributeError):
                continue


def _row(cells: Iterable[Any]) -> tuple[Any, ...]:
    """Cells that can be counted; numbers as the store has them."""
    return tuple(
        tuple(map(float, cell)) if isinstance(cell, list) else cell if not isinstance(cell, Mapping) else None
        for cell in cells
    )
