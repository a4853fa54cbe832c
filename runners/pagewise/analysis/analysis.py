"""From the records of a comparison to rows, verdicts and curves. Pure functions."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from pagewise.analysis.bimodality import TwoSpeeds, two_speeds
from pagewise.analysis.consistency import contradiction, disturbed, less_work, other_build
from pagewise.analysis.drift import Drift, drift
from pagewise.analysis.outliers import outliers
from pagewise.analysis.policies import Compared, compared_by_policy, run_seconds
from pagewise.analysis.result import Excluding, excluding, nothing_excluded
from pagewise.analysis.statistics import (
    Ratio,
    against,
    noise_floor,
    paired_ratios,
    ratio,
    trimmed_mean,
)
from pagewise.analysis.validity import Code, Exclusion, exclusion, invalid_reason
from pagewise.analysis.verdict import Comparison, Outcome, Reason, judge
from pagewise.core.kernel import Kernel, Sweep
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import Cell, CellKey, Subject, key_of
from pagewise.core.units import count_text

if TYPE_CHECKING:
    from pagewise.core.result import Result

Record = Mapping[str, Any]
X = float | str
# One run of these excludes its configuration; what a run was on or where it ran may differ in a few.
_FATAL = ("failed", "wrong_result")
# So many rounds may be missing: a tenth, and one of fewer than ten.
_MISSING_ROUNDS, _FEW_ROUNDS = 0.1, 10
# Records by kernel, key of the cell, and series.
_Sorted = dict[tuple[str, CellKey, str], list[Record]]


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
    speeds: TwoSpeeds | None = None
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


@dataclass(frozen=True)
class Group:
    """The rows of one kernel and compiler, ranked and not, with their noise floor (a share).

    `repeated` are the baseline's ratios to itself (A/A), one for each repetition in a round.
    """

    compiler: str
    ranked: tuple[Row, ...]
    unranked: tuple[Row, ...]
    repeated: tuple[Ratio, ...]
    floor: float | None

    @property
    def baseline(self) -> Row | None:
        """The row that the others are compared against, None when it is missing or invalid."""
        return next((row for row in self.ranked if row.cell.is_baseline), None)

    @property
    def placements(self) -> list[str]:
        """The placements that are compared, the baseline's first; none where all runs have the same one."""
        rows = (*self.ranked, *self.unranked)
        names = [row.cell.placement for row in sorted(rows, key=lambda row: not row.cell.is_baseline)]
        return list(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True)
class Versus:
    """Two compilers at the baseline configuration: the time of `compiler` over that of `reference`."""

    compiler: str
    reference: str
    time_ratio: Ratio
    floor: float | None
    verdict: Outcome = "inconclusive"
    reason: Reason | None = None
    p: float | None = None


@dataclass(frozen=True)
class Curve:
    """One sweep of one cell: (x, y) by x, and how many points were not valid.

    x are numbers in order, or words in the order in which they were measured.
    """

    sweep: Sweep
    cell: Cell
    points: tuple[tuple[X, float], ...]
    left_out: int


@dataclass(frozen=True)
class KernelResult:
    """All that was learnt of one kernel. `comparisons` are those of all kernels, which its p allow for."""

    kernel: Kernel
    groups: tuple[Group, ...]
    versus: tuple[Versus, ...]
    by_policy: tuple[Compared, ...]
    curves: tuple[Curve, ...]
    comparisons: int = 0

    @property
    def by_sweep(self) -> list[tuple[Sweep, list[Curve]]]:
        """The curves that have points, by what is swept."""
        found = [
            (sweep, [one for one in self.curves if one.sweep == sweep and one.points])
            for sweep in self.kernel.sweeps
        ]
        return [(sweep, curves) for sweep, curves in found if curves]


def analyse(
    subjects: Sequence[Subject],
    records: Iterable[Record],
    seed: int,
    excluding: Excluding = nothing_excluded,
) -> list[KernelResult]:
    """Rows, verdicts and curves of each kernel, from its records. `seed` is that of the bootstrap.

    `excluding` gives the reason why nothing of a module may be ranked, if there is one.
    """
    sorted_records = _sort(records)
    return _judged([_kernel_result(one, sorted_records, seed, excluding) for one in subjects])


def analyse_result(result: Result) -> list[KernelResult]:
    """The same of a whole result, with what its manifest and its files say against it."""
    return analyse(result.subjects, result.records, result.manifest["seed"], excluding(result))


def times_of(
    subjects: Sequence[Subject], records: Iterable[Record]
) -> dict[tuple[str, Cell], list[dict[int, float]]]:
    """Seconds a pass by round of each kernel's cells that were measured, those of A/A after the first."""
    found, series = {}, _sort(records)
    for one in subjects:
        for cell in one.cells:
            of = [series.get((one.kernel.name, cell.key, name), []) for name in ("compare", "aa")]
            found[one.kernel.name, cell] = [_times(of[0]), *map(_times, repeats(of[1]))]
    return found


def _sort(records: Iterable[Record]) -> _Sorted:
    sorted_records: _Sorted = {}
    for record in records:
        run = record.get("run")
        if run is not None:
            key = (run.get("kernel", record["kernel"]), key_of(run), run["series"])
            sorted_records.setdefault(key, []).append(record)
    return sorted_records


def _judged(results: Sequence[KernelResult]) -> list[KernelResult]:
    """The results with verdicts: all comparisons are judged together."""
    rows = [
        (row, Comparison(row.time_ratio, group.floor, bool(row.speeds or group.baseline.speeds), row.drift))
        for result in results
        for group in result.groups
        for row in group.ranked
        if group.baseline is not None and not row.cell.is_baseline
    ]
    compilers = [
        (versus, Comparison(versus.time_ratio, versus.floor)) for one in results for versus in one.versus
    ]
    judged = judge([compared for _, compared in (*rows, *compilers)])
    by_id = {id(item): found for (item, _), found in zip((*rows, *compilers), judged, strict=True)}

    def of_row(row: Row) -> Row:
        found = by_id.get(id(row))
        if found is None:
            # Without a baseline there is nothing to compare with.
            return row if row.cell.is_baseline else replace(row, reason="too few rounds")
        return replace(row, verdict=found.outcome, reason=found.reason, p=found.p)

    def of_versus(versus: Versus) -> Versus:
        found = by_id[id(versus)]
        return replace(versus, verdict=found.outcome, reason=found.reason, p=found.p)

    return [
        replace(
            result,
            groups=tuple(replace(one, ranked=tuple(map(of_row, one.ranked))) for one in result.groups),
            versus=tuple(map(of_versus, result.versus)),
            comparisons=sum(one.p is not None for one in judged),
        )
        for result in results
    ]


def _kernel_result(one: Subject, records: _Sorted, seed: int, excluding: Excluding) -> KernelResult:
    def of(cell: Cell, series: str) -> list[Record]:
        return records.get((one.kernel.name, cell.key, series), [])

    groups = []
    times: dict[str, list[dict[int, float]]] = {}
    for compiler in one.compilers():
        cells = [cell for cell in one.cells if cell.compiler == compiler]
        group, baseline_times = _group(
            one.kernel,
            compiler,
            [(c, of(c, "compare"), of(c, "aa")) for c in cells],
            seed,
            lambda cell, runs: (
                excluding(cell.measured.module) or contradiction(one.kernel, cell.measured, _valid(runs))
            ),
        )
        groups.append(group)
        times[compiler] = baseline_times
    curves = [curve for cell in one.cells for curve in _curves(one.kernel, cell, of(cell, "sweep"))]
    ranked = [row.cell for group in groups for row in group.ranked]
    curves = [one for one in curves if excluding(one.cell.measured.module) is None]
    by_policy = compared_by_policy(
        one.kernel,
        ranked,
        lambda cell: [_valid(of(cell, "compare")), *repeats(of(cell, "aa"))],
        seed,
    )
    versus = _versus(one.kernel, groups, times, seed)
    return KernelResult(one.kernel, tuple(groups), versus, by_policy, tuple(curves))


def _group(
    kernel: Kernel,
    compiler: str,
    cells: Sequence[tuple[Cell, list[Record], list[Record]]],
    seed: int,
    excluding: Callable[[Cell, Sequence[Record]], Exclusion | None],
) -> tuple[Group, list[dict[int, float]]]:
    """The group, and the times of its baseline's runs by round (empty when it cannot be ranked)."""
    made = _rounds(record for _, compared, again in cells for record in (*compared, *again))
    rows = []
    base_cell, *base = next((one for one in cells if one[0].is_baseline), (None, [], []))
    for cell, compared, again in cells:
        runs = [*compared, *again] if cell.is_baseline else compared
        against_base = () if cell.is_baseline else base[0]
        against_it = excluding(cell, runs) or _unlike(kernel, cell, runs, against_base, base_cell)
        rows.append(_row(cell, runs, made, against_it))
    is_sound = any(row.cell.is_baseline and row.invalid is None for row in rows)
    baselines = [_times(base[0]), *map(_times, repeats(base[1]))] if is_sound else []
    pairs = [paired_ratios(one, baselines[0]) for one in baselines[1:]]
    found = [ratio(one, _seed(seed, kernel, compiler, "aa")) for one in pairs]
    floor = noise_floor(*found)
    for place, (cell, compared, _) in enumerate(cells):
        row = rows[place]
        if row.invalid is None and cell.is_baseline and baselines:
            of_aa = against(baselines[-1], baselines[:1])[0] if pairs else []
            rounds = _common(baselines[-1:], baselines[:1])
            rows[place] = replace(row, outliers=_outliers(rounds, of_aa), drift=drift(_middle(baselines)))
        elif row.invalid is None:
            own_seed = _seed(seed, kernel, *filter(None, cell.key))
            rows[place] = _against(row, _times(compared), baselines, own_seed)
    ranked = tuple(row for row in rows if row.invalid is None)
    unranked = tuple(row for row in rows if row.invalid is not None)
    return Group(compiler, ranked, unranked, tuple(filter(None, found)), floor), baselines


def _unlike(
    kernel: Kernel, cell: Cell, records: Sequence[Record], baseline: Sequence[Record], base: Cell | None
) -> Exclusion | None:
    """In what its runs cannot be compared with those of the baseline."""
    ours, theirs = _valid(records), _valid(baseline)
    if base is None:
        return None
    return (
        less_work(ours, theirs, kernel)
        or other_build(ours, theirs, cell.measured, base.measured)
        or disturbed(ours, theirs)
    )


def _rounds(records: Iterable[Record]) -> set[int]:
    return {record["run"]["round"] for record in records}


def _row(cell: Cell, records: Sequence[Record], made: Collection[int], found: Exclusion | None) -> Row:
    """A cell's row without comparison. `found` is what is known against all of its runs.

    One wrong result or crash excludes it, and so do pages that became unavailable, or were wrong in more than
    a few rounds.
    """
    valid = _valid(records)
    valid_rounds = len(_rounds(valid))
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
    walls = [record["run"]["wall_seconds"] for record in valid if record["run"]["wall_seconds"] is not None]
    fields = set.intersection(*(set(record["metrics"]) for record in valid))
    return replace(
        bare,
        runs=len(valid),
        seconds=median(seconds),
        seconds_trimmed=trimmed_mean(seconds),
        populate=_median_told(record["seconds"].get("populate") for record in valid),
        wall=median(walls) if walls else None,
        metrics={name: median(record["metrics"][name] for record in valid) for name in sorted(fields)},
        pages=_pages(valid),
        speeds=two_speeds(seconds),
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
            reason = f"its pages could not be kept from round {record['run']['round']} on: {fault.reason}"
            code = "policy_not_kept"
    return replace(
        bare,
        pages=_pages(records),
        invalid=reason,
        is_fault=code != "pages_unavailable",
        remedy=record.get("failure", {}).get("remedy"),
        code=code,
    )


def _against(
    row: Row, times: Mapping[int, float], baselines: Sequence[Mapping[int, float]], seed: int
) -> Row:
    if not baselines:
        return row
    ratios = against(times, baselines)
    middle = [math.exp(mean(map(math.log, one))) for one in zip(*ratios, strict=True)]
    rounds = _common([times], baselines)
    return replace(
        row,
        time_ratio=ratio(ratios, seed),
        outliers=_outliers(rounds, middle),
        drift=drift(dict(zip(rounds, middle, strict=True))),
    )


def _common(*several: Sequence[Mapping[int, float]]) -> list[int]:
    """The rounds that all have."""
    return sorted(set.intersection(*(set(one) for some in several for one in some)))


def _outliers(rounds: Sequence[int], ratios: Sequence[float]) -> tuple[tuple[int, float], ...]:
    return tuple((rounds[place], ratios[place]) for place in outliers([math.log(one) for one in ratios]))


def _middle(times: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The geometric mean of several runs in a round, by round."""
    return {number: math.exp(mean(math.log(one[number]) for one in times)) for number in _common(times)}


def _versus(
    kernel: Kernel, groups: Sequence[Group], times: Mapping[str, Sequence[Mapping[int, float]]], seed: int
) -> tuple[Versus, ...]:
    """Each further compiler against the first, at their baselines; the larger of both floors counts."""
    if not groups or "compiler" not in kernel.feels:
        return ()
    reference = groups[0]
    found = []
    for group in groups[1:]:
        pairs = list(zip(times[group.compiler], times[reference.compiler], strict=False))
        rounds = _common(*pairs) if pairs else []
        ratios = [[ours[number] / theirs[number] for number in rounds] for ours, theirs in pairs]
        measured = ratio(ratios, _seed(seed, kernel, group.compiler, reference.compiler))
        if measured is not None:
            floors = [one.floor for one in (group, reference)]
            floor = None if None in floors else max(value for value in floors if value is not None)
            found.append(Versus(group.compiler, reference.compiler, measured, floor))
    return tuple(found)


def _curves(kernel: Kernel, cell: Cell, records: Sequence[Record]) -> Iterator[Curve]:
    """The curves of a cell. A record that does not tell its sweep is of the first."""
    for place, sweep in enumerate(kernel.sweeps):
        names = (sweep.name, None) if place == 0 else (sweep.name,)
        mine = [record for record in records if record["run"].get("sweep") in names]
        if mine:
            yield _curve(sweep, cell, mine)


def _curve(sweep: Sweep, cell: Cell, records: Sequence[Record]) -> Curve:
    """The valid points by x; where a kernel rounds sizes to the same x, the median of them."""
    measured: list[tuple[X, float]] = []
    for record in records:
        x = _swept(sweep, record)
        if x is not None and invalid_reason(record) is None and sweep.y.field in record["metrics"]:
            measured.append((x, float(record["metrics"][sweep.y.field])))
    if any(isinstance(x, str) for x, _ in measured):
        measured = [(words_of(x), y) for x, y in measured]
    at: dict[X, list[float]] = {}
    for x, y in measured:
        at.setdefault(x, []).append(y)
    order = at if any(isinstance(x, str) for x in at) else sorted(at)
    return Curve(sweep, cell, tuple((x, median(at[x])) for x in order), len(records) - len(measured))


def _swept(sweep: Sweep, record: Record) -> X | None:
    """The value of what is swept in a record, None when the record does not have it."""
    if sweep.of_working_set:
        value = record.get("sizes", {}).get(sweep.x)
    else:
        value = record.get("options", {}).get(sweep.x.removeprefix("options."))
    if isinstance(value, bool):
        return "on" if value else "off"
    return float(value) if isinstance(value, int | float) else value


def words_of(x: X) -> str:
    """A swept value as a word: choices may be mixed with numbers."""
    return x if isinstance(x, str) else f"{x:g}"


def _times(records: Iterable[Record]) -> dict[int, float]:
    """Seconds a pass by round, of the records that may be ranked."""
    return {record["run"]["round"]: run_seconds(record) for record in _valid(records)}


def _valid(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if invalid_reason(record) is None]


def repeats(records: Iterable[Record]) -> list[list[Record]]:
    """The valid records of a configuration's further runs: the first of each round, the second, ..."""
    by_round: dict[int, list[Record]] = {}
    for record in _valid(records):
        by_round.setdefault(record["run"]["round"], []).append(record)
    most = max(map(len, by_round.values()), default=0)
    return [[runs[place] for runs in by_round.values() if place < len(runs)] for place in range(most)]


def _pages(records: Sequence[Record]) -> Pages | None:
    told = [record["pages"] for record in records if "pages" in record]
    if not told:
        return None
    # The run farthest from what was asked speaks for all of them.
    farthest = max if PagePolicy(told[0]["policy"]).is_base else min
    worst = farthest(told, key=lambda pages: pages["huge_coverage"])
    return Pages(
        worst["page_size_requested_bytes"], worst["page_size_observed_bytes"], worst["huge_coverage"]
    )


def _seed(seed: int, kernel: Kernel, *parts: str) -> int:
    """A seed of its own for each ratio, the same in every process (Python's hash() is not)."""
    return zlib.crc32("/".join((str(seed), kernel.name, *parts)).encode())
