"""Takes results into the store: what is new or has changed, and all that can be read of it."""

from __future__ import annotations

import json
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

from pagewise.core.errors import PagewiseError, RefusedError
from pagewise.core.page_policy import ENOUGH_COVERAGE
from pagewise.core.record import read_records
from pagewise.store.copies import relation
from pagewise.store.sources import Place, Source, find_places, read_source
from pagewise.store.store import insert, read_lines, text_of

# So much is taken in one step: what a step holds in memory, and what an interruption costs.
_STEP_BYTES, _STEP_RESULTS = 100_000_000, 200
_THREADS = max(1, min(4, len(os.sched_getaffinity(0))))
_TOLD_FAULTS = 20
# What wrong content of a file raises; others are the machine's, or ours.
_WRONG = (duckdb.DataError, duckdb.InvalidInputException)


@dataclass
class Collected:
    """What a collection did.

    `skipped`: folders that hold nothing of ours, with why. `conflicts`: folders that have the id of another
    result, with which; none of these was taken.
    """

    taken: int = 0
    known: int = 0
    copies: int = 0
    records: int = 0
    partial: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    conflicts: dict[str, str] = field(default_factory=dict)

    def add(self, step: Collected) -> None:
        """Adds what a step did."""
        self.taken += step.taken
        self.records += step.records
        self.partial |= step.partial
        self.skipped |= step.skipped


class _UnsoundError(Exception):
    """Some files hold lines that are no records."""

    def __init__(self, files: set[str]) -> None:
        super().__init__(files)
        self.files = files


def collect(
    connection: duckdb.DuckDBPyConnection, folders: Iterable[Path], tell: Callable[[int, int], None]
) -> Collected:
    """Takes all results at or below the folders; `tell` hears how many of how many are done.

    Each step is a transaction: an interruption loses nothing that was told as done. Steps are taken by
    several threads while the next is read here. Raises SelectionError, RefusedError.
    """
    places = find_places(folders)
    prints = dict(connection.execute("SELECT folder, print FROM sources").fetchall())
    changed = [place for place in places if prints.get(str(place.folder)) != place.print]
    done = Collected(known=len(places) - len(changed))
    known = _Known(connection)
    passed, under_way = 0, deque[tuple[int, Future[Collected]]]()
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            for step in _steps(changed):
                sources = known.unknown(_read(step, done), done)
                under_way.append((len(step), pool.submit(_take_step, connection, sources)))
                while len(under_way) > _THREADS:
                    passed += _finish(under_way, done)
                    tell(passed, len(changed))
            while under_way:
                passed += _finish(under_way, done)
                tell(passed, len(changed))
        known.settle(done)
    except (duckdb.IOException, duckdb.OutOfMemoryException) as fault:
        raise RefusedError(
            f"the store cannot be written: {str(fault).splitlines()[0]}",
            remedy="free some space and collect again: what was taken before is kept",
        ) from fault
    return done


def _finish(under_way: deque[tuple[int, Future[Collected]]], done: Collected) -> int:
    """Waits for the oldest step; how many folders it had."""
    count, step = under_way.popleft()
    done.add(step.result())
    return count


def _take_step(connection: duckdb.DuckDBPyConnection, sources: list[Source]) -> Collected:
    """Takes one step, by a connection of its own."""
    done = Collected()
    with connection.cursor() as cursor:
        cursor.execute(text_of("staged.sql"))
        cursor.execute("SET VARIABLE enough_coverage = ?", [ENOUGH_COVERAGE])
        _take(cursor, sources, done)
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
            source = read_source(place)
        except PagewiseError as fault:
            done.skipped[str(place.folder)] = fault.what
            continue
        if source.altered is None:
            yield source
        else:
            done.skipped[str(place.folder)] = source.altered


class _Known:
    """What the store has of each result, or will have.

    Of a result in several folders the one with most counts: decided once the store has the first.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        held = connection.execute("SELECT result, folder FROM results")
        self._held: dict[str, str] = dict(held.fetchall())
        self._fresh: set[str] = set()
        self._again: list[Source] = []

    def unknown(self, sources: Iterable[Source], done: Collected) -> list[Source]:
        """Those that the store does not have from another folder."""
        wanted = []
        for source in sources:
            folder = str(source.place.folder)
            if source.result not in self._held:
                self._fresh.add(source.result)
            if self._held.setdefault(source.result, folder) == folder:
                wanted.append(source)
            else:
                self._again.append(source)
        return wanted

    def settle(self, done: Collected) -> None:
        """Decides on further folders of results that the store has by now."""
        copies, refused = [], set[str]()
        for source in self._again:
            kind = "conflict" if source.result in refused else relation(self._connection, source)
            if kind == "conflict":
                refused.add(source.result)
                self._refuse(source, done)
            elif kind == "grown":
                self._replace(source, done)
            else:
                copies.append(source)
                done.copies += 1
        # So that they are not read again.
        _remember(self._connection, copies)

    def _replace(self, source: Source, done: Collected) -> None:
        """Takes a folder that has more of a result than the one that was taken first."""
        if source.result in self._fresh:
            done.taken -= 1
            done.records -= _forget(self._connection, [source.result])
            done.partial.pop(self._held[source.result], None)
        done.add(_take_step(self._connection, [source]))
        done.copies += 1
        self._held[source.result] = str(source.place.folder)

    def _refuse(self, source: Source, done: Collected) -> None:
        """Leaves out both a folder and what has its id; what the store had before is kept and marked."""
        folder, held = str(source.place.folder), self._held[source.result]
        done.conflicts[folder] = f"it has the id {source.result} of {held}, and other content"
        told = f"it has the id {source.result} of {folder}, and other content"
        if source.result not in self._fresh:
            self._connection.execute(
                "UPDATE results SET partial = true, faults = list_append(faults, $told) "
                "WHERE result = $result AND NOT list_contains(faults, $told)",
                {"told": told, "result": source.result},
            )
        elif held not in done.conflicts:
            done.taken -= 1
            done.records -= _forget(self._connection, [source.result])
            self._connection.execute("DELETE FROM sources WHERE result = ?", [source.result])
            done.partial.pop(held, None)
        done.conflicts[held] = told


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
    written = [name for name in with_records if Path(name).stat().st_size > 0]
    if written:
        read_lines(connection, "staged", written, filename=True)
        unsound = {name for (name,) in connection.execute("SELECT filename FROM unsound").fetchall()}
        # Of a file that was cleaned, every line was checked.
        if unsound := {name for name in unsound if _is_unclean(with_records[name])}:
            raise _UnsoundError(unsound)
    ids = [one.result for one in sources]
    _forget(connection, ids)
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


def _forget(connection: duckdb.DuckDBPyConnection, ids: list[str]) -> int:
    """Takes results out of the store; the count of their records."""
    asked = "SELECT count(*) FROM records WHERE list_contains(?, result)"
    found = connection.execute(asked, [ids]).fetchone()
    for table in ("records", "cells", "peer_samples", "results"):
        connection.execute(f"DELETE FROM {table} WHERE list_contains(?, result)", [ids])
    return int(found[0]) if found else 0


def _remember(connection: duckdb.DuckDBPyConnection, sources: Iterable[Source]) -> None:
    rows = [(str(one.place.folder), one.result, one.place.print, one.place.bytes) for one in sources]
    if rows:
        connection.executemany("INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?)", rows)
