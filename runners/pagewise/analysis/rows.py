"""The row of a configuration: what its runs say together, or why it is excluded. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from pagewise.analysis.bimodality import Bimodal, bimodal
from pagewise.analysis.drift import Drift
from pagewise.analysis.policies import run_seconds
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import trimmed_mean
from pagewise.analysis.validity import Code, Exclusion, exclusion, invalid_reason
from pagewise.analysis.verdict import Outcome, Reason
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import Cell
from pagewise.core.record import Record
from pagewise.core.units import count_text

# One run of these excludes its configuration; what a run was on or where it ran may differ in a few.
_FATAL = ("failed", "wrong_result")
# So many rounds may be missing: a tenth, and one of fewer than ten.
_MISSING_ROUNDS, _FEW_ROUNDS = 0.1, 10


@dataclass(frozen=True)
class Pages:
    """What pages the runs of a cell were on: sizes in bytes, and the lowest coverage of all runs."""

    requested: int
    observed: int
    coverage: float


@dataclass(frozen=True)
class Row:
    """A cell with what was measured of it: seconds per pass, and `time_ratio` to the compiler's baseline.

    `invalid` is the reason why it is not ranked, None when it is, `code` the same for programs. `is_fault`:
    whether it is something wrong (a result, pages, a crash) and not something missing. `note` reports runs
    that were left out. `rounds` are those with a valid run, of the `rounds_made` of its kernel.
    `reason` is why it cannot be told, None where it can; `p` that of the ratio among all comparisons of the
    result. `outliers` are rounds and their ratios, kept in all numbers; of the baseline those of A/A. `drift`
    is that of the ratio; of the baseline that of its time.
    """

    cell: Cell
    runs: int
    seconds: float | None = None
    seconds_trimmed: float | None = None
    populate: float | None = None
    wall: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    pages: Pages | None = None
    time_ratio: Ratio | None = None
    verdict: Outcome = "inconclusive"
    reason: Reason | None = None
    p: float | None = None
    outliers: tuple[tuple[int, float], ...] = ()
    bimodal: Bimodal | None = None
    drift: Drift | None = None
    invalid: str | None = None
    is_fault: bool = False
    remedy: str | None = None
    note: str | None = None
    code: Code | None = None
    rounds: int = 0
    rounds_made: int = 0

    @property
    def share(self) -> float:
        """The share of its kernel's rounds in which it has a valid run."""
        return self.rounds / self.rounds_made if self.rounds_made else 0.0


def valid_records(records: Iterable[Record]) -> list[Record]:
    """Those that may be ranked."""
    return [record for record in records if invalid_reason(record) is None]


def rounds_of(records: Iterable[Record]) -> set[int]:
    """The rounds in which they ran."""
    return {record.round for record in records}


def row_of(cell: Cell, records: Sequence[Record], made: Collection[int], found: Exclusion | None) -> Row:
    """A cell's row without comparison. `found` is what is known against all of its runs.

    One wrong result or crash excludes it, and so do pages that became unavailable, or were wrong in more than
    a few rounds.
    """
    valid = valid_records(records)
    valid_rounds = len(rounds_of(valid))
    bare = Row(cell, len(records), rounds=valid_rounds, rounds_made=len(made))
    if not records and found is None:
        why = "not measured: the comparison ended before its turn"
        remedy = "go on with it: --resume and this result's folder"
        return replace(bare, invalid=why, remedy=remedy, code="not_measured")
    faults = [(record, fault) for record in records if (fault := exclusion(record)) is not None]
    fatal = [(record, fault) for record, fault in faults if fault.code in _FATAL]
    if found is not None:
        return replace(bare, invalid=found.reason, is_fault=True, code=found.code)
    missing = len(made) - valid_rounds
    lost = bool(valid) and any(fault.code == "pages_unavailable" for _, fault in faults)
    too_few = missing > _MISSING_ROUNDS * max(len(made), _FEW_ROUNDS) or 2 * len(valid) < len(records)
    if fatal or lost or too_few:
        return _invalid_row(bare, records, fatal or faults, missing)
    seconds = [run_seconds(record) for record in valid]
    walls = [
        record.run.wall_seconds for record in valid if record.run and record.run.wall_seconds is not None
    ]
    fields = set.intersection(*(set(record.figures) for record in valid))
    return replace(
        bare,
        runs=len(valid),
        seconds=median(seconds),
        seconds_trimmed=trimmed_mean(seconds),
        populate=_median_told(record.seconds.populate for record in valid if record.seconds),
        wall=median(walls) if walls else None,
        metrics={name: median(record.figures[name] for record in valid) for name in sorted(fields)},
        pages=_pages(valid),
        bimodal=bimodal(seconds),
        note=_note(records, faults, missing),
    )


def _note(records: Sequence[Record], faults: Sequence[tuple[Record, Exclusion]], missing: int) -> str | None:
    if faults:
        return f"{len(faults)} of {len(records)} runs left out: {faults[0][1].reason}"
    return f"not measured in {count_text(missing, 'round')}" if missing else None


def _median_told(values: Iterable[float | None]) -> float | None:
    """The median of what was told, None when nothing was."""
    told = [value for value in values if value is not None]
    return median(told) if told else None


def _invalid_row(
    bare: Row, records: Sequence[Record], faults: Sequence[tuple[Record, Exclusion]], missing: int
) -> Row:
    """A row that cannot be ranked, for faults of its runs or because rounds are missing."""
    if not faults:
        why = f"{count_text(missing, 'round')} without a run of it"
        return replace(bare, pages=_pages(records), invalid=why, is_fault=True, code="incomplete")
    record, fault = faults[0]
    reason, code = fault.reason, fault.code
    if len(faults) < len(records):
        reason = f"{len(faults)} of {len(records)} runs: {reason}"
        if code in ("pages_unavailable", "wrong_pages"):
            reason = f"its pages could not be kept from round {record.round} on: {fault.reason}"
            code = "policy_not_kept"
    return replace(
        bare,
        pages=_pages(records),
        invalid=reason,
        is_fault=code != "pages_unavailable",
        remedy=None if record.failure is None else record.failure.remedy,
        code=code,
    )


def _pages(records: Sequence[Record]) -> Pages | None:
    told = [record.pages for record in records if record.pages is not None]
    if not told:
        return None
    # The run farthest from what was asked speaks for all of them.
    farthest = max if PagePolicy(told[0].policy).is_base else min
    worst = farthest(told, key=lambda pages: pages.huge_coverage)
    return Pages(worst.page_size_requested_bytes, worst.page_size_observed_bytes, worst.huge_coverage)
