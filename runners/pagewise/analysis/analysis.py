"""From the records of a comparison to rows, verdicts and curves. Pure functions."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import TYPE_CHECKING, TypeVar

from pagewise.analysis.changes import SingleChange, neighbour
from pagewise.analysis.consistency import incomparable, inconsistent
from pagewise.analysis.curves import Curve, curves_of
from pagewise.analysis.noise import drift, outliers
from pagewise.analysis.policies import PolicyRatio, policy_ratios
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.result import Excluding, excluding, nothing_excluded
from pagewise.analysis.rows import Row, row_of
from pagewise.analysis.series import RecordsOfCells, by_cell, runs_of, valid_records
from pagewise.analysis.statistics import (
    Runs,
    common_rounds,
    larger_floor,
    noise_floor,
    quotients,
    ratio,
    repeated_ratios,
)
from pagewise.analysis.structures import StructureEffect, structure_effects
from pagewise.analysis.validity import Exclusion
from pagewise.analysis.verdict import Comparison, Outcome, Reason, judge_all
from pagewise.core.benchmark import Benchmark, Sweep
from pagewise.core.dimensions import BY_NAME, differing
from pagewise.core.plan import Cell, Subject
from pagewise.core.record import Record
from pagewise.core.record_parts import PEAK_MEMORY

if TYPE_CHECKING:
    from pagewise.core.result import Result

_Judged = TypeVar("_Judged", Row, SingleChange, "Versus", StructureEffect)


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
    def rows(self) -> tuple[Row, ...]:
        """All rows, the ranked ones first."""
        return (*self.ranked, *self.unranked)

    @property
    def baseline(self) -> Row | None:
        """The row that the others are compared against, None when it is missing or excluded."""
        return next((row for row in self.ranked if row.cell.is_baseline), None)


@dataclass(frozen=True)
class Versus:
    """Two compilers: the time of `compiler` over that of `reference`, at the baseline configuration.

    loop: how loops are written, None for as in the baseline; else it is the only difference from that.
    """

    compiler: str
    reference: str
    time_ratio: Ratio
    floor: float | None
    loop: str | None = None
    verdict: Outcome = "inconclusive"
    reason: Reason | None = None
    p: float | None = None


@dataclass(frozen=True)
class KernelResult:
    """The analysis of one kernel. `comparisons` counts those of all kernels, for which p is corrected."""

    kernel: Benchmark
    groups: tuple[Group, ...]
    versus: tuple[Versus, ...]
    by_policy: tuple[PolicyRatio, ...]
    curves: tuple[Curve, ...]
    structures: tuple[StructureEffect, ...] = ()
    comparisons: int = 0

    @property
    def ranked(self) -> list[Row]:
        """The ranked rows of all compilers."""
        return [row for group in self.groups for row in group.ranked]

    @property
    def by_sweep(self) -> list[tuple[Sweep, list[Curve]]]:
        """The curves that have points, by what is swept."""
        pairs = [
            (sweep, [curve for curve in self.curves if curve.sweep == sweep and curve.points])
            for sweep in self.kernel.sweeps
        ]
        return [(sweep, curves) for sweep, curves in pairs if curves]


def analyse(
    subjects: Sequence[Subject],
    records: Iterable[Record],
    seed: int,
    excluding: Excluding = nothing_excluded,
    memory_budget: float | None = None,
) -> list[KernelResult]:
    """Rows, verdicts and curves of each kernel, from its records. `seed` is that of the bootstrap.

    `excluding` gives the reason why nothing of a module may be ranked, if there is one. `memory_budget`: how
    much more memory than the baseline a policy may use to be advised, as a share.
    """
    cells = by_cell(records)
    analysers = [_Analyser(subject, cells, seed, excluding, memory_budget) for subject in subjects]
    return _judged([analyser.result() for analyser in analysers])


def analyse_result(result: Result) -> list[KernelResult]:
    """Analyses a whole result, with the exclusions of its manifest and its files."""
    manifest = result.manifest
    described = next(iter(manifest.programs.values()), {})
    budget = described.get("memory_budget")
    return analyse(result.subjects, result.records, manifest.seed, excluding(result), budget)


def times_of(subjects: Sequence[Subject], records: Iterable[Record]) -> dict[tuple[str, Cell], Runs]:
    """Seconds per pass by round of each kernel's cells, see `Runs`."""
    cells = by_cell(records)
    return {
        (subject.kernel.name, cell): _Analyser(subject, cells).times(cell)
        for subject in subjects
        for cell in subject.cells
    }


def widest(result: KernelResult) -> float | None:
    """The widest interval of a kernel's time ratios, as a share; None while an interval is still missing.

    The baseline's ratios to itself (A/A) count as well, because they determine the noise floor. An excluded
    configuration, or one without others to compare with, does not count: 0 if there is no ratio.
    """
    ratios = [row.time_ratio for row in result.ranked if not row.cell.is_baseline]
    ratios += [item for group in result.groups for item in group.repeated]
    ratios += [item.time_ratio for item in result.versus]
    widths = [item.width for item in ratios if item is not None]
    known = [width for width in widths if width is not None]
    return max(known, default=0.0) if len(known) == len(widths) else None


def too_wide(results: Sequence[KernelResult], width: float) -> dict[str, float | None]:
    """The kernels whose widest interval is not narrower than `width`, with that interval.

    A comparison may stop by the widths of its intervals only, never by its verdicts: stopping as soon as
    something is significant finds differences that do not exist (Armitage, McPherson and Rowe, J. R. Stat.
    Soc. A 132, 1969).
    """
    by_kernel = {result.kernel.name: widest(result) for result in results}
    return {name: value for name, value in by_kernel.items() if value is None or value >= width}


@dataclass(frozen=True)
class _Analyser:
    """A kernel with the records of all cells."""

    subject: Subject
    records: RecordsOfCells
    seed: int = 0
    excluding: Excluding = nothing_excluded
    memory_budget: float | None = None

    def of(self, cell: Cell, series: str) -> list[Record]:
        """The records of a cell's runs."""
        return self.records.get((self.subject.kernel.name, cell.key, series), [])

    def times(self, cell: Cell) -> list[dict[int, float]]:
        """Seconds per pass by round."""
        return runs_of(self.of(cell, "compare"), self.of(cell, "aa"))

    def result(self) -> KernelResult:
        """The kernel's rows and curves, not judged."""
        kernel, cells = self.subject.kernel, self.subject.cells
        groups = [self._group(compiler) for compiler in self.subject.compilers()]
        ranked = [row.cell for group in groups for row in group.ranked]
        by_policy = policy_ratios(
            kernel, ranked, lambda cell: (self.of(cell, "compare"), self.of(cell, "aa")), self.seed
        )
        swept = [cell for cell in cells if self.excluding(cell.measured.module) is None]
        curves = [curve for cell in swept for curve in curves_of(kernel, cell, self.of(cell, "sweep"))]
        structures = [effect for group in groups for effect in self._structures(group)]
        return KernelResult(
            kernel, tuple(groups), tuple(self._versus(groups)), by_policy, tuple(curves), tuple(structures)
        )

    def _structures(self, group: Group) -> Iterator[StructureEffect]:
        seed = self._seed(group.compiler, "structures")
        return structure_effects(self.subject.kernel, group.ranked, group.floor, self.times, seed)

    def _group(self, compiler: str) -> Group:
        cells = [cell for cell in self.subject.cells if cell.compiler == compiler]
        rounds = {
            record.round for cell in cells for record in (*self.of(cell, "compare"), *self.of(cell, "aa"))
        }
        base = next((cell for cell in cells if cell.is_baseline), None)
        rows = [row_of(cell, self._runs(cell), rounds, self._excluded(cell, base)) for cell in cells]
        is_sound = any(row.cell.is_baseline and row.invalid is None for row in rows)
        baseline = self.times(base) if base is not None and is_sound else []
        repeated = repeated_ratios(baseline, self._seed(compiler, "aa"))
        rows = [row if row.invalid is not None else self._with_ratio(row, baseline) for row in rows]
        if base is not None:
            rows = [replace(row, differs=self._differing(row.cell, base)) for row in rows]
            rows = [row if row.time_ratio is None else self._with_memory(row, base) for row in rows]
        ranked = [row for row in rows if row.invalid is None]
        if base is not None and baseline:
            ranked = [self._with_change(row, base, ranked) for row in ranked]
        return Group(
            compiler,
            tuple(ranked),
            tuple(row for row in rows if row.invalid is not None),
            tuple(repeated),
            noise_floor(*repeated),
        )

    def _differing(self, cell: Cell, other: Cell) -> tuple[str, ...]:
        return differing(self.subject.kernel, cell.measured, other.measured)

    def _runs(self, cell: Cell) -> list[Record]:
        """The records that decide on a cell's row."""
        return [*self.of(cell, "compare"), *(self.of(cell, "aa") if cell.is_baseline else [])]

    def _excluded(self, cell: Cell, base: Cell | None) -> Exclusion | None:
        """Why none of a cell's runs may be ranked, None if they may."""
        kernel, valid = self.subject.kernel, valid_records(self._runs(cell))
        fault = self.excluding(cell.measured.module) or inconsistent(kernel, cell.measured, valid)
        if fault is not None or base is None or cell.is_baseline:
            return fault
        baseline = valid_records(self.of(base, "compare"))
        return incomparable(kernel, valid, baseline, cell.measured, base.measured)

    def _with_ratio(self, row: Row, baseline: Runs) -> Row:
        """A ranked row with its time ratio, outliers and drift; see `Row` for those of the baseline."""
        if not baseline:
            return row if row.cell.is_baseline else replace(row, reason="too few rounds")
        if row.cell.is_baseline:
            (first, *others), numbers = baseline, common_rounds(*baseline)
            repeated = (
                _means(common_rounds(first, others[-1]), quotients(others[-1:], [first])) if others else {}
            )
            times = _means(numbers, [[run[number] for number in numbers] for run in baseline])
            return replace(row, outliers=_outliers(repeated), drift=drift(times))
        times = self.times(row.cell)[0]
        ratios = quotients([times], baseline)
        by_round = _means(common_rounds(times, *baseline), ratios)
        measured = ratio(ratios, self._seed(*filter(None, row.cell.key)))
        return replace(row, time_ratio=measured, outliers=_outliers(by_round), drift=drift(by_round))

    def _with_memory(self, row: Row, base: Cell) -> Row:
        """A row that is compared, with the ratio of its peak memory; kernels do not report theirs."""
        runs, baseline = (
            runs_of(self.of(cell, "compare"), self.of(cell, "aa"), lambda run: run.figures.get(PEAK_MEMORY))
            for cell in (row.cell, base)
        )
        memory = ratio(quotients(runs[:1], baseline), self._seed(PEAK_MEMORY, *filter(None, row.cell.key)))
        allowed = math.inf if self.memory_budget is None else 1.0 + self.memory_budget
        return replace(row, memory=memory, over_budget=memory is not None and memory.median > allowed)

    def _with_change(self, row: Row, base: Cell, ranked: Sequence[Row]) -> Row:
        """A ranked row, compared with its neighbour if it differs from the baseline in several things."""
        kernel, cell = self.subject.kernel, row.cell
        if unnamed := [name for name in row.differs if name not in BY_NAME]:
            differs = f"differs from the baseline in {', '.join(unnamed)}, too"
            row = replace(row, note=_joined(row.note, differs))
        bimodal = {other.cell: other.bimodal is not None for other in ranked}
        found = neighbour(kernel, cell, base, list(bimodal)) if len(row.differs) > 1 else None
        if found is None:
            return row
        name, reference = found
        ours, theirs = (valid_records(self.of(each, "compare")) for each in (cell, reference))
        fault = incomparable(kernel, ours, theirs, cell.measured, reference.measured)
        if fault is not None:
            return replace(row, note=_joined(row.note, f"not compared in {name} alone: {fault.reason}"))
        runs, others = self.times(cell)[:1], self.times(reference)[:1]
        ratios = quotients(runs, others)
        measured = ratio(ratios, self._seed(name, *filter(None, cell.key)))
        if measured is None:
            return row
        change = SingleChange(
            name,
            reference,
            measured,
            bimodal=bimodal[cell] or bimodal[reference],
            drift=drift(_means(common_rounds(*runs, *others), ratios)),
        )
        return replace(row, change=change)

    def _versus(self, groups: Sequence[Group]) -> Iterator[Versus]:
        """Each further compiler against the first: at the baselines, and in the compilers' own loops."""
        if "compiler" not in self.subject.kernel.sensitive_to:
            return
        for loop in (None, "compiler"):
            runs = {group.compiler: self._compared_runs(group, loop) for group in groups}
            reference = next((group for group in groups if runs[group.compiler]), groups[0])
            for group in groups[groups.index(reference) + 1 :]:
                ratios = quotients(runs[group.compiler], runs[reference.compiler])
                seed = self._seed(*filter(None, (group.compiler, reference.compiler, loop)))
                measured = ratio(ratios, seed)
                if measured is not None:
                    floor = larger_floor([group.floor, reference.floor])
                    yield Versus(group.compiler, reference.compiler, measured, floor, loop)

    def _compared_runs(self, group: Group, loop: str | None) -> Runs:
        """The runs by which a compiler is compared with others: its baseline's, or those of another loop."""
        if loop is None:
            return [] if group.baseline is None else self.times(group.baseline.cell)
        rows = (row for row in group.ranked if row.differs == ("loop",) and row.cell.measured.loop == loop)
        return next((self.times(row.cell)[:1] for row in rows), [])

    def _seed(self, *parts: str) -> int:
        """A different seed for each ratio, the same in every process (Python's hash() is not)."""
        return zlib.crc32("/".join((str(self.seed), self.subject.kernel.name, *parts)).encode())


def _joined(note: str | None, more: str) -> str:
    return more if note is None else f"{note}; {more}"


def _means(rounds: Sequence[int], values: Sequence[Sequence[float]]) -> dict[int, float]:
    """The geometric means of several lists of values over the rounds, by round."""
    means = (math.exp(mean(map(math.log, several))) for several in zip(*values, strict=True))
    return dict(zip(rounds, means, strict=True))


def _outliers(ratios: Mapping[int, float]) -> tuple[tuple[int, float], ...]:
    """The rounds whose ratios are outliers, with these."""
    items = list(ratios.items())
    return tuple(items[place] for place in outliers([math.log(value) for value in ratios.values()]))


def _judged(results: Sequence[KernelResult]) -> list[KernelResult]:
    """The results with verdicts: all comparisons are judged together."""
    comparisons = {
        id(row): Comparison(row.time_ratio, group.floor, bool(row.bimodal or base.bimodal), row.drift)
        for result in results
        for group in result.groups
        if (base := group.baseline) is not None
        for row in group.ranked
        if not row.cell.is_baseline
    }
    comparisons |= {
        id(change): Comparison(change.time_ratio, group.floor, change.bimodal, change.drift)
        for result in results
        for group in result.groups
        for row in group.ranked
        if (change := row.change) is not None
    }
    versus = [item for result in results for item in result.versus]
    comparisons |= {id(item): Comparison(item.time_ratio, item.floor) for item in versus}
    structures = [item for result in results for item in result.structures]
    verdicts = judge_all(comparisons | {id(item): item.comparison for item in structures})

    def judged(item: _Judged) -> _Judged:
        verdict = verdicts.get(id(item))
        return replace(item, verdict=verdict.outcome, reason=verdict.reason, p=verdict.p) if verdict else item

    def with_change(row: Row, base: Row | None) -> Row:
        """The row, judged, with its change: that from the baseline if it differs from it in one thing."""
        row, change = judged(row), row.change
        if change is not None:
            return replace(row, change=judged(change))
        if base is None or row.time_ratio is None or len(row.differs) != 1:
            return row
        change = SingleChange(row.differs[0], base.cell, row.time_ratio, row.verdict, row.reason, row.p)
        return replace(row, change=change)

    return [
        replace(
            result,
            groups=tuple(
                replace(group, ranked=tuple(with_change(row, group.baseline) for row in group.ranked))
                for group in result.groups
            ),
            versus=tuple(map(judged, result.versus)),
            structures=tuple(map(judged, result.structures)),
            comparisons=sum(verdict.p is not None for verdict in verdicts.values()),
        )
        for result in results
    ]
