"""From samples to rows: the best candidates of both sides, their speed-up, and the target it has to meet."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import noise_floor, ratio
from pagewise.analysis.targets import Aim, TargetAnswer, answers, same_mode, split
from pagewise.analysis.validity import Code, exclusion
from pagewise.core.manifest import ChangedFile
from pagewise.core.record import Record
from pagewise.workloads.peers.plan import Match, Target

Side = Literal["ours", "theirs"]

# After the trial runs, so many candidates of each side (of ours: of each compiler) continue, and none that is
# this far behind the best.
CARRIED, FAR_BEHIND = 4, 1.25


# What excludes a run, not its candidate: another run may be on the pages asked for.
_OF_A_RUN: tuple[Code, ...] = ("wrong_pages", "pages_unavailable")


@dataclass(frozen=True)
class Candidate:
    """An alternative: of ours a configuration with arguments, of a peer a test with a page policy."""

    side: Side
    label: str
    compiler: str | None


@dataclass(frozen=True)
class Sample:
    """A run: its figure in the unit of its match, or why it has none (`reason`, and its `code`)."""

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
    code: Code | None = None

    @property
    def excludes_candidate(self) -> bool:
        """Whether no run of its candidate may be used."""
        return self.reason is not None and self.code not in _OF_A_RUN


@dataclass(frozen=True)
class Best:
    """The candidate with the best median of its figures, which are by round."""

    candidate: Candidate
    median: float
    values: Mapping[int, float]


@dataclass(frozen=True)
class Row:
    """A line of the table: ours over theirs (`speedup`, above 1: ours is better) against a target.

    scope: `all`, or the compiler whose best it is. missing: why there is no speedup. notes: modes of the
    machine, and excluded candidates.
    """

    match: Match
    scope: str
    target: Target
    ours: Best | None
    theirs: Best | None
    speedup: Ratio | None = None
    floor: float | None = None
    answer: TargetAnswer = "inconclusive"
    missing: str | None = None
    notes: tuple[str, ...] = ()
    aim: Aim | None = None


def samples(records: Iterable[Record], changed_files: Iterable[ChangedFile] = ()) -> list[Sample]:
    """The samples of records; those of programs that changed during the session have no figure."""
    changed: dict[str, list[str]] = {}
    for entry in changed_files:
        changed.setdefault(entry.module, []).append(entry.file)
    known = []
    for record in records:
        sample, run = record.sample, record.run
        if sample is None or run is None or run.series not in ("trial", "compare", "aa"):
            continue
        value, reason = sample.value, sample.reason
        fault = None if reason is None else exclusion(record)
        code = None if fault is None else fault.code
        if run.module in changed:
            code, value = "file_changed", None
            reason = f"changed during the session: {', '.join(changed[run.module])}"
        candidate = Candidate(sample.side, run.module, sample.compiler)
        where = (sample.match, candidate, run.series, run.round, run.position, run.command)
        known.append(Sample(*where, value, reason, sample.pages, run.wall_seconds, code))
    return known


def carried_on(samples: Sequence[Sample], match: Match) -> set[Candidate]:
    """The candidates that were the best of their side in the trial runs, or not far behind."""
    groups: dict[tuple[str, str | None], list[Sample]] = {}
    for sample in samples:
        if sample.value is not None:
            side = sample.candidate.side
            key = (side, sample.candidate.compiler if side == "ours" else None)
            groups.setdefault(key, []).append(sample)
    kept = set()
    for group in groups.values():
        ranked = sorted(group, key=lambda s: s.value or 0.0, reverse=match.better == "higher")
        for sample in ranked[:CARRIED]:
            if _speedup(ranked[0].value or 1.0, sample.value or 1.0, match) <= FAR_BEHIND:
                kept.add(sample.candidate)
    return kept


def best(samples: Sequence[Sample], match: Match) -> Best | None:
    """The candidate with the best median over the rounds that count.

    One wrong result or crash excludes a candidate, wrong pages exclude the run.
    """
    by_candidate: dict[Candidate, dict[int, float]] = {}
    excluded = {sample.candidate for sample in samples if sample.excludes_candidate}
    for sample in samples:
        if sample.series == "compare" and sample.value is not None and sample.candidate not in excluded:
            by_candidate.setdefault(sample.candidate, {})[sample.round] = sample.value
    ranked = [Best(candidate, median(values.values()), values) for candidate, values in by_candidate.items()]
    if not ranked:
        return None
    return (max if match.better == "higher" else min)(ranked, key=lambda best: best.median)


def rows(match: Match, samples: Sequence[Sample], missing: str | None, seed: int) -> list[Row]:
    """The lines of one match, not judged: one for each target and compiler it is meant for."""
    theirs = best([s for s in samples if s.candidate.side == "theirs"], match)
    ours = [s for s in samples if s.candidate.side == "ours"]
    floor = _floor(match, samples, seed)
    lines = []
    for target in match.targets:
        if target.scope == "all":
            scopes: list[tuple[str, list[Sample]]] = [("all", ours)]
        else:
            named = {s.candidate.compiler for s in ours if s.candidate.compiler}
            names: list[str | None] = [*sorted(named)] or [match.compiler]
            scopes = [(name or "each", [s for s in ours if s.candidate.compiler == name]) for name in names]
        for scope, those in scopes:
            notes = (*((match.remark,) if match.remark else ()), *_excluded(samples))
            row = Row(match, scope, target, best(those, match), theirs, floor=floor, notes=notes)
            lines.append(_compared(row, missing, seed))
    return lines


def judged(rows: Sequence[Row]) -> list[Row]:
    """The rows with their answers: those of all matches are judged together."""
    aimed = [row for row in rows if row.aim is not None]
    all_answers = answers([row.aim for row in aimed if row.aim is not None])
    by_row = dict(zip(map(id, aimed), all_answers, strict=True))
    return [replace(row, answer=by_row.get(id(row), row.answer)) for row in rows]


def _compared(row: Row, missing: str | None, seed: int) -> Row:
    """The row with its speedup and answer, from the rounds that both sides have."""
    match, ours, theirs = row.match, row.ours, row.theirs
    if ours is None or theirs is None:
        sides = (("ours has no figure", ours), ("theirs has no figure", theirs))
        return replace(row, missing=missing or " and ".join(text for text, side in sides if side is None))
    notes = row.notes
    border = split([*ours.values.values(), *theirs.values.values()]) if match.threads > 1 else None
    shared = same_mode(ours.values, theirs.values, border)
    if border is not None:
        notes = (
            *notes,
            f"two modes of the machine, separated at {border:.3g}: compared are the {len(shared)} of "
            f"{len(ours.values.keys() & theirs.values.keys())} rounds that had both sides in the same one",
        )
    pairs = tuple(_speedup(ours.values[number], theirs.values[number], match) for number in shared)
    seed = _seed(seed, match, row.scope)
    aim = Aim(pairs, row.floor, row.target.least, row.target.most, seed)
    return replace(row, speedup=aim.speedup, aim=aim, notes=notes)


def _floor(match: Match, samples: Sequence[Sample], seed: int) -> float | None:
    """From the runs of ours that run twice per round; with several threads, those in the same mode."""
    twins = {s.candidate for s in samples if s.series == "aa"}
    again, first = (
        {
            s.round: s.value
            for s in samples
            if s.series == series and s.candidate in twins and s.value is not None
        }
        for series in ("aa", "compare")
    )
    border = split([*again.values(), *first.values()]) if match.threads > 1 else None
    rounds = same_mode(again, first, border)
    ratios = [_speedup(again[number], first[number], match) for number in rounds]
    return noise_floor(ratio(ratios, _seed(seed, match, "aa")))


def _excluded(samples: Sequence[Sample]) -> tuple[str, ...]:
    reasons: dict[str, dict[str, None]] = {}
    for sample in samples:
        if sample.value is None and sample.reason:
            reasons.setdefault(sample.reason, {})[sample.candidate.label] = None
    return tuple(f"excluded: {', '.join(labels)}: {reason}" for reason, labels in reasons.items())


def _speedup(ours: float, theirs: float, match: Match) -> float:
    return ours / theirs if match.better == "higher" else theirs / ours


def _seed(seed: int, match: Match, scope: str) -> int:
    return zlib.crc32(f"{seed}/{match.name}/{scope}".encode())
