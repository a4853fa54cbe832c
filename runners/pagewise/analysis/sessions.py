"""Two results, or one and several before it: what changed from session to session. Pure functions.

Within a session ratios to the baseline are paired by round. Rounds of two sessions have nothing in common, so
values of different sessions are compared unpaired. docs/reference/results.md gives the rates of false
verdicts on recorded noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from pagewise.analysis.analysis import analyse
from pagewise.analysis.comparison import Judged, Measured, judge
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import Row
from pagewise.analysis.series import by_cell
from pagewise.analysis.statistics import (
    CONFIDENCE,
    FEWEST_ROUNDS,
    common_rounds,
    quotients,
    studentise,
    trim_count,
)
from pagewise.analysis.validity import Excluding, nothing_excluded
from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import Configuration
from pagewise.core.manifest import Last
from pagewise.core.plan import Cell, Subject
from pagewise.core.record import Record

ComparedQuantity = Literal["ratio", "time"]
# What became of a cell; `other`: other arguments or another machine; `baseline`: its ratio is 1.
ChangeStatus = Literal[
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
# From this many earlier results on, their own spread shows how much sessions differ.
FEWEST_SESSIONS = 3


@dataclass(frozen=True)
class SessionCell:
    """A cell in a session: its row, and log values by round, a list for each run of the baseline.

    `times` or `ratios` are None if there are too few rounds, or none that may be ranked.
    """

    benchmark: Benchmark
    row: Row
    floor: float | None
    times: NDArray[np.float64] | None
    ratios: NDArray[np.float64] | None

    def logs(self, quantity: ComparedQuantity) -> NDArray[np.float64] | None:
        """The values that are compared."""
        return self.times if quantity == "time" else self.ratios

    def names(self, exact: bool) -> list[tuple[str, ...]]:
        """Its names in other sessions: by module, else by compiler family and variants.

        All configurations that it stands for count.
        """
        cell, kernel = self.row.cell, self.benchmark.name
        configurations = (cell.measured, *cell.stands_for)
        if exact:
            return [
                (kernel, "+".join((f"{c.module}@{c.placement}", *c.settings.entries)), c.hugepages)
                for c in configurations
            ]
        families = ((c, c.compiler.partition("-")[0]) for c in configurations)
        return [(kernel, c.package, family, c.label) for c, family in families]


@dataclass(frozen=True, kw_only=True)
class Change(Judged):
    """What became of a cell: `ratio` is new / old of the quantity, above 1 is worse; None if not judged.

    `time_ratio` is new / old of the seconds per pass, for information. `note` is why it was not judged.
    """

    kernel: str
    cell: Cell
    status: ChangeStatus
    old: Row | None
    new: Row | None
    time_ratio: float | None = None
    note: str | None = None

    @property
    def configuration(self) -> Configuration:
        """What was measured."""
        return self.cell.measured

    @property
    def why(self) -> str | None:
        """Why there is no verdict."""
        return self.note or self.reason


def session(
    subjects: Sequence[Subject],
    records: Sequence[Record],
    seed: int,
    excluding: Excluding = nothing_excluded,
    last: Sequence[Last] = (),
) -> list[SessionCell]:
    """All cells of a result; `excluding` and `last` as in `analyse`."""
    by_series, cells = by_cell(records), []
    for result in analyse(subjects, records, seed, excluding, last=last):
        measured = Measured(result.benchmark, by_series)
        for group in result.groups:
            base = group.baseline
            for row in group.rows:
                times = ratios = None
                if row.invalid is None:
                    own = measured.runs(row.cell)[: None if row.cell.is_baseline else 1]
                    rounds = common_rounds(*own)
                    times = _logs([[run[number] for number in rounds] for run in own])
                    if base is not None and not row.cell.is_baseline:
                        ratios = _logs(quotients(own, measured.runs(base.cell)))
                cells.append(SessionCell(result.benchmark, row, group.floor, times, ratios))
    return cells


def _logs(values: Sequence[Sequence[float]]) -> NDArray[np.float64] | None:
    enough = bool(values) and len(values[0]) >= FEWEST_ROUNDS
    return np.log(np.asarray(values, dtype=float)) if enough else None


def changes(
    olds: Sequence[Sequence[SessionCell]],
    new: Sequence[SessionCell],
    quantity: ComparedQuantity,
    threshold: float,
    comparable: bool = True,
) -> list[Change]:
    """What became of each cell from the earlier sessions to the new one; if only one counts, from the last.

    Nothing is worse or better if sessions are not `comparable`: the machines differ.
    """
    partners = [_partners(old, new) for old in olds]
    items = [
        _change([matches[place] for matches in partners if place in matches], measured, quantity)
        for place, measured in enumerate(new)
    ]
    matched = {id(partner) for partner in partners[-1].values()}
    items += [
        _change_of(gone, "missing", gone.row, None, note="not in NEW")
        for gone in olds[-1]
        if id(gone) not in matched and gone.row.invalid is None
    ]
    return [_with_status(item, threshold, comparable) if item.is_judged else item for item in judge(items)]


def _change_of(
    cell: SessionCell, status: ChangeStatus, old: Row | None, new: Row | None, note: str | None = None
) -> Change:
    kernel, measured = cell.benchmark.name, cell.row.cell
    return Change(kernel=kernel, cell=measured, status=status, old=old, new=new, note=note, is_judged=False)


def _partners(old: Sequence[SessionCell], new: Sequence[SessionCell]) -> dict[int, SessionCell]:
    """By place in `new`, the same cell in `old`: by exact names, else by names that only one cell has."""
    partners: dict[int, SessionCell] = {}
    taken: set[int] = set()
    for exact in (True, False):
        by_name: dict[tuple[str, ...], list[SessionCell]] = {}
        for measured in old:
            for name in measured.names(exact):
                by_name.setdefault(name, []).append(measured)
        for place, measured in enumerate(new):
            candidates = {
                id(candidate): candidate
                for name in measured.names(exact)
                for candidate in by_name.get(name, ())
                if id(candidate) not in taken
            }
            if place not in partners and candidates and (exact or len(candidates) == 1):
                key, partners[place] = next(iter(candidates.items()))
                taken.add(key)
    return partners


def _change(olds: Sequence[SessionCell], new: SessionCell, quantity: ComparedQuantity) -> Change:
    if not olds:
        return _change_of(new, "new", None, new.row, note="not in OLD")
    old, row = olds[-1].row, new.row
    change = _change_of(new, "inconclusive", old, row)
    if row.invalid is not None or old.invalid is not None:
        status, note = _status_of_excluded(old, row)
        return replace(change, status=status, note=note)
    if any(earlier.benchmark.arguments != new.benchmark.arguments for earlier in olds):
        return replace(change, status="other", note="the kernel had other arguments")
    seconds = [earlier.row.seconds for earlier in olds if earlier.row.seconds]
    if row.seconds is not None:
        change = replace(change, time_ratio=row.seconds / float(np.exp(np.mean(np.log(seconds)))))
    before = [logs for earlier in olds if (logs := earlier.logs(quantity)) is not None]
    now = new.logs(quantity)
    if quantity == "ratio" and row.cell.is_baseline:
        change = replace(change, status="baseline")
    elif now is None or not before:
        change = replace(change, reason="too few rounds")
    elif quantity == "time" and (row.bimodal or any(earlier.row.bimodal for earlier in olds)):
        change = replace(change, reason="bimodal")
    else:
        change = replace(change, ratio=between(before, now), floor=_floor(olds, new), is_judged=True)
    return change


def _status_of_excluded(old: Row, new: Row) -> tuple[ChangeStatus, str]:
    """The status of a configuration that at least one of both sessions excluded, and why."""
    if new.invalid is None:
        return "new", f"OLD was excluded: {old.invalid}"
    if old.invalid is not None:
        return "still invalid", new.invalid
    return "invalid" if new.is_fault else "missing", new.invalid


def _floor(olds: Sequence[SessionCell], new: SessionCell) -> float | None:
    """The combined noise of the new session and the noisiest earlier one."""
    known = [old.floor for old in olds if old.floor is not None]
    if not known or new.floor is None:
        return None
    return math.expm1(math.hypot(math.log1p(max(known)), math.log1p(new.floor)))


def _with_status(item: Change, threshold: float, comparable: bool) -> Change:
    ratio = item.ratio
    if not comparable or ratio is None:
        return replace(item, status="other", reason=None, note="another machine")
    low, high = ratio.low, ratio.high
    inside = low is not None and high is not None and max(high, 1.0 / low) <= 1.0 + threshold
    if inside or (item.reason is None and abs(math.log(ratio.median)) <= math.log1p(threshold)):
        return replace(item, status="unchanged", reason=None)
    if item.reason is not None:
        return item
    return replace(item, status="regression" if item.direction == "higher" else "improvement")


def between(olds: Sequence[NDArray[np.float64]], new: NDArray[np.float64]) -> Ratio:
    """new / old of values in log, (b, n) as `studentised` takes them, the sessions independent.

    Trimmed means, their errors from Winsorised values, and Student's t with the degrees of freedom of Welch
    and Satterthwaite (Yuen, Biometrika 61, 1974). From three earlier sessions on, their spread is used if it
    is larger: then each session is one value, and the new one is predicted from them.
    """
    count = len(olds)
    centres, errors = zip(*(map(float, studentise(logs)) for logs in (*olds, new)), strict=True)
    moved = centres[-1] - float(np.mean(centres[:-1]))
    freedoms = [logs.shape[-1] - 2 * trim_count(logs.shape[-1]) - 1 for logs in (*olds, new)]
    parts = [(error / count) ** 2 for error in errors[:-1]] + [errors[-1] ** 2]
    variance = sum(parts)
    divisor = sum(part**2 / freedom for part, freedom in zip(parts, freedoms, strict=True))
    freedom = variance**2 / divisor if divisor > 0.0 else 1.0
    if count >= FEWEST_SESSIONS:
        spread = float(np.var(centres[:-1], ddof=1)) * (1.0 + 1.0 / count)
        if spread > variance:
            variance, freedom = spread, count - 1.0
    half = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * math.sqrt(variance)
    p = 1.0 if moved == 0.0 else 0.0
    if moved != 0.0 and variance > 0.0:
        p = float(2.0 * stdtr(freedom, -abs(moved) / math.sqrt(variance)))
    medians = [float(np.median(logs, axis=-1).mean()) for logs in (*olds, new)]
    median = medians[-1] - float(np.mean(medians[:-1]))
    return Ratio(
        min(logs.shape[-1] for logs in (*olds, new)),
        math.exp(median),
        math.exp(min(moved - half, median)),
        math.exp(max(moved + half, median)),
        p,
        math.exp(moved),
    )
