"""Which configurations are compared, the one row of all comparisons, and the one judge. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from statistics import median
from typing import Literal, NamedTuple, TypeVar

from pagewise.analysis.ratio import Ratio
from pagewise.analysis.series import RecordsOfCells, run_seconds, runs_of
from pagewise.analysis.statistics import (
    CONFIDENCE,
    Drift,
    Runs,
    drift,
    noise_floor,
    paired_ratio,
    ratios_by_round,
    repeated_ratios,
)
from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import Configuration
from pagewise.core.dimensions import COMPILER, PAGES, differ_only_in, differing
from pagewise.core.plan import Cell
from pagewise.core.record import Record

Direction = Literal["lower", "higher"]
Reason = Literal["too few rounds", "interval", "floor", "correction", "bimodal", "drift", "no baseline"]
Verdict = Literal["faster", "slower", "better", "worse", "lower", "higher", "met", "not met", "inconclusive"]
#: Why two configurations are compared; docs/reference/json.md describes each kind.
Kind = Literal["baseline", "change", "compilers", "pages", "structure", "energy", "metric", "target"]
_WORDS: Mapping[tuple[bool, Direction], Verdict] = {
    (True, "lower"): "faster",
    (True, "higher"): "slower",
    (False, "lower"): "lower",
    (False, "higher"): "higher",
}


@dataclass(frozen=True)
class Quantity:
    """What is compared; `better` is None where no direction is, as of counts."""

    name: str
    label: str
    unit: str
    better: Direction | None = None


TIME = Quantity("time", "Time", "s", "lower")
ENERGY = Quantity("energy", "Energy", "J")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A ratio, or a difference, that is judged together with others, and the noise floor it must exceed.

    `ratio` or `floor` is None if there are too few rounds for it. `bimodal`: the times of one side are
    bimodal. `drift` is the drift of the ratio. The judge adds the `direction` of a real difference, or the
    `reason` why it is inconclusive, and `p`, corrected for all that were judged together; a row that is not
    to be judged (`is_judged`) passes the judge as it is.
    """

    ratio: Ratio | None = None
    floor: float | None = None
    bimodal: bool = False
    drift: Drift | None = None
    is_judged: bool = True
    direction: Direction | None = None
    reason: Reason | None = None
    p: float | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison(Judged):
    """A quantity of a cell over that of its reference, paired by round: the row of all tables of ratios.

    `reference` is None for a baseline itself, and where there is nothing to compare with. `dimension` is the
    only one in which both differ, empty if they differ in several. `value` and `reference_value` are medians
    over the runs; of a `structure` the two time ratios of pages that are compared, which are its `parts`.
    `by_round` are the ratios. A `target` has the range of its ratio, and the answer as its verdict.
    `memory`: the ratio of a program's peak memory.
    """

    kind: Kind
    quantity: Quantity
    benchmark: Benchmark
    cell: Cell
    reference: Cell | None = None
    reference_kernel: str | None = None
    dimension: str = ""
    value: float | None = None
    reference_value: float | None = None
    by_round: Mapping[int, float] = field(default_factory=dict, repr=False, compare=False)
    parts: tuple[Ratio, ...] = ()
    least: float | None = None
    most: float | None = None
    answer: Literal["met", "not met", "inconclusive"] | None = None
    memory: Ratio | None = None

    @property
    def verdict(self) -> Verdict | None:
        """The verdict in the words of its quantity; None if it was not judged."""
        if self.answer is not None or (self.direction is None and self.reason is None):
            return self.answer
        if self.direction is None:
            return "inconclusive"
        better = self.quantity.better
        if better is None or self.quantity is TIME:
            return _WORDS[self.quantity is TIME, self.direction]
        return "better" if self.direction == better else "worse"

    @property
    def configuration(self) -> Configuration:
        """What was measured."""
        return self.cell.measured

    @property
    def share(self) -> float | None:
        """Of a `structure`: which share of the larger effect of pages, in log, is the data structure.

        None unless both that effect and the difference are significant. 1 if the other data structure is not
        sensitive to pages, or in the opposite direction.
        """
        if not self.parts or not self.is_decided or self.ratio is None:
            return None
        most = max(self.parts, key=lambda part: abs(math.log(part.median)))
        if not most.excludes_equality:
            return None
        return min(1.0, abs(math.log(self.ratio.median) / math.log(most.median)))

    @property
    def is_decided(self) -> bool:
        """Whether the difference is real."""
        return self.direction is not None

    @property
    def is_clear(self) -> bool:
        """Whether the difference is so certain that more rounds need not confirm it."""
        return self.is_decided and self.p is not None and self.p <= CLEAR_P


#: The p of a clear difference, which may end a comparison early with hardly more false verdicts (Haybittle
#: 1971, Peto et al. 1976; docs/explanation/statistics.md).
CLEAR_P = 0.001
_Row = TypeVar("_Row", bound=Judged)


def judge(rows: Sequence[_Row]) -> list[_Row]:
    """The rows with their verdicts; all of them are reported together.

    A difference is real only if the interval excludes 1 (a difference: 0), the median lies outside the noise
    floor, and p is at most 0.05 after the correction for all of them (docs/explanation/statistics.md).
    """
    ratios = [row.ratio for row in rows if row.is_judged and row.ratio is not None]
    ps = [ratio.p for ratio in ratios if ratio.p is not None]
    by_p = dict(zip(ps, correct_p(ps), strict=True))
    return [_judge(row, by_p) if row.is_judged else row for row in rows]


def judge_together(several: Sequence[Sequence[_Row]]) -> list[tuple[_Row, ...]]:
    """Several lists of rows, all judged together."""
    judged = iter(judge([*chain.from_iterable(several)]))
    return [tuple(islice(judged, len(rows))) for rows in several]


def correct_p(ps: Sequence[float]) -> list[float]:
    """The p of each comparison among all of them, after Benjamini and Hochberg (J. R. Stat. Soc. B 57, 1995).

    Of the differences with p of at most 0.05, at most 5 % are false on average. If nothing differs, the
    chance of any is 5 %. To limit that chance also where much differs (Holm, Scand. J. Stat. 6, 1979) would
    lose up to half of the true differences (docs/explanation/statistics.md).
    """
    if not ps:
        return []
    # Importing scipy.stats takes a second, which commands that judge nothing need not wait.
    from scipy.stats import false_discovery_control

    return [float(p) for p in false_discovery_control(ps, method="bh")]


def _judge(row: _Row, by_p: Mapping[float, float]) -> _Row:
    ratio = row.ratio
    p = None if ratio is None or ratio.p is None else by_p[ratio.p]
    reason = _reason(row, p)
    direction: Direction | None = None
    if ratio is not None and reason is None:
        direction = "lower" if ratio.median < ratio.unchanged else "higher"
    return replace(row, direction=direction, reason=reason, p=p)


def _reason(row: Judged, p: float | None) -> Reason | None:
    """Why a difference is inconclusive, None if it is not."""
    ratio, floor, trend = row.ratio, row.floor, row.drift
    if ratio is None or floor is None or ratio.low is None:
        return "too few rounds"
    if not ratio.excludes_equality or not ratio.exceeds(floor):
        # The cause of the noise is more informative than where it showed.
        if row.bimodal:
            return "bimodal"
        return "drift" if trend is not None else "floor" if ratio.excludes_equality else "interval"
    if p is not None and p > 1.0 - CONFIDENCE:
        return "correction"
    return "drift" if trend is not None and trend.crosses_one else None


def compare(
    row: Comparison, own_runs: Runs, reference_runs: Runs, seed: int, *, by_difference: bool = False
) -> Comparison:
    """The row with the ratio of `own_runs` to `reference_runs`, or with their difference, paired by round."""
    ratio = paired_ratio(own_runs, reference_runs, seed, by_difference=by_difference)
    by_round = {} if by_difference or ratio is None else ratios_by_round(own_runs, reference_runs)
    return replace(
        row,
        ratio=ratio,
        by_round=by_round,
        drift=drift(by_round) if row.quantity is TIME else None,
        value=middle(own_runs),
        reference_value=middle(reference_runs),
    )


def middle(runs: Runs) -> float | None:
    """The median of all values; None without any."""
    values = [value for run in runs for value in run.values()]
    return median(values) if values else None


@dataclass(frozen=True)
class Measured:
    """The records of a kernel's cells, and values of their valid runs by round."""

    benchmark: Benchmark
    records: RecordsOfCells

    def of(self, cell: Cell, series: str) -> list[Record]:
        """The records of a cell's runs."""
        return self.records.get((self.benchmark.name, cell.key, series), [])

    def runs(
        self, cell: Cell, value: Callable[[Record], float | None] = run_seconds
    ) -> list[dict[int, float]]:
        """The values of a cell, by default seconds per pass: of its runs, then of those of A/A."""
        return runs_of(self.of(cell, "compare"), self.of(cell, "aa"), value)


def over_baseline(
    measured: Measured,
    kind: Kind,
    quantity: Quantity,
    cells: Iterable[Cell],
    *,
    value: Callable[[Record], float | None],
    seed: int,
) -> Iterator[Comparison]:
    """A row for each cell that has values: they are compared with those of the baseline.

    They are compared by their ratio, or by their difference if not all values are above zero. The noise floor
    is that of the baseline's values.
    """
    runs = {cell: measured.runs(cell, value) for cell in cells}
    base = next((cell for cell in runs if cell.is_baseline), None)
    baseline = [] if base is None else runs[base]
    seen = (*baseline, *(own[0] for own in runs.values()))
    by_difference = any(number <= 0.0 for run in seen for number in run.values())
    floor = noise_floor(*repeated_ratios(baseline, seed, by_difference=by_difference))
    for cell, own in runs.items():
        if not own[0]:
            continue
        row = Comparison(kind=kind, quantity=quantity, benchmark=measured.benchmark, cell=cell, floor=floor)
        if cell.is_baseline:
            yield replace(row, value=middle(own[:1]), is_judged=False)
        else:
            yield compare(replace(row, reference=base), own[:1], baseline, seed, by_difference=by_difference)


# Of several that differ from the baseline, the first one is changed back.
_ACCESS = ("prefetch", "stores", "loop")


class Pair(NamedTuple):
    """Two cells, and the dimension in which they differ."""

    cell: Cell
    reference: Cell
    dimension: str


def neighbour(kernel: Benchmark, cell: Cell, base: Cell, cells: Sequence[Cell]) -> Pair | None:
    """The cell by which one that differs from the baseline in several things is judged.

    A variant of prefetch, stores or loop is compared with the baseline's value, all else being equal:
    `prefetch=compiler loop=compiler` with `prefetch=hardware loop=compiler`. With options of runs, so are
    pages (`thp layout=soa` with `none layout=soa`), and then options. None if no such cell is there.
    """
    for name in (*_ACCESS, *((PAGES.name, *kernel.options) if cell.options else ())):
        other = changed_back(kernel, cell, base, name, cells)
        if other is not None:
            return Pair(cell, other, name)
    return None


def changed_back(kernel: Benchmark, cell: Cell, base: Cell, name: str, cells: Sequence[Cell]) -> Cell | None:
    """The cell that differs from `cell` in this dimension alone, where it has the baseline's value."""
    plain = (other for other in cells if other.measured.value(name) == base.measured.value(name))
    return next((o for o in plain if differing(kernel, cell.measured, o.measured) == (name,)), None)


def by_pages(kernel: Benchmark, cells: Sequence[Cell], without: Sequence[Cell]) -> Iterator[Pair]:
    """Each cell and the one `without` huge pages, then each compiler and the first one by policy.

    The two of a pair differ in nothing else.
    """
    of_first = [cell for cell in cells if cell.compiler == cells[0].compiler]
    for dimension, others in ((PAGES.name, without), (COMPILER.name, of_first)):
        for cell in cells if dimension in kernel.sensitive_to else ():
            alike = (other for other in others if differ_only_in(dimension, cell.measured, other.measured))
            other = next(alike, cell)
            if other is not cell and (dimension == PAGES.name or other.compiler != cell.compiler):
                yield Pair(cell, other, dimension)


class Four(NamedTuple):
    """A cell and itself on base pages, both also with the baseline's value of the option `dimension`."""

    cell: Cell
    plain: Cell
    reference: Cell
    reference_plain: Cell
    dimension: str


def by_structure(kernel: Benchmark, base: Cell, ranked: Sequence[Cell]) -> Iterator[Four]:
    """The cells by which the effect of pages is compared between two data structures.

    The structures among the options of a kernel are data structures for one result.
    """
    for cell in ranked if PAGES.name in kernel.sensitive_to else ():
        for name in kernel.structures if cell.options else ():
            reference = changed_back(kernel, cell, base, name, ranked)
            plain = changed_back(kernel, cell, base, PAGES.name, ranked)
            both = changed_back(kernel, reference, base, PAGES.name, ranked) if reference else None
            if reference and plain and both:
                yield Four(cell, plain, reference, both, name)
