"""From the records of a comparison to rows, verdicts and curves. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import TYPE_CHECKING

from pagewise.analysis.comparison import (
    TIME,
    Comparison,
    Kind,
    Measured,
    Pair,
    Quantity,
    by_pages,
    by_structure,
    compare,
    judge_together,
    neighbour,
)
from pagewise.analysis.consistency import incomparable, inconsistent
from pagewise.analysis.quantities import over_all, page_quantities
from pagewise.analysis.rows import Group, KernelResult, Row, row_of
from pagewise.analysis.series import RecordsOfCells, by_cell, curves_of, valid_records
from pagewise.analysis.statistics import (
    Runs,
    common_rounds,
    drift,
    largest,
    noise_floor,
    outliers,
    paired_ratio,
    ratios_by_round,
    repeated_ratios,
)
from pagewise.analysis.validity import Excluding, Exclusion, excluding, nothing_excluded
from pagewise.core.dimensions import NO_DIMENSIONS, PAGES, differ_only_in, differing
from pagewise.core.manifest import Last
from pagewise.core.plan import Cell, CellOf, Subject, key_of
from pagewise.core.record import Record
from pagewise.core.record_parts import PEAK_MEMORY

if TYPE_CHECKING:
    from pagewise.core.result import Result

# Ratios of ratios have the noise of two independent ratios, in log.
_NOISE_OF_TWO = math.sqrt(2.0)


#: The unjudged results of kernels, by name, with how many records they have.
Drafts = dict[str, tuple[int, KernelResult]]


def analyse(
    subjects: Sequence[Subject],
    records: Iterable[Record],
    seed: int,
    excluding: Excluding = nothing_excluded,
    *,
    last: Sequence[Last] = (),
    memory_budget: float | None = None,
    drafts: Drafts | None = None,
) -> list[KernelResult]:
    """Rows, verdicts and curves of each kernel, from its records. `seed` is that of the bootstrap.

    `excluding` gives the reason why nothing of a module may be ranked, if there is one. `last`: the last
    rounds of configurations that needed no more; none is missing after them. `memory_budget`: how much more
    memory than the baseline a policy may use to be advised, as a share. `drafts`: what is known from earlier
    rounds of a session; kernels without new records are not analysed again.
    """
    cells = by_cell(records)
    ends = {(one.kernel, key_of(one)): one.round for one in last}
    results, known = [], {} if drafts is None else drafts
    for subject in subjects:
        name = subject.benchmark.name
        count = sum(len(runs) for (kernel, _, _), runs in cells.items() if kernel == name)
        if name not in known or known[name][0] != count:
            known[name] = count, _Analyser(subject, cells, seed, excluding, memory_budget).draft(ends)
        results.append(known[name][1])
    judged = judge_together([result.comparisons for result in results])
    results = [_complete(result, rows) for result, rows in zip(results, judged, strict=True)]
    number = sum(row.p is not None for result in results for row in result.comparisons)
    return [replace(result, judged=number) for result in results]


def analyse_result(result: Result, drafts: Drafts | None = None) -> list[KernelResult]:
    """Analyses a whole result, with the exclusions of its manifest and its files, and all quantities."""
    manifest = result.manifest
    described = next(iter(manifest.programs.values()), {})
    budget = described.get("memory_budget")
    kernels = analyse(
        *(result.subjects, result.records, manifest.seed, excluding(result)),
        last=manifest.last_rounds,
        memory_budget=budget,
        drafts=drafts,
    )
    ranked = {of_kernel.benchmark.name: [row.cell for row in of_kernel.ranked] for of_kernel in kernels}
    further = over_all(result, ranked)
    return [
        replace(
            of_kernel,
            comparisons=(
                *of_kernel.comparisons,
                *(row for row in further if row.benchmark.name == of_kernel.benchmark.name),
            ),
        )
        for of_kernel in kernels
    ]


def widths_of(results: Sequence[KernelResult], *, clear_suffices: bool = False) -> dict[CellOf, float | None]:
    """The widest interval of each configuration, as a share; None: one is missing.

    The baseline's ratios to itself (A/A) count for all that are compared with it, because they determine the
    noise floor. An excluded configuration, or one without others to compare with, has no interval.

    clear_suffices: a clear difference counts as 0. Stopping as soon as something is significant would find
    differences that do not exist (Armitage, McPherson and Rowe, J. R. Stat. Soc. A 132, 1969).
    """
    widths: dict[CellOf, list[float | None]] = {}
    for result in results:
        for cell, width in _widths(result, clear_suffices):
            widths.setdefault((result.benchmark.name, cell.key), []).append(width)
    return {cell: largest(each) for cell, each in widths.items()}


def _widths(result: KernelResult, clear_suffices: bool) -> Iterator[tuple[Cell, float | None]]:
    """The widths of intervals of times, with the configurations that further rounds would run."""
    times = [(row.cell, row.time) for row in result.ranked if not row.cell.is_baseline]
    times += [(each, row) for row in result.of("compilers") for each in (row.cell, row.reference) if each]
    left = set()
    for cell, time in times:
        if time is not None and time.ratio is not None:
            is_done = clear_suffices and time.is_clear
            left |= set() if is_done else {cell}
            yield cell, 0.0 if is_done else time.ratio.width
    for group in result.groups:
        cells = {row.cell for row in group.ranked} & left
        if group.baseline is not None and (left or not clear_suffices):
            cells.add(group.baseline.cell)
        yield from ((cell, ratio.width) for cell, ratio in product(cells, group.repeated))


class _Analyser:
    """A kernel with the records of all cells."""

    def __init__(
        self, subject: Subject, records: RecordsOfCells, seed: int, excluding: Excluding, budget: float | None
    ) -> None:
        self.subject, self.seed, self.excluding = subject, seed, excluding
        self.benchmark, self.measured = subject.benchmark, Measured(subject.benchmark, records)
        self.allowed = math.inf if budget is None else 1.0 + budget
        # The cells with bimodal times, known after `_group`.
        self.bimodal: set[Cell] = set()

    def draft(self, ends: Mapping[CellOf, int]) -> KernelResult:
        """The kernel's rows, comparisons and curves, not judged. ends: the last rounds of configurations."""
        pairs = [self._group(compiler, ends) for compiler in self.subject.compilers()]
        groups = [group for group, _ in pairs]
        comparisons = chain(
            *(comparisons for _, comparisons in pairs),
            self._compilers(groups),
            chain.from_iterable(map(self._structures, groups)),
            self._pages([row.cell for group in groups for row in group.ranked]),
        )
        swept = [cell for cell in self.subject.cells if self.excluding(cell.measured.module) is None]
        curves = [
            c for cell in swept for c in curves_of(self.benchmark, cell, self.measured.of(cell, "sweep"))
        ]
        return KernelResult(self.benchmark, tuple(groups), tuple(curves), tuple(comparisons))

    def _group(self, compiler: str, ends: Mapping[CellOf, int]) -> tuple[Group, list[Comparison]]:
        """The rows of a compiler, and their comparisons with the baseline and one by one."""
        cells = [cell for cell in self.subject.cells if cell.compiler == compiler]
        of = self.measured.of
        rounds = {record.round for cell in cells for record in (*of(cell, "compare"), *of(cell, "aa"))}
        base = next((cell for cell in cells if cell.is_baseline), None)
        rows = []
        for cell in cells:
            end = ends.get((self.benchmark.name, cell.key), math.inf)
            made = [number for number in rounds if number <= end]
            rows.append(row_of(cell, self._runs(cell), made, self._find_exclusion(cell, base)))
        if base is not None:
            rows = [
                replace(row, differs=differing(self.benchmark, row.cell.measured, base.measured))
                for row in rows
            ]
        ranked = [row for row in rows if row.invalid is None]
        unranked = tuple(row for row in rows if row.invalid is not None)
        self.bimodal |= {row.cell for row in ranked if row.bimodal}
        first = next((row.cell for row in ranked if row.cell.is_baseline), None)
        baseline = [] if first is None else self.measured.runs(first)
        repeated = tuple(repeated_ratios(baseline, self.seed))
        floor = noise_floor(*repeated)
        if first is None:
            return Group(compiler, tuple(ranked), unranked, repeated, floor), []
        comparisons: list[Comparison] = []
        for place, row in enumerate(ranked):
            if row.cell.is_baseline:
                ranked[place] = _with_noise(row, baseline)
                continue
            pair = Pair(row.cell, first, row.differs[0] if len(row.differs) == 1 else "")
            runs = self.measured.runs(row.cell)[:1], baseline
            comparisons.append(self._compare_runs("baseline", pair, runs, floor=floor))
            notes = [row.note]
            if unnamed := [name for name in row.differs if name in NO_DIMENSIONS]:
                notes.append(f"differs from the baseline in {', '.join(unnamed)}, too")
            changed = self._compare_with_neighbour(row, first, [other.cell for other in ranked], floor)
            if isinstance(changed, Comparison):
                comparisons.append(changed)
            else:
                notes.append(changed)
            noted = replace(row, note="; ".join(filter(None, notes)) or None)
            ranked[place] = self._with_memory(noted, first)
        return Group(compiler, tuple(ranked), unranked, repeated, floor), comparisons

    def _runs(self, cell: Cell) -> list[Record]:
        """The records that decide on a cell's row."""
        repeated = self.measured.of(cell, "aa") if cell.is_baseline else []
        return [*self.measured.of(cell, "compare"), *repeated]

    def _find_exclusion(self, cell: Cell, base: Cell | None) -> Exclusion | None:
        """Why none of a cell's runs may be ranked, None if they may."""
        valid = valid_records(self._runs(cell))
        fault = self.excluding(cell.measured.module) or inconsistent(self.benchmark, cell.measured, valid)
        if fault is not None or base is None or cell.is_baseline:
            return fault
        return self._incomparable(Pair(cell, base, ""), valid)

    def _incomparable(self, pair: Pair, valid: Sequence[Record]) -> Exclusion | None:
        others = valid_records(self.measured.of(pair.reference, "compare"))
        return incomparable(self.benchmark, valid, others, pair.cell.measured, pair.reference.measured)

    def _with_memory(self, row: Row, base: Cell) -> Row:
        """A row with the ratio of its peak memory; kernels do not report it."""
        runs, baseline = (
            self.measured.runs(cell, lambda run: run.figures.get(PEAK_MEMORY)) for cell in (row.cell, base)
        )
        memory = paired_ratio(runs[:1], baseline, self.seed)
        return replace(row, memory=memory, over_budget=memory is not None and memory.median > self.allowed)

    def _compare_runs(
        self,
        kind: Kind,
        pair: Pair,
        runs: tuple[Runs, Runs],
        *,
        floor: float | None = None,
        quantity: Quantity = TIME,
    ) -> Comparison:
        """The first of these runs over the second, the runs of a pair of cells, paired by round."""
        row = Comparison(
            kind=kind,
            quantity=quantity,
            benchmark=self.benchmark,
            cell=pair.cell,
            reference=pair.reference,
            dimension=pair.dimension,
            floor=floor,
            bimodal=not self.bimodal.isdisjoint(pair[:2]),
            is_judged=kind != "pages",
        )
        return compare(row, *runs, self.seed)

    def _compare_with_neighbour(
        self, row: Row, base: Cell, ranked: Sequence[Cell], floor: float | None
    ) -> Comparison | str | None:
        """The comparison with the neighbour of a row that differs from the baseline in several things.

        A text reports why there is none.
        """
        pair = neighbour(self.benchmark, row.cell, base, ranked) if len(row.differs) > 1 else None
        if pair is None:
            return None
        fault = self._incomparable(pair, valid_records(self.measured.of(row.cell, "compare")))
        if fault is not None:
            return f"not compared in {pair.dimension} alone: {fault.reason}"
        runs = self.measured.runs(pair.cell)[:1], self.measured.runs(pair.reference)[:1]
        made = self._compare_runs("change", pair, runs, floor=floor)
        return made if made.ratio is not None else None

    def _compilers(self, groups: Sequence[Group]) -> Iterator[Comparison]:
        """Each further compiler against the first: at the baselines, and in the compilers' own loops."""
        if "compiler" not in self.benchmark.sensitive_to:
            return
        for loop in (None, "compiler"):
            cells = {group.compiler: _compared_cell(group, loop) for group in groups}
            first = next((group for group in groups if cells[group.compiler]), groups[0])
            reference = cells[first.compiler]
            for group in groups[groups.index(first) + 1 :]:
                cell = cells[group.compiler]
                if cell is None or reference is None:
                    continue
                most = None if loop is None else 1
                runs = self.measured.runs(cell)[:most], self.measured.runs(reference)[:most]
                floor = largest([group.floor, first.floor])
                made = self._compare_runs("compilers", Pair(cell, reference, "compiler"), runs, floor=floor)
                if made.ratio is not None:
                    yield made

    def _structures(self, group: Group) -> Iterator[Comparison]:
        """What the value of an option changes in the time ratio of a page policy to base pages."""
        if group.baseline is None:
            return
        wider = None if group.floor is None else math.expm1(_NOISE_OF_TWO * math.log1p(group.floor))
        ranked = [row.cell for row in group.ranked]
        for four in by_structure(self.benchmark, group.baseline.cell, ranked):
            first, plain, second, both = (self.measured.runs(cell) for cell in four[:4])
            with_pages = paired_ratio(first[:1], plain, self.seed), paired_ratio(second[:1], both, self.seed)
            runs = [ratios_by_round(first[:1], plain[:1])], [ratios_by_round(second[:1], both[:1])]
            pair = Pair(four.cell, four.reference, four.dimension)
            made = self._compare_runs("structure", pair, runs, floor=wider)
            parts = tuple(part for part in with_pages if part is not None)
            if made.ratio is not None and len(parts) == 2:
                made = replace(made, bimodal=not self.bimodal.isdisjoint(four[:4]), parts=parts)
                yield replace(made, value=parts[0].median, reference_value=parts[1].median)

    def _pages(self, ranked: Sequence[Cell]) -> Iterator[Comparison]:
        """With : without huge pages and compiler : compiler, as the FLASH studies show them, not judged.

        Cells count that differ from their compiler's baseline in the page policy alone.
        """
        bases = {cell.compiler: cell for cell in ranked if cell.is_baseline}
        alike = [
            cell
            for cell in ranked
            if (base := bases.get(cell.compiler)) and differ_only_in(PAGES.name, cell.measured, base.measured)
        ]
        is_sensitive = PAGES.name in self.benchmark.sensitive_to
        pairs = list(by_pages(self.benchmark, alike, [*bases.values()])) if is_sensitive else []
        cells = dict.fromkeys(cell for pair in pairs for cell in pair[:2])
        records = [record for cell in cells for record in self._runs(cell)]
        for quantity, value in page_quantities(self.benchmark, valid_records(records)):
            runs = {cell: self.measured.runs(cell, value) for cell in cells}
            for pair in pairs:
                both = runs[pair.cell], runs[pair.reference]
                # A count that was 0 in some round has no ratio.
                if all(count > 0.0 for run in chain(*both) for count in run.values()):
                    made = self._compare_runs("pages", pair, both, quantity=quantity)
                    if made.ratio is not None:
                        yield made


def _compared_cell(group: Group, loop: str | None) -> Cell | None:
    """The cell by which a compiler is compared with others: its baseline, or that of another loop."""
    if loop is None:
        return None if group.baseline is None else group.baseline.cell
    rows = (row for row in group.ranked if row.differs == ("loop",) and row.cell.measured.loop == loop)
    return next((row.cell for row in rows), None)


def _with_noise(row: Row, baseline: Runs) -> Row:
    """The row of a baseline with the outliers of its A/A ratios, and the drift of its time."""
    first, *others = baseline
    repeated = ratios_by_round(others[-1:], [first]) if others else {}
    rounds = common_rounds(*baseline)
    times = {number: math.prod(run[number] for run in baseline) ** (1 / len(baseline)) for number in rounds}
    return replace(row, outliers=outliers(repeated), drift=drift(times))


def _complete(result: KernelResult, comparisons: tuple[Comparison, ...]) -> KernelResult:
    """The result with the verdicts."""
    times = {row.cell: row for row in comparisons if row.kind == "baseline"}
    changes = {cell: row for cell, row in times.items() if row.dimension and row.ratio is not None}
    changes |= {row.cell: row for row in comparisons if row.kind == "change"}

    def complete(row: Row) -> Row:
        time = times.get(row.cell)
        if time is None:
            return row
        return replace(row, time=time, change=changes.get(row.cell), outliers=outliers(time.by_round))

    groups = (replace(group, ranked=tuple(map(complete, group.ranked))) for group in result.groups)
    return replace(result, groups=tuple(groups), comparisons=comparisons)
