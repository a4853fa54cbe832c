"""Lists results, and shows what one contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from pagewise.analysis.judgement import TableRow, cell_rows
from pagewise.analysis.validity import invalid_reason
from pagewise.core.errors import FormatError
from pagewise.core.record import read_records
from pagewise.core.result import RECORDS
from pagewise.core.structure import unstructured
from pagewise.store.sources import FILES, Source, find_sources, read_source

_REPORTS = (".csv", ".html", ".md")
_SCALARS = (str, int, float, bool)


def listed(folders: Iterable[Path]) -> list[TableRow]:
    """Each result at or below the folders in order of time; other folders have a `fault`."""
    sources, faults = find_sources(folders)
    results = [_summary(source) for source in sources]
    results += [{"folder": folder, "fault": fault.partition("\n")[0]} for folder, fault in faults.items()]
    return sorted(results, key=lambda result: (result.get("created") or "", result["folder"]))


def shown(folder: Path) -> TableRow:
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
            ("", {**unstructured(about), **unstructured(host), **unstructured(about.modules)}),
            ("thp_", unstructured(host.thp) or {}),
            ("", {**unstructured(about.provenance), "pagewise": about.software.get("pagewise")}),
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
        "not_ranked": [{"reason": reason, "records": number} for reason, number in faults.most_common()],
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
        "kernels": sorted({subject.kernel.name for subject in subjects if subject.cells}),
        "configurations": len({cell.key for subject in subjects for cell in subject.cells}),
        "records": source.content.count(b"\n"),
        "faults": source.faults,
        "altered": source.altered,
    }
