"""Reads results of several sessions and judges what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pagewise.analysis.result import excluding
from pagewise.analysis.sessions import Change, Quantity, changes, session
from pagewise.core.errors import SelectionError
from pagewise.core.result import Result, check_unaltered, read_result
from pagewise.store.differences import Difference, differences

REGRESSION, INCOMPLETE, INCOMPARABLE, UNCLEAR = 1, 5, 6, 7


@dataclass(frozen=True)
class Diff:
    """What changed from the earlier results to the new one."""

    olds: tuple[Result, ...]
    new: Result
    quantity: Quantity
    threshold: float
    differing: tuple[Difference, ...]
    judged: bool
    changes: tuple[Change, ...]

    def count(self, status: str) -> int:
        """How many cells it is true of."""
        return sum(one.status == status for one in self.changes)

    def exit_code(self, strict: bool) -> int:
        """0, or what is the matter, the worst first; docs/diff.md has the list."""
        if not self.judged:
            return INCOMPARABLE
        if self.count("regression"):
            return REGRESSION
        if self.count("invalid") or self.count("missing"):
            return INCOMPLETE
        return UNCLEAR if strict and (self.count("inconclusive") or self.count("other")) else 0


def compare(
    folders: Sequence[Path], quantity: Quantity, threshold: float, across_machines: bool, seed: int
) -> Diff:
    """Reads the results and judges. Raises FormatError, SelectionError."""
    *olds, new = [_readable(folder) for folder in folders]
    differing = list(dict.fromkeys(one for old in olds for one in differences(old, new)))
    judged = across_machines or not any(one.forbids for one in differing)
    sessions = [session(one.subjects, one.records, seed, excluding(one)) for one in (*olds, new)]
    found = changes(sessions[:-1], sessions[-1], quantity, threshold, judged)
    return Diff(tuple(olds), new, quantity, threshold, tuple(differing), judged, tuple(found))


def _readable(folder: Path) -> Result:
    result = check_unaltered(read_result(folder))
    if result.manifest["kind"] == "peers":
        raise SelectionError(
            "this holds figures of peers, which are not a comparison of configurations",
            where=folder,
            remedy="name results of compare",
        )
    if result.manifest["kind"] in ("counters", "simulation"):
        raise SelectionError(
            "this holds counts of events, not timed runs",
            where=folder,
            remedy="name results of compare",
        )
    return result
