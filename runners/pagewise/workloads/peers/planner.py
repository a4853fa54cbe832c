"""Plans a comparison with peers: trial runs of all candidates, then rounds of the best of each side."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pagewise.core.plan import Cell, Step, Subject
from pagewise.core.record import Record
from pagewise.core.record_parts import Series
from pagewise.session.workload import Scope
from pagewise.workloads.peers.analysis import Candidate, Sample, carried_on, rows, samples
from pagewise.workloads.peers.candidates import Run
from pagewise.workloads.peers.plan import Match

TRIAL: Series = "trial"


@dataclass(frozen=True)
class Comparison:
    """A match that can be run: its candidates as cells of a subject, and their runs by the cell's module."""

    match: Match
    subject: Subject
    runs: Mapping[str, Run]

    @property
    def name(self) -> str:
        """The name of its kernel."""
        return self.subject.kernel.name

    def samples(self, records: Sequence[Record], series: str | None = None) -> list[Sample]:
        """The samples of its runs, of a series if it is given."""
        own = samples([record for record in records if record.of_kernel == self.name], {})
        return [sample for sample in own if series in (None, sample.series)]

    def candidate(self, cell: Cell) -> Candidate:
        """The candidate of a cell."""
        return self.runs[cell.measured.module].candidate


@dataclass(frozen=True)
class PeerPlanner:
    """Matches in randomised order, in each of them the candidates of both sides, and ours again (A/A)."""

    comparisons: Sequence[Comparison]
    seed: int

    def trials(self, records: Sequence[Record]) -> list[Step]:
        """The trial runs that are missing in the records.

        On several cores, only what did well on one core is tried: the machine's mode decides a single run.
        So these come when the trials on one core are done.
        """
        tried = {
            (record.of_kernel, record.run.module)
            for record in records
            if record.run is not None and record.run.series == "trial"
        }
        for several in (False, True):
            planned = {
                comparison.name: [(cell, TRIAL) for cell in self._tried(comparison, records)]
                for comparison in self.comparisons
                if (comparison.match.threads > 1) == several
            }
            steps = self._ordered("trial", 1, planned)
            missing = [step for step in steps if (step.kernel.name, step.cell.measured.module) not in tried]
            if missing:
                return missing
        return []

    def steps_of_round(self, number: int, records: Sequence[Record]) -> list[Step]:
        """The candidates that the trial runs showed to be the best; all of them before there were any."""
        planned: dict[str, list[tuple[Cell, Series]]] = {}
        for comparison in self.comparisons:
            cells = self._kept(comparison, records)
            twin = self._twin(comparison, cells, records)
            planned[comparison.name] = [(cell, "compare") for cell in cells]
            planned[comparison.name] += [(twin, "aa")] if twin is not None else []
        return self._ordered(str(number), number, planned)

    def sweeps(self) -> list[Step]:
        """None: sizes are compared by matches."""
        return []

    def can_run(self, step: Step) -> bool:
        """Every step starts a program."""
        return True

    def ruled_out(self, step: Step, records: Sequence[Record]) -> Scope:
        """A crash or wrong result excludes a candidate; wrong pages exclude the run only."""
        return "configuration" if records[0].status in ("failed", "check_failed") else None

    def too_wide(self, records: Sequence[Record], width: float) -> dict[str, float | None]:
        """The matches with an interval wider than this."""
        widths = {comparison.name: self._widest(comparison, records) for comparison in self.comparisons}
        return {name: value for name, value in widths.items() if value is None or value >= width}

    def _widest(self, comparison: Comparison, records: Sequence[Record]) -> float | None:
        compared = rows(comparison.match, comparison.samples(records), None, self.seed)
        widths = [row.speedup.width for row in compared if row.speedup is not None]
        return None if None in widths else max((width for width in widths if width is not None), default=0.0)

    def _ordered(
        self, stage: str, number: int, planned: Mapping[str, Sequence[tuple[Cell, Series]]]
    ) -> list[Step]:
        shuffle = random.Random(f"peers:{self.seed}:{stage}")
        steps: list[Step] = []
        kernels = {comparison.name: comparison.subject.kernel for comparison in self.comparisons}
        for name in shuffle.sample(list(planned), len(planned)):
            for cell, series in shuffle.sample(planned[name], len(planned[name])):
                steps.append(Step(kernels[name], cell, series, number, len(steps) + 1))
        return steps

    def _tried(self, comparison: Comparison, records: Sequence[Record]) -> list[Cell]:
        """The candidates to try: on several cores those that did well on one, if that was tried."""
        cells = list(comparison.subject.cells)
        single = replace(comparison.match, threads=1)
        alike = next((other for other in self.comparisons if other.match == single), None)
        if comparison.match.threads == 1 or alike is None:
            return cells
        kept = {cell.measured.module for cell in self._kept(alike, records)}
        return [cell for cell in cells if cell.measured.module in kept] if kept else cells

    def _kept(self, comparison: Comparison, records: Sequence[Record]) -> list[Cell]:
        trials = comparison.samples(records, TRIAL)
        if not trials:
            return self._tried(comparison, records)
        if comparison.match.threads > 1:
            kept = {sample.candidate for sample in trials if sample.value is not None}
        else:
            kept = carried_on(trials, comparison.match)
        return [cell for cell in comparison.subject.cells if comparison.candidate(cell) in kept]

    def _twin(self, comparison: Comparison, cells: Sequence[Cell], records: Sequence[Record]) -> Cell | None:
        """The candidate of ours that runs twice per round: the best of the trial runs, else the first."""
        ours = [cell for cell in cells if comparison.candidate(cell).side == "ours"]
        trials = comparison.samples(records, TRIAL)
        tried = {sample.candidate.label: sample.value for sample in trials if sample.value is not None}
        if not ours or not tried:
            return next(iter(ours), None)
        choose = max if comparison.match.better == "higher" else min
        return choose(ours, key=lambda cell: tried[cell.measured.module])
