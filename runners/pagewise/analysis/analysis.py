"""From the records of a comparison to rows, verdicts and curves. Pure functions."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import TYPE_CHECKING

from pagewise.analysis.consistency import contradiction, disturbed, less_work, other_build
from pagewise.analysis.curves import Curve, curves_of
from pagewise.analysis.drift import drift
from pagewise.analysis.outliers import outliers
from pagewise.analysis.policies import Compared, compared_by_policy, run_seconds
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.result import Excluding, excluding, nothing_excluded
from pagewise.analysis.rows import Row, rounds_of, row_of, valid_records
from pagewise.analysis.statistics import (
    against,
    noise_floor,
    paired_ratios,
    ratio,
)
from pagewise.analysis.validity import Exclusion
from pagewise.analysis.verdict import Comparison, Outcome, Reason, judge
from pagewise.core.kernel import Kernel, Sweep
from pagewise.core.plan import Cell, CellKey, Subject, key_of
from pagewise.core.record import Record

if TYPE_CHECKING:
    from pagewise.core.result import Result

# Records by kernel, key of the cell, and series.
_Sorted = dict[tuple[str, CellKey, str], list[Record]]


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
        run = record.run
        if run is not None:
            key = (record.of_kernel, key_of(run), run.series)
            sorted_records.setdefault(key, []).append(record)
    return sorted_records


def _judged(results: Sequence[KernelResult]) -> list[KernelResult]:
    """The results with verdicts: all comparisons are judged together."""
    rows = [
        (row, Comparison(row.time_ratio, group.floor, bool(row.bimodal or group.baseline.bimodal), row.drift))
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
                excluding(cell.measured.module)
                or contradiction(one.kernel, cell.measured, valid_records(runs))
            ),
        )
        groups.append(group)
        times[compiler] = baseline_times
    curves = [curve for cell in one.cells for curve in curves_of(one.kernel, cell, of(cell, "sweep"))]
    ranked = [row.cell for group in groups for row in group.ranked]
    curves = [one for one in curves if excluding(one.cell.measured.module) is None]
    by_policy = compared_by_policy(
        one.kernel,
        ranked,
        lambda cell: [valid_records(of(cell, "compare")), *repeats(of(cell, "aa"))],
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
    made = rounds_of(record for _, compared, again in cells for record in (*compared, *again))
    rows = []
    base_cell, *base = next((one for one in cells if one[0].is_baseline), (None, [], []))
    for cell, compared, again in cells:
        runs = [*compared, *again] if cell.is_baseline else compared
        against_base = () if cell.is_baseline else base[0]
        against_it = excluding(cell, runs) or _unlike(kernel, cell, runs, against_base, base_cell)
        rows.append(row_of(cell, runs, made, against_it))
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
    ours, theirs = valid_records(records), valid_records(baseline)
    if base is None:
        return None
    return (
        less_work(ours, theirs, kernel)
        or other_build(ours, theirs, cell.measured, base.measured)
        or disturbed(ours, theirs)
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
    if not groups or "compiler" not in kernel.sensitive_to:
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


def _times(records: Iterable[Record]) -> dict[int, float]:
    """Seconds a pass by round, of the records that may be ranked."""
    return {record.round: run_seconds(record) for record in valid_records(records)}


def repeats(records: Iterable[Record]) -> list[list[Record]]:
    """The valid records of a configuration's further runs: the first of each round, the second, ..."""
    by_round: dict[int, list[Record]] = {}
    for record in valid_records(records):
        by_round.setdefault(record.round, []).append(record)
    most = max(map(len, by_round.values()), default=0)
    return [[runs[place] for runs in by_round.values() if place < len(runs)] for place in range(most)]


def _seed(seed: int, kernel: Kernel, *parts: str) -> int:
    """A seed of its own for each ratio, the same in every process (Python's hash() is not)."""
    return zlib.crc32("/".join((str(seed), kernel.name, *parts)).encode())
