"""The figure of one run, as records keep it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from pagewise.core.record import Record
from pagewise.core.record_parts import PeerFigure, RunOf

if TYPE_CHECKING:
    from pagewise.workloads.peers.plan import Match

Side = Literal["ours", "theirs"]
Series = Literal["trial", "compare", "aa"]


@dataclass(frozen=True)
class Candidate:
    """An alternative: of ours a configuration with arguments, of a peer a test with pages."""

    side: Side
    label: str
    compiler: str | None


@dataclass(frozen=True)
class Sample:
    """A run: its figure in the unit of its match, or why it has none. `pages` says what it ran on."""

    match: str
    candidate: Candidate
    series: str
    round: int
    position: int
    command: tuple[str, ...]
    value: float | None
    reason: str | None = None
    pages: str | None = None
    seconds: float | None = None


def recorded(
    match: Match, candidate: Candidate, value: float | None, reason: str | None, pages: str | None
) -> PeerFigure:
    """The `sample` of a record."""
    return PeerFigure(match.name, candidate.side, candidate.compiler, value, reason, pages)


def samples(records: Iterable[Record], manifest: Mapping[str, Any]) -> list[Sample]:
    """The samples of records; those of programs that changed during the session have no figure."""
    changed: dict[str, list[str]] = {}
    for entry in manifest.get("changed_files", ()):
        changed.setdefault(entry["module"], []).append(entry["file"])
    return [
        _sample(record.sample, record.run, changed.get(record.run.module))
        for record in records
        if record.sample is not None and record.run is not None and record.run.series in get_args(Series)
    ]


def _sample(sample: PeerFigure, run: RunOf, changed: list[str] | None) -> Sample:
    reason = sample.reason if changed is None else f"changed during the session: {', '.join(changed)}"
    return Sample(
        sample.match,
        Candidate(sample.side, run.module, sample.compiler),
        run.series,
        run.round,
        run.position,
        run.command,
        sample.value if changed is None else None,
        reason,
        sample.pages,
        run.wall_seconds,
    )
