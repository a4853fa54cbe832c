"""Finds results below folders, reads what each holds, and lists it."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.analysis.rows import TableRow, cell_rows
from pagewise.analysis.validity import invalid_reason
from pagewise.core.errors import FormatError, PagewiseError, SelectionError
from pagewise.core.record import Record, dump_record, parse_record, read_lines, read_records
from pagewise.core.result import MANIFEST, RECORDS, Result, read_result
from pagewise.core.structure import to_data

FILES = (MANIFEST, RECORDS)


@dataclass(frozen=True)
class Source:
    """A folder with a result.

    manifest: its data, or what the records show if there is none. read: the manifest and the plan, without
    records; None without a manifest. faults: what could not be read.
    """

    folder: Path
    manifest: Mapping[str, Any]
    read: Result | None
    faults: list[str]

    @property
    def name(self) -> str:
        """The folder as a text; bytes that are not UTF-8 are escaped."""
        return os.fsencode(self.folder).decode(errors="backslashreplace")

    @property
    def state(self) -> str | None:
        """The state of its session, None without a manifest."""
        return self.manifest.get("state")

    @property
    def content(self) -> bytes:
        """Its records as they are in the file; empty without one. Raises RefusedError."""
        return read_lines(self.folder / RECORDS) if (self.folder / RECORDS).is_file() else b""

    @property
    def altered(self) -> str | None:
        """How its records differ from those that were measured, None where they do not."""
        return None if self.read is None else self.read.altered


def find_sources(folders: Iterable[Path]) -> tuple[list[Source], dict[str, str]]:
    """The results at or below these folders, each once, in order; the other folders with their faults.

    Raises SelectionError if a folder is missing.
    """
    folders_below = set()
    for folder in folders:
        if not folder.is_dir():
            raise SelectionError(
                "there is no such folder", where=folder, remedy="name folders that hold results"
            )
        for path, below, files in os.walk(folder.resolve()):
            if not {*FILES}.isdisjoint(files):
                # A result's own folders hold no results.
                below.clear()
                folders_below.add(Path(path))
    sources, faults = [], {}
    for folder in sorted(folders_below):
        try:
            sources.append(read_source(folder))
        except PagewiseError as fault:
            faults[Source(folder, {}, None, []).name] = fault.message
    return sources, faults


def read_source(folder: Path) -> Source:
    """What a folder holds. If the manifest cannot be read, the records alone.

    Raises FormatError if the folder holds nothing of pagewise.
    """
    fault = None
    try:
        if (folder / MANIFEST).exists():
            read = read_result(folder, records=False)
            is_there = (folder / RECORDS).is_file()
            faults = [] if is_there else [f"{RECORDS} is missing or not a readable file"]
            return Source(folder, to_data(read.manifest), read, faults)
    except FormatError as error:
        fault = f"{error.message} ({error.where})"
    except (MemoryError, PagewiseError):
        raise
    # A fault of one folder must not prevent reading its neighbours.
    except Exception as error:
        fault = f"not as pagewise writes it: {type(error).__name__}: {error}"
    first = _first_record(folder / RECORDS)
    if first is None:
        raise FormatError(
            fault or "it contains no readable record",
            where=folder,
            remedy="copy it again from where it was made, or measure again; other results are not affected",
        )
    manifest = {
        "id": hashlib.sha256(dump_record(first)).hexdigest()[:16],
        "kind": "records",
        "name": folder.name,
        "created": first.started,
        "host": to_data(first.host) or {},
    }
    # A program's --record writes no manifest: that is not a fault.
    return Source(folder, manifest, None, [] if fault is None else [f"the manifest was ignored: {fault}"])


def _first_record(file: Path) -> Record | None:
    """The first line that is a record, None without any."""
    try:
        lines = read_lines(file).splitlines()
    except PagewiseError:
        return None
    return next((record for record, _ in map(parse_record, lines) if record is not None), None)


_REPORTS = (".csv", ".html", ".md")
_SCALARS = (str, int, float, bool)


def list_results(folders: Iterable[Path]) -> list[TableRow]:
    """Each result at or below the folders in order of time; other folders have a `fault`."""
    sources, faults = find_sources(folders)
    results = [_summary(source) for source in sources]
    results += [{"folder": folder, "fault": fault.partition("\n")[0]} for folder, fault in faults.items()]
    return sorted(results, key=lambda result: (result.get("created") or "", result["folder"]))


def show_result(folder: Path) -> TableRow:
    """What a result contains, and how its runs ended. Raises SelectionError, FormatError."""
    if not any((folder / name).exists() for name in FILES):
        raise FormatError(
            f"this folder contains no result: it has none of {', '.join(FILES)}",
            where=folder,
            remedy="name a results/<utc>-<name>; `pagewise results list` lists them",
        )
    source = read_source(folder.resolve())
    read = source.read
    records, skipped = read_records(folder / RECORDS) if (folder / RECORDS).is_file() else ([], [])
    runs = Counter((record.series or "run", record.status) for record in records)
    faults = Counter(filter(None, map(invalid_reason, records)))
    facts: TableRow = {}
    if read is not None:
        about, host = read.manifest, read.manifest.host
        for prefix, part in (
            ("", {**to_data(about), **to_data(host), **to_data(about.modules)}),
            ("thp_", to_data(host.thp) or {}),
            ("", {**to_data(about.provenance), "pagewise": about.software.get("pagewise")}),
        ):
            facts |= {prefix + name: value for name, value in part.items() if isinstance(value, _SCALARS)}
        facts["kernel_release"] = facts.pop("kernel")
    return {
        **facts,
        **_summary(source),
        "command": read and read.manifest.command,
        "command_line": read and read.manifest.command_line(),
        "faults": [*source.faults, *map(str, skipped)],
        "runs": [{"series": series, "status": status, "records": n} for (series, status), n in runs.items()],
        "excluded": [{"reason": reason, "records": number} for reason, number in faults.most_common()],
        "cells": [] if read is None else list(cell_rows(read.subjects, {})),
        "files": sorted(file.name for file in folder.iterdir() if file.suffix in _REPORTS),
    }


def _summary(source: Source) -> TableRow:
    manifest, read = source.manifest, source.read
    subjects = [] if read is None else read.subjects
    return {
        "folder": source.name,
        "result": manifest["id"],
        **{name: manifest.get(name) for name in ("name", "kind", "state", "created", "finished")},
        "hostname": manifest["host"].get("hostname"),
        "rounds": manifest.get("rounds_done"),
        "kernels": sorted({subject.benchmark.name for subject in subjects if subject.cells}),
        "configurations": len({cell.key for subject in subjects for cell in subject.cells}),
        "records": source.content.count(b"\n"),
        "faults": source.faults,
        "altered": source.altered,
    }
