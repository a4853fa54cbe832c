"""Takes new and changed results into the store, as far as they can be read."""

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
from pagewise.store.rows import analysed
from pagewise.store.sources import Place, Source, find_places, read_source
from pagewise.store.store import insert

# A step takes at most this much: what it holds in memory, and what an interruption loses.
_STEP_BYTES, _STEP_RESULTS = 100_000_000, 200
# Processes take a second to start; one process analyses this much in that time.
_WORTH_PROCESSES = 5_000_000
_PROCESSES = len(os.sched_getaffinity(0))
Analyse = Callable[[Iterable[Source]], Iterable[Source | str]]


@dataclass
class Collected:
    """What a collection did.

    `skipped`: folders that hold nothing of pagewise, with the reason. `conflicts`: folders that have the id
    of another result, with that result; none of these was taken.
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
    """Takes all results at or below the folders; calls `report` with the number done and the total.

    Each step is a transaction: an interruption loses nothing that was reported as done. Raises
    SelectionError, RefusedError.
    """
    places = find_places(folders)
    prints = dict(connection.execute("SELECT folder, print FROM sources").fetchall())
    changed = [place for place in places if prints.get(place.name) != place.print]
    with ExitStack() as stack:
        analyse: Analyse = _in_process
        if sum(place.bytes for place in changed) > _WORTH_PROCESSES and _PROCESSES > 1:
            # Forked processes would inherit DuckDB's threads.
            workers = ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn"))
            pool = stack.enter_context(workers)
            analyse = lambda sources: pool.map(_analysed, sources)  # noqa: E731
        collector = _Collector(connection, analyse, Collected(known=len(places) - len(changed)))
        passed = 0
        try:
            for step in _steps(changed):
                collector.take(collector.unknown(step))
                passed += len(step)
                report(passed, len(changed))
            collector.settle()
        except (duckdb.IOException, duckdb.OutOfMemoryException) as fault:
            raise RefusedError(
                f"the store cannot be written: {str(fault).splitlines()[0]}",
                remedy="free some space and collect again: what was taken before is kept",
            ) from fault
    return collector.done


def _in_process(sources: Iterable[Source]) -> Iterator[Source | str]:
    return map(_analysed, sources)


def _analysed(source: Source) -> Source | str:
    """The result with all rows, or why it has none."""
    try:
        return analysed(source)
    except PagewiseError as fault:
        return fault.what
    except MemoryError:
        raise
    # A fault of one folder must not prevent taking its neighbours.
    except Exception as fault:
        return f"not as pagewise writes it: {type(fault).__name__}: {fault}"


def _steps(places: Sequence[Place]) -> Iterator[list[Place]]:
    step: list[Place] = []
    for place in places:
        if step and (len(step) >= _STEP_RESULTS or sum(item.bytes for item in step) >= _STEP_BYTES):
            yield step
            step = []
        step.append(place)
    if step:
        yield step


class _Collector:
    """What the store has of each result, or will have; `done` counts it.

    If a result is in several folders, the one with the most content counts. This is decided in the end.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, analyse: Analyse, done: Collected) -> None:
        self._connection, self._analyse, self.done = connection, analyse, done
        self._held: dict[str, str] = dict(connection.execute("SELECT result, folder FROM results").fetchall())
        self._new: set[str] = set()
        self._duplicates: list[Source] = []

    def unknown(self, step: Sequence[Place]) -> list[Source]:
        """The results of a step that the store does not have from another folder."""
        sources: list[Source] = []
        for place in step:
            folder = place.name
            try:
                source = read_source(place)
            except PagewiseError as fault:
                self.done.skipped[folder] = fault.what
                continue
            if source.altered is not None:
                self.done.skipped[folder] = source.altered
                continue
            if source.result not in self._held:
                self._new.add(source.result)
            is_first = self._held.setdefault(source.result, folder) == folder
            (sources if is_first else self._duplicates).append(source)
        return sources

    def take(self, sources: Sequence[Source]) -> None:
        """Takes results in one transaction; what cannot be analysed is skipped."""
        results = []
        for source, item in zip(sources, self._analyse(sources), strict=True):
            if isinstance(item, str):
                self.done.skipped[source.place.name] = item
            else:
                results.append(item)
        self._store(results)

    def settle(self) -> None:
        """Decides on further folders of results that are now in the store."""
        copies, refused = [], set[str]()
        for source in self._duplicates:
            kind = "conflict" if source.result in refused else relation(self._connection, source)
            if kind == "conflict":
                refused.add(source.result)
                self._refuse(source)
            elif kind == "grown":
                # This folder has more of the result than the one that was taken first.
                if source.result in self._new:
                    self._undo(source.result)
                self.take([source])
                self.done.copies += 1
                self._held[source.result] = source.place.name
            else:
                copies.append(source)
                self.done.copies += 1
        # So that they are not read again.
        _remember(self._connection, copies)

    def _refuse(self, source: Source) -> None:
        """Excludes both a folder and the one with its id; what the store had before is kept and marked."""
        folder, held = source.place.name, self._held[source.result]
        self.done.conflicts[folder] = f"it has the id {source.result} of {held}, and other content"
        fault = f"it has the id {source.result} of {folder}, and other content"
        if source.result not in self._new:
            self._connection.execute(
                "UPDATE results SET partial = true, faults = list_append(faults, $fault) "
                "WHERE result = $result AND NOT list_contains(faults, $fault)",
                {"fault": fault, "result": source.result},
            )
        elif held not in self.done.conflicts:
            self._undo(source.result)
            self._connection.execute("DELETE FROM sources WHERE result = ?", [source.result])
        self.done.conflicts[held] = fault

    def _undo(self, result: str) -> None:
        """Removes a result that this collection took."""
        self.done.taken -= 1
        self.done.records -= _forget(self._connection, [result])
        self.done.partial.pop(self._held[result], None)

    def _store(self, results: Sequence[Source]) -> None:
        """Replaces all that the store has of results; skips those that it refuses, found by bisection."""
        if not results:
            return
        connection = self._connection
        connection.begin()
        try:
            _forget(connection, [item.result for item in results])
            _remember(connection, results)
            rows = [(item.result, item.rows()) for item in results]
            for table in rows[0][1]:
                insert(connection, table, (row | {"result": id_} for id_, t in rows for row in t[table]))
        except (duckdb.DataError, duckdb.IntegrityError, duckdb.InvalidInputException) as fault:
            connection.rollback()
            if len(results) == 1:
                self.done.skipped[results[0].place.name] = str(fault).splitlines()[0]
            else:
                middle = len(results) // 2
                self._store(results[:middle])
                self._store(results[middle:])
            return
        except BaseException:
            connection.rollback()
            raise
        connection.commit()
        self.done.taken += len(results)
        self.done.records += sum(len(item.records) for item in results)
        self.done.partial |= {item.place.name: item.faults for item in results if item.faults}


def _forget(connection: duckdb.DuckDBPyConnection, ids: list[str]) -> int:
    """Removes results from the store; the count of their records."""
    count = connection.execute(
        "SELECT count(*) FROM records WHERE list_contains(?, result)", [ids]
    ).fetchone()
    for table in ("records", "cells", "results"):
        connection.execute(f"DELETE FROM {table} WHERE list_contains(?, result)", [ids])
    return int(count[0]) if count else 0


def _remember(connection: duckdb.DuckDBPyConnection, sources: Iterable[Source]) -> None:
    rows = [(item.place.name, item.result, item.place.print, item.place.bytes) for item in sources]
    if rows:
        connection.executemany("INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?)", rows)
