"""Plans a comparison with peers: trial runs of all candidates, then rounds of the best of each side."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pagewise.core.plan import Cell, Step, Subject
from pagewise.core.plan import Series as StepSeries
from pagewise.core.record import Record
from pagewise.session.workload import Scope
from pagewise.workloads.peers.analysis import Candidate, Sample, carried_on, rows, samples
from pagewise.workloads.peers.plan import Match


@dataclass(frozen=True)
class Comparison:
    """A match that can be run: its candidates, by their cells."""

    match: Match
    subject: Subject
    candidates: Mapping[str, Candidate]


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
            (record.of_kernel, record.run.module) for record in records if record.run and _is_trial(record)
        }
        for several in (False, True):
            chosen = [one for one in self.comparisons if (one.match.threads > 1) == several]
            steps = self._ordered(
                "trial",
                1,
                {
                    one.subject.kernel.name: [(c, "trial") for c in self._tried(one, records)]
                    for one in chosen
                },
            )
            missing = [s for s in steps if (s.kernel.name, s.cell.measured.module) not in tried]
            if missing:
                return missing
        return []

    def steps_of_round(self, number: int, records: Sequence[Record]) -> list[Step]:
        """The candidates that the trial runs showed to be the best; all of them before there were any."""
        planned: dict[str, list[tuple[Cell, StepSeries]]] = {}
        for one in self.comparisons:
            cells = self._kept(one, records)
            twin = self._twin(one, cells, records)
            planned[one.subject.kernel.name] = [(cell, "compare") for cell in cells]
            planned[one.subject.kernel.name] += [(twin, "aa")] if twin is not None else []
        return self._ordered(str(number), number, planned)

    def sweeps(self) -> list[Step]:
        """None: sizes are compared by matches."""
        return []

    def can_run(self, step: Step) -> bool:
        """Every step starts a program."""
        return True

    def ruled_out(self, step: Step, records: Sequence[Record]) -> Scope:
        """A crash or wrong result spoils a candidate; wrong pages spoil only the run."""
        return "configuration" if records[0].status in ("failed", "check_failed") else None

    def too_wide(self, records: Sequence[Record], width: float) -> dict[str, float | None]:
        """The matches with an interval wider than this."""
        widths = {one.subject.kernel.name: self._widest(one, records) for one in self.comparisons}
        return {name: value for name, value in widths.items() if value is None or value >= width}

    def _widest(self, comparison: Comparison, records: Sequence[Record]) -> float | None:
        found = rows(comparison.match, self._samples(comparison, records), None, self.seed)
        widths = [row.speedup.width for row in found if row.speedup is not None]
        return None if None in widths else max((width for width in widths if width is not None), default=0.0)

    def _ordered(
        self, stage: str, number: int, planned: Mapping[str, list[tuple[Cell, StepSeries]]]
    ) -> list[Step]:
        shuffle = random.Random(f"peers:{self.seed}:{stage}")
        steps: list[Step] = []
        kernels = {one.subject.kernel.name: one.subject.kernel for one in self.comparisons}
        for name in shuffle.sample(list(planned), len(planned)):
            for cell, series in shuffle.sample(planned[name], len(planned[name])):
                steps.append(Step(kernels[name], cell, series, number, len(steps) + 1))
        return steps

    def _samples(self, comparison: Comparison, records: Sequence[Record]) -> list[Sample]:
        name = comparison.subject.kernel.name
        return samples([record for record in records if record.of_kernel == name], {})

    def _trials(self, comparison: Comparison, records: Sequence[Record]) -> list[Sample]:
        return [one for one in self._samples(comparison, records) if one.series == "trial"]

    def _tried(self, comparison: Comparison, records: Sequence[Record]) -> list[Cell]:
        """The candidates to try: on several cores those that did well on one, if that was tried."""
        cells = list(comparison.subject.cells)
        single = replace(comparison.match, threads=1)
        alike = next((one for one in self.comparisons if one.match == single), None)
        if comparison.match.threads == 1 or alike is None:
            return cells
        kept = {cell.measured.module for cell in self._kept(alike, records)}
        return [cell for cell in cells if cell.measured.module in kept] if kept else cells

    def _kept(self, comparison: Comparison, records: Sequence[Record]) -> list[Cell]:
        trials = self._trials(comparison, records)
        if not trials:
            return self._tried(comparison, records)
        if comparison.match.threads > 1:
            kept = {sample.candidate for sample in trials if sample.value is not None}
        else:
            kept = carried_on(trials, comparison.match)
        return [c for c in comparison.subject.cells if comparison.candidates[c.measured.module] in kept]

    def _twin(self, comparison: Comparison, cells: Sequence[Cell], records: Sequence[Record]) -> Cell | None:
        """The candidate of ours that runs twice per round: the best of the trial runs, else the first."""
        ours = [c for c in cells if comparison.candidates[c.measured.module].side == "ours"]
        tried = {
            sample.candidate.label: sample.value
            for sample in self._trials(comparison, records)
            if sample.value is not None
        }
        if not ours:
            return None
        if not tried:
            return ours[0]
        choose = max if comparison.match.better == "higher" else min
        return choose(ours, key=lambda cell: tried[cell.measured.module])


def _is_trial(record: Record) -> bool:
    return record.series == "trial"
