"""What a check of this node found, and how to provide what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FindingState = Literal["good", "note", "missing"]


@dataclass(frozen=True)
class Finding:
    """The result of one check. `note`: it works with a limitation. `missing`: missing for a comparison.

    topic: the heading under which it is printed, set by `pagewise.workloads.doctor`.
    """

    topic: str
    name: str
    state: FindingState
    detail: str
    remedy: str | None

    @property
    def is_missing(self) -> bool:
        """Whether something that a comparison needs is missing."""
        return self.state == "missing"


def good(name: str, detail: str) -> Finding:
    """It is as it should be."""
    return Finding("", name, "good", detail, None)


def note(name: str, detail: str, remedy: str | None = None) -> Finding:
    """It works with a limitation."""
    return Finding("", name, "note", detail, remedy)


def missing(name: str, detail: str, remedy: str | None = None) -> Finding:
    """A comparison needs it."""
    return Finding("", name, "missing", detail, remedy)
