"""Finds results below folders, and reads what each holds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.reading import read_file
from pagewise.core.record import LARGEST, Record, dumped, parse_record
from pagewise.core.result import MANIFEST, RECORDS, Result, read_result
from pagewise.core.structure import unstructured
from pagewise.store.columns import TableRow, columns, row_of

FILES = (MANIFEST, RECORDS)
# The columns of `results` that are fields of a manifest.
_MANIFEST = columns(
    {
        "": "kind name schema created finished state seed threads rounds=rounds_done baseline command",
        "host": "hostname cpu architecture kernel_release=kernel memory_bytes cpus smt base_page_size_bytes "
        "governors virtual_machine container",
        "host.thp": "thp=enabled thp_defrag=defrag",
        "modules": "environment",
        "prefetchers": "prefetchers_off=off",
        "software": "pagewise",
        "provenance": "project_commit project_dirty lockfile_sha256",
    }
)
#: The columns that identify a configuration of a result.
CELL = ("module", "run_pages", "run_placement", "run_options")
# The columns of `cells` that are fields of a subject's cell.
_CELL = columns(
    {
        "": "run_pages=pages run_placement=placement run_options=options is_baseline",
        "measured": "module package compiler hugepages prefetch stores loop library runtime simd sector "
        "flags target hash",
    }
)


@dataclass(frozen=True)
class Place:
    """A folder that looks like a result, with its files' sizes and times when it was found."""

    folder: Path
    print: str
    bytes: int

    @property
    def name(self) -> str:
        """The folder as the store has it; bytes that are not UTF-8 are escaped."""
        return os.fsencode(self.folder).decode(errors="backslashreplace")


@dataclass
class Source:
    """A result for the store: rows by table, the file of its records, what could not be read.

    `read` is a comparison's manifest and plan, without records. `altered` reports how its figures differ from
    those that were measured; such a result is not collected.
    """

    place: Place
    result: str
    about: TableRow
    file: Path | None
    cells: list[TableRow] = field(default_factory=list)
    records: list[TableRow] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    altered: str | None = None
    read: Result | None = None

    def rows(self) -> dict[str, list[TableRow]]:
        """The rows by table, without the result's id."""
        place = {"folder": self.place.name, "faults": self.faults, "partial": bool(self.faults)}
        return {"results": [self.about | place], "cells": self.cells, "records": self.records}


def find_places(folders: Iterable[Path]) -> list[Place]:
    """The folders at or below these that hold a manifest or records; each once, in order.

    Raises SelectionError if a folder is missing.
    """
    places: dict[Path, Place] = {}
    for folder in folders:
        if not folder.is_dir():
            raise SelectionError(
                "there is no such folder", where=folder, remedy="name folders that hold results"
            )
        for place in _walk(folder.resolve()):
            places.setdefault(place.folder, place)
    return sorted(places.values(), key=lambda place: place.folder)


def _walk(folder: Path) -> Iterator[Place]:
    for path, folders, files in os.walk(folder):
        names = sorted(set(FILES).intersection(files))
        if names:
            # A result's own folders hold no results.
            folders.clear()
            try:
                states = {name: _status(Path(path, name)) for name in names}
            except FileNotFoundError:
                # Deleted since the folder was listed.
                continue
            size = sum(state.st_size for state in states.values())
            prints = (f"{name}:{state.st_size}:{state.st_mtime_ns}" for name, state in states.items())
            yield Place(Path(path), " ".join(prints), size)


def _status(file: Path) -> os.stat_result:
    try:
        return file.stat()
    except OSError:
        # A broken link is reported when it is read.
        return file.lstat()


def read_source(place: Place) -> Source:
    """What a folder holds. If the manifest cannot be read, the records alone.

    Raises FormatError if the folder holds nothing of pagewise.
    """
    folder = place.folder
    file = folder / RECORDS
    records = file if file.is_file() and file.stat().st_size <= LARGEST else None
    fault = None
    try:
        if (folder / MANIFEST).exists():
            return _comparison(place, read_result(folder, records=False), records)
    except FormatError as error:
        fault = f"{error.what} ({error.where})"
    except MemoryError:
        raise
    # A fault of one folder must not prevent reading its neighbours.
    except Exception as error:
        fault = f"not as pagewise writes it: {type(error).__name__}: {error}"
    first = _first_record(records) if records is not None else None
    if first is None:
        raise FormatError(
            fault or "it contains no readable record",
            where=folder,
            remedy="copy it again from where it was made, or measure again; other results are not affected",
        )
    # A program's --record writes no manifest: that is not a fault.
    return _records_alone(place, first, [] if fault is None else [f"the manifest was ignored: {fault}"])


def _comparison(place: Place, read: Result, records: Path | None) -> Source:
    manifest = read.manifest
    nodes = len(manifest.host.numa_nodes)
    cells: list[TableRow] = [
        {
            "kernel": subject.kernel.name,
            "kernel_group": subject.kernel.group,
            # Configurations have an empty text where the store has no value.
            **{name: value if value != "" else None for name, value in row_of(cell, _CELL).items()},
            "stands_for": len(cell.stands_for),
        }
        for subject in read.subjects
        for cell in subject.cells
    ]
    return Source(
        place,
        manifest.id,
        {**row_of(manifest, _MANIFEST), "numa_nodes": nodes or None, "manifest": unstructured(manifest)},
        records,
        cells,
        faults=[] if records is not None else [f"{RECORDS} is missing or not a readable file"],
        altered=read.altered,
        read=read,
    )


def _records_alone(place: Place, first: Record, faults: list[str]) -> Source:
    about = {
        "kind": "records",
        "name": place.folder.name,
        "created": first.started,
        **row_of(first, columns({"host": "hostname cpu kernel_release=kernel"})),
    }
    identity = hashlib.sha256(dumped(first)).hexdigest()[:16]
    return Source(place, identity, about, place.folder / RECORDS, faults=faults)


def _first_record(file: Path) -> Record | None:
    """The first line that is a record, None without any."""
    try:
        lines = read_file(file).splitlines()
    except OSError:
        return None
    return next((record for record, _ in map(parse_record, lines) if record is not None), None)
