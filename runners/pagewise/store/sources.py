"""Finds results below folders, and reads what each says of itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.reading import read_file
from pagewise.core.record import LARGEST, Record, dumped, parse_record, read_records
from pagewise.core.result import MANIFEST, RECORDS, Result, read_result
from pagewise.workloads.peers.analysis import samples

FILES = (MANIFEST, RECORDS)


@dataclass(frozen=True)
class Place:
    """A folder that looks like a result, and what its files looked like when it was found."""

    folder: Path
    print: str
    bytes: int


@dataclass
class Source:
    """A result as the store takes it: rows by table, the file of its records, what could not be read.

    `read` is a comparison's manifest and plan, without records. `altered` reports how its figures differ from
    those that were measured; such a result is not taken.
    """

    place: Place
    result: str
    about: dict[str, Any]
    records: Path | None
    cells: list[dict[str, Any]] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    altered: str | None = None
    read: Result | None = None

    def row(self) -> dict[str, Any]:
        """The row of `results`."""
        told = {"result": self.result, "folder": str(self.place.folder), "faults": self.faults}
        return {**self.about, **told, "partial": bool(self.faults)}


def find_places(folders: Iterable[Path]) -> list[Place]:
    """The folders at or below these that hold a manifest or records; each once, in order.

    Raises SelectionError when one is no folder.
    """
    found: dict[Path, Place] = {}
    for folder in folders:
        if not folder.is_dir():
            raise SelectionError(
                "there is no such folder", where=folder, remedy="name folders that hold results"
            )
        for inside in _walk(folder.resolve()):
            found.setdefault(inside.folder, inside)
    return sorted(found.values(), key=lambda place: place.folder)


def _walk(folder: Path) -> Iterator[Place]:
    for path, folders, files in os.walk(folder):
        held = sorted(set(FILES).intersection(files))
        if held:
            # A result's own folders hold no results.
            folders.clear()
            place = _place(Path(path), held)
            if place is not None:
                yield place


def _place(folder: Path, held: Iterable[str]) -> Place | None:
    """The folder with its files' sizes and times; None when they went away meanwhile."""
    try:
        told = {name: _status(folder / name) for name in held}
    except FileNotFoundError:
        return None
    size = sum(one.st_size for one in told.values())
    return Place(folder, " ".join(f"{n}:{s.st_size}:{s.st_mtime_ns}" for n, s in told.items()), size)


def _status(file: Path) -> os.stat_result:
    try:
        return file.stat()
    except OSError:
        # A link that leads nowhere is reported when it is read.
        return file.lstat()


def read_source(place: Place) -> Source:
    """What a folder holds. A manifest that cannot be read leaves the records, told by these alone.

    Raises FormatError when nothing of it is ours.
    """
    folder = place.folder
    file = folder / RECORDS
    records = file if file.is_file() and file.stat().st_size <= LARGEST else None
    fault = None
    try:
        if (folder / MANIFEST).exists():
            return _comparison(place, read_result(folder, records=False), records)
    except FormatError as found:
        fault = f"{found.what} ({found.where})"
    # Whatever is wrong in one folder, its neighbours are read.
    except Exception as found:
        fault = f"not as pagewise writes it: {type(found).__name__}: {found}"
    first = _first_record(records) if records is not None else None
    if first is None:
        raise FormatError(
            fault or "none of its records can be read",
            where=folder,
            remedy="copy it anew from where it was made, or measure again; other results are not touched",
        )
    # A program's own --record writes no manifest: that is no fault.
    return _records_alone(place, first, [] if fault is None else [f"the manifest was left out: {fault}"])


def _comparison(place: Place, read: Result, records: Path | None) -> Source:
    manifest, host = read.manifest, read.manifest["host"]
    about = {
        "kind": manifest["kind"],
        **_common(manifest, host),
        "threads": manifest["threads"],
        "rounds": manifest["rounds_done"],
        "baseline": manifest["baseline"],
        "environment": manifest["modules"]["environment"],
        "prefetchers_off": (manifest.get("prefetchers") or {}).get("off"),
    }
    cells = [
        {
            "kernel": one.kernel.name,
            "kernel_group": one.kernel.group,
            "module": cell.measured.module,
            "run_pages": cell.pages,
            "run_placement": cell.placement,
            "package": cell.measured.package,
            "compiler": cell.measured.compiler,
            "hugepages": cell.measured.hugepages,
            "prefetch": cell.measured.prefetch,
            "stores": cell.measured.stores,
            "library": cell.measured.library or None,
            "runtime": cell.measured.runtime or None,
            "simd": cell.measured.simd or None,
            "target": cell.measured.target,
            "hash": cell.measured.hash,
            "is_baseline": cell.is_baseline,
            "stands_for": len(cell.stands_for),
        }
        for one in read.subjects
        for cell in one.cells
    ]
    faults = [] if records is not None else [f"{RECORDS} is missing or no usable file"]
    identity = str(manifest["id"])
    if manifest["kind"] != "peers":
        return Source(place, identity, about, records, cells, [], faults, read.altered, read)
    # Figures of both sides, which are no runs of configurations.
    figures = [] if records is None else _peer_samples(records, manifest)
    return Source(place, identity, about, None, [], figures, faults, read.altered)


def _peer_samples(file: Path, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of `peer_samples`."""
    matches = {match["name"]: match for match in manifest["peers"]["matches"]}
    return [
        {
            "match": sample.match,
            "side": sample.candidate.side,
            "candidate": sample.candidate.label,
            "compiler": sample.candidate.compiler,
            "unit": matches[sample.match]["unit"],
            "better": matches[sample.match]["better"],
            "series": sample.series,
            "round": sample.round,
            "value": sample.value,
            "pages": sample.pages,
            "reason": sample.reason,
        }
        for sample in samples(read_records(file)[0], manifest)
    ]


def _common(told: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, Any]:
    thp, provenance = host.get("thp") or {}, told["provenance"]
    plain = (
        "hostname",
        "cpu",
        "architecture",
        "memory_bytes",
        "cpus",
        "smt",
        "base_page_size_bytes",
        "governors",
        "virtual_machine",
        "container",
    )
    return {
        **{name: told.get(name) for name in ("name", "schema", "created", "finished", "state", "seed")},
        **{name: host.get(name) for name in plain},
        "kernel_release": host["kernel"],
        "numa_nodes": len(host.get("numa_nodes") or ()) or None,
        "thp": thp.get("enabled"),
        "thp_defrag": thp.get("defrag"),
        "pagewise": told["software"].get("pagewise"),
        **{name: provenance.get(name) for name in ("project_commit", "project_dirty", "lockfile_sha256")},
        "command": told["command"],
        "manifest": told,
    }


def _records_alone(place: Place, first: Record, faults: list[str]) -> Source:
    host = first.host
    about = {
        "kind": "records",
        "name": place.folder.name,
        "created": first.started,
        "hostname": None if host is None else host.hostname,
        "cpu": None if host is None else host.cpu,
        "kernel_release": None if host is None else host.kernel,
    }
    return Source(place, _digest(dumped(first).decode()), about, place.folder / RECORDS, faults=faults)


def _first_record(file: Path) -> Record | None:
    """The first line that is a record, None when there is none."""
    try:
        lines = read_file(file).splitlines()
    except OSError:
        return None
    return next((record for record, _ in map(parse_record, lines) if record is not None), None)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
