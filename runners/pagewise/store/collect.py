"""Takes results into the store: what is new or has changed, and all that can be read of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import duckdb

from pagewise.core.errors import PagewiseError, RefusedError
from pagewise.store.copies import relation
from pagewise.store.rows import Rows, rows_of
from pagewise.store.sources import Place, Source, find_places, read_source
from pagewise.store.store import insert

# So much is taken in one step: what a step holds in memory, and what an interruption costs.
_STEP_BYTES, _STEP_RESULTS = 100_000_000, 200
# Processes take a second to start; they analyse so much in the same time.
_WORTH_PROCESSES = 5_000_000
_PROCESSES = len(os.sched_getaffinity(0))
Analyse = Callable[[Iterable[Source]], Iterable["Rows | str"]]


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


def collect(
    connection: duckdb.DuckDBPyConnection, folders: Iterable[Path], report: Callable[[int, int], None]
) -> Collected:
    """Takes all results at or below the folders; calls `report` with how many of how many are done.

    Each step is a transaction: an interruption loses nothing that was reported as done. Raises
    SelectionError, RefusedError.
    """
    places = find_places(folders)
    prints = dict(connection.execute("SELECT folder, print FROM sources").fetchall())
    changed = [place for place in places if prints.get(str(place.folder)) != place.print]
    done = Collected(known=len(places) - len(changed))
    with ExitStack() as stack:
        analyse: Analyse = _in_process
        if sum(place.bytes for place in changed) > _WORTH_PROCESSES and _PROCESSES > 1:
            # Forked processes would inherit DuckDB's threads.
            workers = ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn"))
            pool = stack.enter_context(workers)
            analyse = lambda sources: pool.map(_rows, sources)  # noqa: E731
        known = _Known(connection, analyse)
        passed = 0
        try:
            for step in _steps(changed):
                _take(connection, known.unknown(_read(step, done)), done, analyse)
                passed += len(step)
                report(passed, len(changed))
            known.settle(done)
        except (duckdb.IOException, duckdb.OutOfMemoryException) as fault:
            raise RefusedError(
                f"the store cannot be written: {str(fault).splitlines()[0]}",
                remedy="free some space and collect again: what was taken before is kept",
            ) from fault
    return done


def _in_process(sources: Iterable[Source]) -> Iterator[Rows | str]:
    return map(_rows, sources)


def _rows(source: Source) -> Rows | str:
    """The rows of a result, or why there are none."""
    try:
        return rows_of(source)
    except PagewiseError as fault:
        return fault.what
    # Whatever is wrong in one folder, its neighbours are taken.
    except Exception as fault:
        return f"not as pagewise writes it: {type(fault).__name__}: {fault}"


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

    def __init__(self, connection: duckdb.DuckDBPyConnection, analyse: Analyse) -> None:
        self._connection, self._analyse = connection, analyse
        held = connection.execute("SELECT result, folder FROM results")
        self._held: dict[str, str] = dict(held.fetchall())
        self._fresh: set[str] = set()
        self._again: list[Source] = []

    def unknown(self, sources: Iterable[Source]) -> list[Source]:
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
        _take(self._connection, [source], done, self._analyse)
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


def _take(
    connection: duckdb.DuckDBPyConnection, sources: Sequence[Source], done: Collected, analyse: Analyse
) -> None:
    """Takes results in one transaction; what cannot be analysed is skipped."""
    rows = []
    for source, found in zip(sources, analyse(sources), strict=True):
        if isinstance(found, str):
            done.skipped[str(source.place.folder)] = found
        else:
            rows.append(found)
    _store(connection, rows, done)


def _store(connection: duckdb.DuckDBPyConnection, rows: Sequence[Rows], done: Collected) -> None:
    """Replaces all that the store has of results; what it refuses is found by halves and skipped."""
    if not rows:
        return
    connection.begin()
    try:
        _forget(connection, [one.source.result for one in rows])
        _remember(connection, [one.source for one in rows])
        insert(connection, "results", (one.result for one in rows))
        insert(connection, "cells", (cell for one in rows for cell in one.cells))
        insert(connection, "records", (record for one in rows for record in one.records))
        samples = ({**row, "result": one.source.result} for one in rows for row in one.source.samples)
        insert(connection, "peer_samples", samples)
    except (duckdb.DataError, duckdb.InvalidInputException) as fault:
        connection.rollback()
        if len(rows) == 1:
            done.skipped[str(rows[0].source.place.folder)] = str(fault).splitlines()[0]
            return
        middle = len(rows) // 2
        _store(connection, rows[:middle], done)
        _store(connection, rows[middle:], done)
        return
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
    done.taken += len(rows)
    done.records += sum(len(one.records) for one in rows)
    done.partial |= {str(one.source.place.folder): one.faults for one in rows if one.faults}


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
