"""Takes results into the store: what is new or has changed, and all that can be read of it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

from pagewise.compare.validity import ENOUGH_COVERAGE
from pagewise.errors import PagewiseError, RefusedError
from pagewise.record import read_records
from pagewise.results.sources import Place, Source, find_places, read_source
from pagewise.results.store import insert, read_lines, text_of

# So much is taken in one step: what a step holds in memory, and what an interruption costs.
_STEP_BYTES, _STEP_RESULTS = 200_000_000, 200
_TOLD_FAULTS = 20
# What wrong content of a file raises; others are the machine's, or ours.
_WRONG = (duckdb.DataError, duckdb.InvalidInputException)


@dataclass
class Collected:
    """What a collection did. `skipped`: folders that hold nothing of ours, with why."""

    taken: int = 0
    known: int = 0
    copies: int = 0
    records: int = 0
    partial: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


class _UnsoundError(Exception):
    """Some files hold lines that are no records."""

    def __init__(self, files: set[str]) -> None:
        super().__init__(files)
        self.files = files


def collect(
    connection: duckdb.DuckDBPyConnection, folders: Iterable[Path], tell: Callable[[int, int], None]
) -> Collected:
    """Takes all results at or below the folders; `tell` hears how many of how many are done.

    Each step is a transaction: an interruption loses nothing that was told as done. Raises SelectionError,
    RefusedError.
    """
    places = find_places(folders)
    done = Collected()
    prints = dict(connection.execute("SELECT folder, print FROM sources").fetchall())
    changed = [place for place in places if prints.get(str(place.folder)) != place.print]
    done.known = len(places) - len(changed)
    connection.execute(text_of("staged.sql"))
    connection.execute("SET VARIABLE enough_coverage = ?", [ENOUGH_COVERAGE])
    passed = 0
    try:
        for step in _steps(changed):
            sources = _unknown(connection, _read(step, done), done)
            _take(connection, sources, done)
            passed += len(step)
            tell(passed, len(changed))
    except (duckdb.IOException, duckdb.OutOfMemoryException) as fault:
        raise RefusedError(
            f"the store cannot be written: {str(fault).splitlines()[0]}",
            remedy="free some space and collect again: what was taken before is kept",
        ) from fault
    return done


def _steps(places: Sequence[Place]) -> Iterator[list[Place]]:
    step: list[Place] = []
    for place in places:
        if step and (len(step) >= _STEP_RESULTS or sum(one.bytes for one in step) >= _STEP_BYTES):
            yield step
            step = []
        step.append(place)
    if step:
        yield step


def _read(step: Sequence[Place], done: Collected) -> Iterator[Source]:
    for place in step:
        try:
            yield read_source(place)
        except PagewiseError as fault:
            done.skipped[str(place.folder)] = fault.what


def _unknown(
    connection: duckdb.DuckDBPyConnection, sources: Iterable[Source], done: Collected
) -> list[Source]:
    """Without those that the store has from another folder; of copies the longest counts."""
    wanted: dict[str, Source] = {}
    for source in sources:
        found = connection.execute(
            "SELECT max(bytes) FROM sources JOIN results USING (folder) "
            "WHERE sources.result = ? AND folder <> ?",
            [source.result, str(source.place.folder)],
        ).fetchone()
        have = found[0] if found and found[0] is not None else -1
        if source.result in wanted:
            have = max(have, wanted[source.result].place.bytes)
        if have >= source.place.bytes:
            _remember(connection, [source])
            done.copies += 1
        else:
            if source.result in wanted:
                _remember(connection, [wanted[source.result]])
                done.copies += 1
            wanted[source.result] = source
    return list(wanted.values())


def _take(connection: duckdb.DuckDBPyConnection, sources: list[Source], done: Collected) -> None:
    """Takes results in one transaction; where content is wrong, the half with it is found and cleaned."""
    if not sources:
        return
    connection.begin()
    try:
        count = _load(connection, sources)
    except _UnsoundError as found:
        connection.rollback()
        _take_cleaned(connection, sources, found.files, done)
        return
    except _WRONG as fault:
        connection.rollback()
        if len(sources) > 1:
            middle = len(sources) // 2
            _take(connection, sources[:middle], done)
            _take(connection, sources[middle:], done)
        elif _is_unclean(sources[0]):
            _take_cleaned(connection, sources, {str(sources[0].records)}, done)
        else:
            done.skipped[str(sources[0].place.folder)] = str(fault).splitlines()[0]
        return
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
    done.taken += len(sources)
    done.records += count
    done.partial |= {str(one.place.folder): one.faults for one in sources if one.faults}


def _is_unclean(source: Source) -> bool:
    return source.records is not None and source.records.is_relative_to(source.place.folder)


def _take_cleaned(
    connection: duckdb.DuckDBPyConnection, sources: Sequence[Source], unsound: set[str], done: Collected
) -> None:
    """Takes the good lines of the files that hold bad ones too, which are told."""
    with tempfile.TemporaryDirectory(prefix="pagewise-collect-") as scratch:
        cleaned = [
            _cleaned(one, Path(scratch) / f"{number}.jsonl") if str(one.records) in unsound else one
            for number, one in enumerate(sources)
        ]
        _take(connection, cleaned, done)


def _cleaned(source: Source, good: Path) -> Source:
    assert source.records is not None
    records, skipped = read_records(source.records)
    with good.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    told = [str(one) for one in skipped[:_TOLD_FAULTS]]
    if len(skipped) > _TOLD_FAULTS:
        told.append(f"and {len(skipped) - _TOLD_FAULTS} more lines")
    return replace(source, records=good, faults=[*source.faults, *told])


def _load(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source]) -> int:
    """Puts all rows of results in the place of what the store has of them; the count of records.

    Raises _UnsoundError, duckdb.Error.
    """
    connection.execute("DELETE FROM staged")
    with_records = {str(one.records): one for one in sources if one.records is not None}
    written = [name for name, one in with_records.items() if one.records.stat().st_size > 0]
    if written:
        read_lines(connection, "staged", written, filename=True)
        unsound = {name for (name,) in connection.execute("SELECT filename FROM unsound").fetchall()}
        if unsound:
            raise _UnsoundError(unsound)
    ids = [one.result for one in sources]
    for table in ("records", "cells", "peer_samples", "results"):
        connection.execute(f"DELETE FROM {table} WHERE list_contains(?, result)", [ids])
    _remember(connection, sources)
    insert(connection, "results", (one.row() for one in sources))
    insert(connection, "cells", ({**cell, "result": one.result} for one in sources for cell in one.cells))
    insert(
        connection, "peer_samples", ({**row, "result": one.result} for one in sources for row in one.samples)
    )
    connection.execute("CREATE OR REPLACE TEMP TABLE taken (file VARCHAR, result VARCHAR)")
    insert(connection, "taken", ({"file": name, "result": one.result} for name, one in with_records.items()))
    connection.execute(text_of("records.sql"))
    found = connection.execute("SELECT count(*) FROM staged").fetchone()
    return int(found[0]) if found else 0


def _remember(connection: duckdb.DuckDBPyConnection, sources: Iterable[Source]) -> None:
    rows = [(str(one.place.folder), one.result, one.place.print, one.place.bytes) for one in sources]
    if rows:
        connection.executemany("INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?)", rows)
