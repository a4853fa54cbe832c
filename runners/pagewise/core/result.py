"""A result's folder: manifest.json, records.jsonl and what is made from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from pagewise.core.errors import FormatError, RefusedError, SelectionError
from pagewise.core.files import write_inside
from pagewise.core.manifest import Digest, Manifest
from pagewise.core.plan import Subject
from pagewise.core.reading import checked_document, parse_json, read_file
from pagewise.core.record import Record, Skipped, digest_of, read_lines, read_records
from pagewise.core.structure import to_data
from pagewise.core.text import command_text, json_text

MANIFEST, RECORDS, LOGS = "manifest.json", "records.jsonl", "logs"
_REMEDY = "copy the result again from where it was made; read it with the pagewise that wrote it"
_REMEDY_ALTERED = "copy the result again from where it was measured, or measure again"


@dataclass(frozen=True)
class Result:
    """What a folder holds: manifest, what was compared, the valid records, the invalid lines.

    `altered` reports how the records differ from those that were written, None where they do not.
    """

    folder: Path
    manifest: Manifest
    subjects: list[Subject]
    records: list[Record]
    skipped: list[Skipped]
    altered: str | None = None


def create_folder(results: Path, name: str, now: datetime) -> Path:
    """Creates `results/<utc>-<name>`, with -2 if that exists. Raises RefusedError, SelectionError."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise SelectionError(
            f"{name!r} cannot be the name of a folder",
            where="--name",
            remedy="use letters and digits, and between them dots, dashes and underscores",
        )
    stem = f"{now.strftime('%Y%m%dT%H%M%SZ')}-{name}"
    try:
        results.mkdir(parents=True, exist_ok=True)
        for suffix in ("", *(f"-{number}" for number in range(2, 100))):
            folder = results / (stem + suffix)
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
    except OSError as fault:
        raise RefusedError(
            f"the results folder cannot be created: {fault.strerror}",
            where=results,
            remedy="name another: --output DIR",
        ) from fault
    raise RefusedError(
        "a hundred results of this second have this name",
        where=results / stem,
        remedy="give this one another: --name NAME",
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest in one step: a reader sees the old one or the new one. Raises RefusedError."""
    try:
        write_inside(folder, MANIFEST, json_text(to_data(manifest)))
    except OSError as fault:
        raise RefusedError(
            f"the manifest cannot be written: {fault.strerror}; all records before it are kept",
            where=folder / MANIFEST,
            remedy="free some space, then: " + command_text(("pagewise", "report", str(folder))),
        ) from fault


def keep_log(folder: Path, name: str, text: str) -> str | None:
    """Keeps the output of a failed run; the file's name inside the folder, None when the disk refuses it."""
    try:
        return str(write_inside(folder, f"{LOGS}/{name}", text).relative_to(folder))
    except OSError:
        # The failure itself is in the record; a log that cannot be kept must not end the comparison.
        return None


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a result's folder. Raises FormatError."""
    return _read(folder)[0]


def _read(folder: Path) -> tuple[Manifest, list[Subject]]:
    """The manifest, and what it planned to measure. Raises FormatError."""
    file = folder / MANIFEST
    try:
        data = parse_json(read_file(file))
    except FileNotFoundError as fault:
        raise FormatError(
            "this folder holds no result: it has no manifest.json",
            where=folder,
            remedy="name a results/<utc>-<name>; `pagewise results list` lists them",
        ) from fault
    except (OSError, ValueError) as fault:
        raise FormatError(f"the manifest cannot be read: {fault}", where=file, remedy=_REMEDY) from fault
    manifest = checked_document(Manifest, data, file, _REMEDY)
    configurations = {one.module: one for one in manifest.configurations}
    return manifest, [Subject.of(planned, configurations) for planned in manifest.subjects]


def read_result(folder: Path, *, records: bool = True) -> Result:
    """Reads a folder; invalid lines among the records are listed, not read. Raises FormatError.

    Without `records`, reads the manifest only.
    """
    manifest, subjects = _read(folder)
    there = records and (folder / RECORDS).exists()
    read, skipped = read_records(folder / RECORDS) if there else ([], [])
    return Result(folder, manifest, subjects, read, skipped, find_alteration(folder, manifest))


def find_alteration(folder: Path, manifest: Manifest) -> str | None:
    """How a result's records differ from those that its manifest names, None where they do not.

    A session that was killed may have written more than its manifest names. Raises RefusedError.
    """
    named = manifest.records
    content = read_lines(folder / RECORDS) if (folder / RECORDS).exists() else b""
    # `replaced`: killed between the manifest of resumed records and these records.
    for known in filter(None, (Digest(named.lines, named.sha256), named.replaced)):
        lines = content.split(b"\n", known.lines)
        first = content[: len(content) - len(lines[-1])] if manifest.state == "running" else content
        if digest_of(first) == known:
            return None
    count = content.count(b"\n")
    fault = "changed" if count == named.lines else f"{count} lines instead of {named.lines}"
    return f"the records are not those that were measured ({fault})"


def check_unaltered(result: Result) -> Result:
    """The same result. Raises FormatError where its records were altered."""
    if result.altered is not None:
        raise FormatError(result.altered, where=result.folder / RECORDS, remedy=_REMEDY_ALTERED)
    return result


def utc_text(moment: datetime | None = None) -> str:
    """A moment, or now, as manifests and records write it."""
    return (moment or datetime.now(timezone.utc)).strftime("%Y-%m-%dT%H:%M:%SZ")
