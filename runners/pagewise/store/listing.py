"""Tells of results without a store: which there are, and what one holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pagewise.analysis.validity import invalid_reason
from pagewise.core.errors import PagewiseError
from pagewise.core.record import read_records
from pagewise.store.sources import FILES, Source, find_places, read_source

# What tells the configurations of a result apart.
_CELL = ("module", "run_pages", "run_placement")
_REPORTS = (".csv", ".html", ".md", ".tex")


def listed(folders: Iterable[Path]) -> list[dict[str, Any]]:
    """What each result at or below the folders is, in order of time; what is none with `fault`."""
    found = []
    for place in find_places(folders):
        try:
            found.append(_told(read_source(place)))
        except PagewiseError as fault:
            found.append({"folder": str(place.folder), "fault": fault.what.partition("\n")[0]})
    return sorted(found, key=lambda one: (one.get("created") or "", one["folder"]))


def _told(source: Source) -> dict[str, Any]:
    about = source.about
    plain = ("name", "kind", "state", "created", "finished", "hostname", "rounds")
    return {
        "folder": str(source.place.folder),
        "result": source.result,
        **{name: about.get(name) for name in plain},
        "kernels": sorted({cell["kernel"] for cell in source.cells}),
        "configurations": len({tuple(cell[name] for name in _CELL) for cell in source.cells}),
        "records": _lines(source.records) if source.records is not None else len(source.samples),
        "faults": source.faults,
        "altered": source.altered,
    }


def _lines(file: Path) -> int:
    with file.open("rb") as stream:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(1 << 20), b""))


def shown(folder: Path) -> dict[str, Any]:
    """All that a result says of itself, and how its runs ended. Raises SelectionError, FormatError."""
    place = next((one for one in find_places([folder]) if one.folder == folder.resolve()), None)
    if place is None:
        from pagewise.core.errors import FormatError

        raise FormatError(
            f"this folder holds no result: it has none of {', '.join(FILES)}",
            where=folder,
            remedy="name a results/<utc>-<name>; `pagewise results list` lists them",
        )
    source = read_source(place)
    about = {name: value for name, value in source.about.items() if name != "manifest"}
    records, skipped = read_records(source.records) if source.records is not None else ([], [])
    runs = Counter((record.series or "run", record.status) for record in records)
    faults = Counter(filter(None, map(invalid_reason, records)))
    return {
        **_told(source),
        **about,
        "faults": [*source.faults, *map(str, skipped)],
        "runs": [{"series": series, "status": status, "records": n} for (series, status), n in runs.items()],
        "not_ranked": [{"reason": reason, "records": number} for reason, number in faults.most_common()],
        "cells": source.cells,
        "files": sorted(file.name for file in folder.iterdir() if file.suffix in _REPORTS),
    }
