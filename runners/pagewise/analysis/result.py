"""What of a whole result may be analysed: its records as they were written, of files that stayed the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pagewise.analysis.validity import Exclusion
from pagewise.core.record import Record

if TYPE_CHECKING:
    from pagewise.core.result import Result


Excluding = Callable[[str], Exclusion | None]  # by module


def nothing_excluded(module: str) -> None:
    """What excludes no module."""


def excluding(result: Result) -> Excluding:
    """What gives for a module of a result the reason why nothing of it may be ranked, if there is one."""
    return lambda module: excluded(result.manifest, module, result.altered)


def excluded(manifest: Mapping[str, Any], module: str, altered: str | None) -> Exclusion | None:
    """Why nothing that was measured of a module may be ranked, whatever its records say."""
    if altered is not None:
        return Exclusion("records_altered", altered)
    changed = [one for one in manifest.get("changed_files", ()) if one["module"] == module]
    if not changed:
        return None
    files = ", ".join(one["file"] for one in changed)
    return Exclusion("file_changed", f"changed during the session, in round {changed[0]['round']}: {files}")


def trusted_records(result: Result) -> list[Record]:
    """The records of modules that may be ranked, for tables beside the analysis."""
    return [
        record
        for record in result.records
        if record.run is None or excluding(result)(record.run.module) is None
    ]
