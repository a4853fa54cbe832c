"""Two results, or one and several before it: what changed from session to session. Pure functions.

Within a session ratios to the baseline are paired by round. Rounds of two sessions have nothing in common, so
what is compared between sessions is unpaired. docs/diff.md gives the rates of false verdicts on recorded
noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from pagewise.analysis.analysis import Group, analyse, times_of
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.result import Excluding, nothing_excluded
from pagewise.analysis.rows import Row
from pagewise.analysis.statistics import (
    CONFIDENCE,
    FEWEST_ROUNDS,
    against,
    studentised,
    trim_count,
)
from pagewise.analysis.verdict import Comparison, Reason, Verdict, judge
from pagewise.core.kernel import Kernel
from pagewise.core.plan import Cell, Subject
from pagewise.core.record import Record

_Runs = Sequence[Mapping[int, float]]
Quantity = Literal["ratio", "time"]
# What became of a cell; `other`: measured otherwise, or on another machine; `baseline`: its ratio is 1.
Status = Literal[
    "regression",
    "improvement",
    "unchanged",
    "inconclusive",
    "invalid",
    "missing",
    "new",
    "still invalid",
    "other",
    "baseline",
]
# From so many earlier results on their own spread says what sessions differ by.
FEWEST_SESSIONS = 3


@dataclass(frozen=True)
class Measured:
    """A cell in a session: its row, and log values by round, a list for each run of the baseline.

    `logs` are None where there are too few rounds, or none that may be ranked. `arguments` are what the
    program was told.
    """

    kernel: str
    cell: Cell
    row: Row
    floor: float | None
    arguments: tuple[str, ...]
    times: NDArray[np.float64] | None
    ratios: NDArray[np.float64] | None

    def logs(self, quantity: Quantity) -> NDArray[np.float64] | None:
        """The values that are compared."""
        return self.times if quantity == "time" else self.ratios

    @property
    def names(self) -> list[tuple[str, ...]]:
        """What it is known by in other sessions, the exact names first; all cells it stands for count."""
        equal = (self.cell.measured, *self.cell.stands_for)
        exact = [(self.kernel, f"{one.module}@{one.placement}", one.hugepages) for one in equal]
        return [*exact, *((self.kernel, one.package, _family(one.compiler), one.label) for one in equal)]


@dataclass(frozen=True)
class Change:
    """What became of a cell: `ratio` is new / old of the quantity, above 1 is worse; None where not judged.

    `time_ratio` is new / old of the seconds a pass, for information. `reason` says why it is inconclusive,
    `note` what is wrong with it.
    """

    kernel: str
    cell: Cell
    status: Status
    old: Row | None
    new: Row | None
    ratio: Ratio | None = None
    time_ratio: float | None = None
    floor: float | None = None
    p: float | None = None
    reason: Reason | None = None
    note: str | None = None


def session(
    subjects: Sequence[Subject],
    records: Sequence[Record],
    seed: int,
    excluding: Excluding = nothing_excluded,
) -> list[Measured]:
    """All cells of a result; `excluding` as in `analyse`."""
    times = times_of(subjects, records)
    found = []
    for one in analyse(subjects, records, seed, excluding):
        for group in one.groups:
            base = group.baseline
            bases = [] if base is None else times[one.kernel.name, base.cell]
            for row in (*group.ranked, *group.unranked):
                found.append(_measured(one.kernel, group, row, times[one.kernel.name, row.cell], bases))
    return found


def _measured(kernel: Kernel, group: Group, row: Row, times: _Runs, bases: _Runs) -> Measured:
    told = dict.fromkeys(("times", "ratios"))
    if row.invalid is None:
        own = times if row.cell.is_baseline else times[:1]
        rounds = sorted(set.intersection(*map(set, own))) if own else []
        told["times"] = _logs([[one[number] for number in rounds] for one in own])
        if bases and not row.cell.is_baseline:
            told["ratios"] = _logs(against(times[0], bases))
    return Measured(kernel.name, row.cell, row, group.floor, kernel.arguments, **told)


def _logs(values: Sequence[Sequence[float]]) -> NDArray[np.float64] | None:
    enough = bool(values) and len(values[0]) >= FEWEST_ROUNDS
    return np.log(np.asarray(values, dtype=float)) if enough else None


def changes(
    olds: Sequence[Sequence[Measured]],
    new: Sequence[Measured],
    quantity: Quantity,
    threshold: float,
    comparable: bool = True,
) -> list[Change]:
    """What became of each cell from the earlier sessions to the new one; where one counts, from the last.

    Nothing is worse or better where sessions are not `comparable`: the machines differ.
    """
    partners = [_matched(old, new) for old in olds]
    found = [
        _change([one[place] for one in partners if place in one], measured, quantity)
        for place, measured in enumerate(new)
    ]
    matched = {id(partners[-1][place]) for place in partners[-1]}
    found += [_gone(one) for one in olds[-1] if id(one) not in matched and one.row.invalid is None]
    verdicts = iter(judge([Comparison(one.ratio, one.floor) for one in found if one.ratio is not None]))
    return [
        one if one.ratio is None else _judged(one, next(verdicts), threshold, comparable) for one in found
    ]


def _matched(old: Sequence[Measured], new: Sequence[Measured]) -> dict[int, Measured]:
    """By place in `new`, the old cell that it was: by module, else by compiler's family and variants."""
    found: dict[int, Measured] = {}
    taken: set[int] = set()
    for exact in (True, False):
        known: dict[tuple[str, ...], list[Measured]] = {}
        for one in old:
            for name in set(_names(one, exact)):
                if id(one) not in taken:
                    known.setdefault(name, []).append(one)
        for place, one in enumerate(new):
            fits = [fit for name in _names(one, exact) for fit in known.get(name, ()) if id(fit) not in taken]
            if place not in found and fits and (exact or len({id(fit) for fit in fits}) == 1):
                found[place] = fits[0]
                taken.add(id(fits[0]))
    return found


def _names(one: Measured, exact: bool) -> list[tuple[str, ...]]:
    return [name for name in one.names if (len(name) == 3) == exact]


def _family(compiler: str) -> str:
    """The compiler without its version: `gcc` of `gcc-12.2.0`."""
    return compiler.partition("-")[0]


def _change(olds: Sequence[Measured], new: Measured, quantity: Quantity) -> Change:
    row, told = new.row, Change(new.kernel, new.cell, "new", None, new.row, note="not in OLD")
    if not olds:
        return told
    old = olds[-1].row
    told = replace(told, status="inconclusive", old=old, note=None)
    if row.invalid is not None or old.invalid is not None:
        status, note = _unranked(old, row)
        return replace(told, status=status, note=note)
    if any(one.arguments != new.arguments for one in olds):
        return replace(told, status="other", note="the kernel was told other arguments")
    seconds = [one.row.seconds for one in olds if one.row.seconds]
    if row.seconds is not None:
        told = replace(told, time_ratio=row.seconds / float(np.exp(np.mean(np.log(seconds)))))
    before = [logs for one in olds if (logs := one.logs(quantity)) is not None]
    now = new.logs(quantity)
    if quantity == "ratio" and new.cell.is_baseline:
        told = replace(told, status="baseline")
    elif now is None or not before:
        told = replace(told, reason="too few rounds")
    elif quantity == "time" and (row.bimodal or any(one.row.bimodal for one in olds)):
        told = replace(told, reason="bimodal")
    else:
        told = replace(told, ratio=between(before, now), floor=_floor([*olds, new]))
    return told


def _unranked(old: Row, new: Row) -> tuple[Status, str]:
    """The status of a configuration that one of both sessions excluded, and why."""
    if new.invalid is None:
        return "new", f"OLD was not ranked: {old.invalid}"
    if old.invalid is not None:
        return "still invalid", new.invalid
    return "invalid" if new.is_fault else "missing", new.invalid


def _floor(sessions: Sequence[Measured]) -> float | None:
    """The noise of both together: of the earlier ones the largest, and of the new one."""
    *olds, new = (one.floor for one in sessions)
    known = [floor for floor in olds if floor is not None]
    if not known or new is None:
        return None
    return math.expm1(math.hypot(math.log1p(max(known)), math.log1p(new)))


def _gone(one: Measured) -> Change:
    return Change(one.kernel, one.cell, "missing", one.row, None, note="not in NEW")


def _judged(one: Change, verdict: Verdict, threshold: float, comparable: bool) -> Change:
    one = replace(one, p=verdict.p)
    if not comparable:
        return replace(one, status="other", note="another machine")
    found = verdict.ratio
    if found is None:
        return one
    inside = (
        found.low is not None
        and found.high is not None
        and max(found.high, 1.0 / found.low) <= 1.0 + threshold
    )
    if inside or (verdict.reason is None and abs(math.log(found.median)) <= math.log1p(threshold)):
        return replace(one, status="unchanged")
    if verdict.reason is not None:
        return replace(one, reason=verdict.reason)
    return replace(one, status="regression" if verdict.outcome == "slower" else "improvement")


def between(olds: Sequence[NDArray[np.float64]], new: NDArray[np.float64]) -> Ratio:
    """new / old of values in log, (b, n) as `studentised` takes them, the sessions independent.

    Trimmed means, their errors from Winsorised values, and Student's t with the degrees of freedom of Welch
    and Satterthwaite (Yuen, Biometrika 61, 1974). From three earlier sessions on their spread counts where it
    is the larger: then each session is one value, and the new one is predicted from them.
    """
    centres, errors = zip(*(map(float, studentised(one)) for one in olds), strict=True)
    centre, error = map(float, studentised(new))
    moved = centre - float(np.mean(centres))
    count = len(olds)
    parts = [(value / count, _freedom(one)) for value, one in zip(errors, olds, strict=True)]
    parts.append((error, _freedom(new)))
    variance = sum(value**2 for value, _ in parts)
    freedom = _welch(parts, variance)
    if count >= FEWEST_SESSIONS:
        spread = float(np.var(centres, ddof=1)) * (1.0 + 1.0 / count)
        if spread > variance:
            variance, freedom = spread, count - 1.0
    half = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * math.sqrt(variance)
    middle = float(np.median(new, axis=-1).mean()) - float(
        np.mean([np.median(one, axis=-1).mean() for one in olds])
    )
    p = 1.0 if moved == 0.0 else 0.0 if variance == 0.0 else _p(freedom, moved / math.sqrt(variance))
    return Ratio(
        min(one.shape[-1] for one in (*olds, new)),
        math.exp(middle),
        math.exp(min(moved - half, middle)),
        math.exp(max(moved + half, middle)),
        p,
        math.exp(moved),
    )


def _freedom(logs: NDArray[np.float64]) -> int:
    count = logs.shape[-1]
    return int(count) - 2 * trim_count(count) - 1


def _welch(parts: Iterable[tuple[float, int]], variance: float) -> float:
    below = sum(value**4 / freedom for value, freedom in parts)
    return variance**2 / below if below > 0.0 else 1.0


def _p(freedom: float, far: float) -> float:
    return float(2.0 * stdtr(freedom, -abs(far)))
