"""A node's attempts at a comparison: result folders, of which a requeued job leaves several."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.analysis.analysis import analyse_result
from pagewise.core.errors import FormatError
from pagewise.core.reading import parse_json, read_file
from pagewise.core.result import MANIFEST, RECORDS, Result, read_result


@dataclass(frozen=True)
class Attempt:
    """A result folder and how it ended: manifest's `state`, `running` where it was killed."""

    folder: Path
    state: str
    rounds: int
    manifest: dict[str, Any]

    @property
    def has_records(self) -> bool:
        """Whether anything was measured."""
        file = self.folder / RECORDS
        return file.exists() and file.stat().st_size > 0

    def read(self) -> Result:
        """The result. Raises FormatError."""
        return read_result(self.folder)


def attempts(folder: Path) -> list[Attempt]:
    """The attempts below a node's folder, oldest first; a folder without a readable manifest is none."""
    found = []
    for file in folder.glob(f"*/{MANIFEST}"):
        try:
            manifest = parse_json(read_file(file))
            found.append(Attempt(file.parent, manifest["state"], manifest["rounds_done"], manifest))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return sorted(found, key=lambda one: (one.manifest.get("created") or "", one.folder.name))


def newest(folder: Path) -> Attempt | None:
    """The newest attempt, None without any."""
    return next(reversed(attempts(folder)), None)


def best(found: list[Attempt]) -> Attempt | None:
    """The newest complete attempt, else the one with the most rounds."""
    complete = [one for one in found if one.state == "complete"]
    return complete[-1] if complete else max(found, key=lambda one: one.rounds, default=None)


def figures(attempt: Attempt | None) -> dict[str, float]:
    """Seconds a pass by `kernel/compiler/configuration`, of the rows that may be ranked."""
    if attempt is None:
        return {}
    try:
        result = attempt.read()
    except FormatError:
        return {}
    kernels = analyse_result(result)
    return {
        f"{one.kernel.name}/{group.compiler}/{row.cell.measured.label}": row.seconds
        for one in kernels
        for group in one.groups
        for row in group.ranked
        if row.seconds is not None
    }
