"""Which modules of a result may be ranked: records as they were written, of files that did not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pagewise.analysis.validity import Exclusion
from pagewise.core.record import Record

if TYPE_CHECKING:
    from pagewise.core.manifest import ChangedFile
    from pagewise.core.result import Result

#: Why nothing of a module may be ranked, None if it may.
Excluding = Callable[[str], Exclusion | None]


def nothing_excluded(module: str) -> None:
    """Excludes no module."""


def excluding(result: Result) -> Excluding:
    """The exclusions of a result, by module: altered records, and files that changed during the session."""
    changes: dict[str, list[ChangedFile]] = {}
    for entry in result.manifest.changed_files:
        changes.setdefault(entry.module, []).append(entry)

    def excluded(module: str) -> Exclusion | None:
        if result.altered is not None:
            return Exclusion("records_altered", result.altered)
        if module not in changes:
            return None
        first, *_ = changed = changes[module]
        files = ", ".join(entry.file for entry in changed)
        return Exclusion("file_changed", f"changed during the session, in round {first.round}: {files}")

    return excluded


def trusted_records(result: Result) -> list[Record]:
    """The records of modules that may be ranked, for tables beside the analysis."""
    excluded = excluding(result)
    return [record for record in result.records if record.run is None or excluded(record.run.module) is None]
