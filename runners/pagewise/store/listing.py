"""Lists results without a store, and shows what one contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from pagewise.analysis.validity import invalid_reason
from pagewise.core.errors import FormatError, PagewiseError
from pagewise.core.manifest import Manifest
from pagewise.core.record import read_records
from pagewise.core.structure import structured
from pagewise.store.columns import TableRow
from pagewise.store.sources import CELL, FILES, Source, find_places, read_source

_ABOUT = ("name", "kind", "state", "created", "finished", "hostname", "rounds")
_REPORTS = (".csv", ".html", ".md")


def listed(folders: Iterable[Path]) -> list[TableRow]:
    """Each result at or below the folders in order of time; other folders have a `fault`."""
    results = []
    for place in find_places(folders):
        try:
            results.append(_summary(read_source(place)))
        except PagewiseError as fault:
            results.append({"folder": str(place.folder), "fault": fault.what.partition("\n")[0]})
    return sorted(results, key=lambda result: (result.get("created") or "", result["folder"]))


def shown(folder: Path) -> TableRow:
    """What a result contains, and how its runs ended. Raises SelectionError, FormatError."""
    place = next((place for place in find_places([folder]) if place.folder == folder.resolve()), None)
    if place is None:
        raise FormatError(
            f"this folder contains no result: it has none of {', '.join(FILES)}",
            where=folder,
            remedy="name a results/<utc>-<name>; `pagewise results list` lists them",
        )
    source = read_source(place)
    records, skipped = read_records(source.file) if source.file is not None else ([], [])
    manifest = source.about.get("manifest")
    runs = Counter((record.series or "run", record.status) for record in records)
    faults = Counter(filter(None, map(invalid_reason, records)))
    return {
        **_summary(source),
        **{name: value for name, value in source.about.items() if name != "manifest"},
        "command_line": structured(Manifest, manifest).command_line() if manifest else None,
        "faults": [*source.faults, *map(str, skipped)],
        "runs": [{"series": series, "status": status, "records": n} for (series, status), n in runs.items()],
        "not_ranked": [{"reason": reason, "records": number} for reason, number in faults.most_common()],
        "cells": source.cells,
        "files": sorted(file.name for file in folder.iterdir() if file.suffix in _REPORTS),
    }


def _summary(source: Source) -> TableRow:
    return {
        "folder": str(source.place.folder),
        "result": source.result,
        **{name: source.about.get(name) for name in _ABOUT},
        "kernels": sorted({cell["kernel"] for cell in source.cells}),
        "configurations": len({tuple(cell[name] for name in CELL) for cell in source.cells}),
        "records": _lines(source.file) if source.file is not None else 0,
        "faults": source.faults,
        "altered": source.altered,
    }


def _lines(file: Path) -> int:
    with file.open("rb") as stream:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(1 << 20), b""))
