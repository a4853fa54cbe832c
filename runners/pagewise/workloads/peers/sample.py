"""What one run gave."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pagewise.core.text import json_text

Side = Literal["ours", "theirs"]
Series = Literal["trial", "compare", "aa"]


@dataclass(frozen=True)
class Candidate:
    """One way to do it: of ours a configuration with arguments, of a peer a test with pages."""

    side: Side
    label: str
    compiler: str | None


@dataclass(frozen=True)
class Sample:
    """A run: its figure in the unit of its match, or why it has none. `pages` says what it ran on."""

    match: str
    candidate: Candidate
    series: Series
    round: int
    position: int
    command: tuple[str, ...]
    value: float | None
    reason: str | None = None
    pages: str | None = None
    seconds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """For peers.json."""
        return asdict(self)


def digest_of(samples: Sequence[Any]) -> str:
    """The SHA-256 of samples as they stand in peers.json: whether they were changed there shows by it."""
    return hashlib.sha256(json_text(list(samples), indent=None).encode()).hexdigest()
