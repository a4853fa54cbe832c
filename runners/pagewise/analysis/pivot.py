"""Measured values of comparisons by axes, such as threads, build and SMT, for tables in any of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pagewise.analysis.analysis import KernelResult, analyse_result
from pagewise.analysis.curves import X
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.series import by_cell, runs_of
from pagewise.analysis.statistics import Runs, quotients, ratio
from pagewise.core.dimensions import DIMENSIONS
from pagewise.core.kernel import Kernel, Metric
from pagewise.core.manifest import Manifest, PlannedPlacement
from pagewise.core.plan import Cell
from pagewise.core.record import Record
from pagewise.core.result import Result

#: The quantity of every run.
TIME = "run_seconds"
#: The first metric of a program.
HEADLINE = "headline"
#: What follows from the placement of runs.
PLACES = ("tasks", "ranks", "threads", "cores", "smt", "binding", "memory")
_TARGET_AND_FLAGS = ("target", "flags", "placement")
#: The name of a curve, as `prefetch-distance`, and the swept value of a point; empty in other runs.
SWEPT = ("sweep", "swept")
#: All axes: the program, its build, the dimensions of configurations, the placement, and sweeps.
AXES = (
    "program",
    "compiler",
    "build",
    *(each.name for each in DIMENSIONS if each.name not in (*_TARGET_AND_FLAGS, "compiler")),
    *PLACES,
    *SWEPT,
)
AxisValue = str | int


@dataclass(frozen=True)
class Fact:
    """A configuration of a program in one placement: where it is on each axis, and its values.

    result: the number of its result. medians: by quantity. runs: by quantity the values by round, those of a
    baseline with its repetitions (A/A). missing: why it has no values; None if it has.
    """

    result: int
    kernel: Kernel
    axes: Mapping[str, AxisValue]
    placement: str
    medians: Mapping[str, float]
    runs: Mapping[str, Runs]
    missing: str | None = None

    def value(self, quantity: str) -> float | None:
        """The median of a quantity."""
        return self.medians.get(self.name_of(quantity))

    def metric(self, quantity: str) -> Metric | None:
        """The metric, None for time."""
        name = self.name_of(quantity)
        return next((metric for metric in self.kernel.metrics if metric.field == name), None)

    def name_of(self, quantity: str) -> str:
        """The field of a quantity in its records."""
        return self.kernel.headline.field if quantity == HEADLINE else quantity


def performance(fact: Fact, base: Fact, quantity: str) -> Ratio | None:
    """How much better a fact is than another: above 1 is faster, by time or by a metric, paired by round.

    None without values, or for facts of different results, whose rounds are no pairs.
    """
    if fact.result != base.result:
        return None
    ours, theirs = (each.runs.get(each.name_of(quantity), []) for each in (fact, base))
    pairs = quotients(ours[:1], theirs) if ours and theirs else []
    if not any(pairs):
        return None
    measured = ratio(pairs, zlib.crc32(f"{fact.kernel.name}/{quantity}/{fact.axes}".encode()))
    metric = fact.metric(quantity)
    if measured is None or (metric is not None and metric.better == "higher"):
        return measured
    ends = (None if end is None else 1.0 / end for end in (measured.high, measured.low))
    return Ratio(measured.pairs, 1.0 / measured.median, *ends)


def efficiency(fact: Fact, base: Fact, quantity: str) -> Ratio | None:
    """The parallel efficiency: the performance per task relative to a fact with other threads or ranks."""
    found = performance(fact, base, quantity)
    if found is None:
        return None
    share = int(base.axes["tasks"]) / int(fact.axes["tasks"])
    ends = (None if end is None else end * share for end in (found.low, found.high))
    return Ratio(found.pairs, found.median * share, *ends)


def facts_of(results: Sequence[Result]) -> Iterator[Fact]:
    """The facts of configurations and curves in these results; those that are excluded have no values."""
    for number, result in enumerate(results):
        records = by_cell(result.records)
        for analysed in analyse_result(result):
            kernel = analysed.kernel
            yield from _swept(number, analysed, result.manifest)
            for row in (row for group in analysed.groups for row in group.rows):
                axes, place = axes_of(kernel, row.cell, result.manifest), row.cell.placement or ""
                if row.invalid is not None or row.seconds is None:
                    yield Fact(number, kernel, axes, place, {}, {}, row.invalid or "not measured")
                    continue
                timed, repeated = (
                    records.get((kernel.name, row.cell.key, series), []) for series in ("compare", "aa")
                )
                medians = {TIME: row.seconds, **row.metrics}
                yield Fact(number, kernel, axes, place, medians, _runs(kernel, timed, repeated))


def _swept(number: int, analysed: KernelResult, manifest: Manifest) -> Iterator[Fact]:
    """The points of curves."""
    for curve in analysed.curves:
        axes, place = axes_of(analysed.kernel, curve.cell, manifest), curve.cell.placement or ""
        for x, y in curve.points:
            at = {**axes, "sweep": curve.sweep.name, "swept": _axis_value(x)}
            yield Fact(number, analysed.kernel, at, place, {curve.sweep.y.field: y}, {})


def _axis_value(x: X) -> AxisValue:
    """A swept value on its axis, whole numbers as such."""
    if isinstance(x, str):
        return x
    return int(x) if x.is_integer() else f"{x:g}"


def axes_of(kernel: Kernel, cell: Cell, manifest: Manifest) -> dict[str, AxisValue]:
    """Where a configuration is on each axis."""
    measured = cell.measured
    dimensions = {each.name: each.of(measured) for each in DIMENSIONS if each.name not in _TARGET_AND_FLAGS}
    target = measured.target if measured.names_target else ""
    build = "-".join(filter(None, (target, measured.flags)))
    placement = _placement(cell, manifest)
    return {
        **dimensions,
        "program": program_title(kernel),
        "compiler": measured.compiler,
        "build": build,
        **_places(placement),
        **dict.fromkeys(SWEPT, ""),
    }


def program_title(kernel: Kernel) -> str:
    """The name of a program without the ending of its file: `cg.B`."""
    return kernel.title.removesuffix(".x")


def _placement(cell: Cell, manifest: Manifest) -> PlannedPlacement:
    named = {placement.name: placement for placement in manifest.placements}
    return named[cell.placement] if cell.placement is not None else manifest.placement


def _places(placement: PlannedPlacement) -> dict[str, AxisValue]:
    ranks = placement.ranks or 1
    tasks = ranks * placement.threads
    cores = placement.cores or tasks
    return {
        "tasks": tasks,
        "ranks": ranks,
        "threads": placement.threads,
        "cores": cores,
        "smt": -(-tasks // cores),
        "binding": placement.order or "",
        "memory": placement.policy or placement.memory,
    }


def _runs(kernel: Kernel, timed: Sequence[Record], repeated: Sequence[Record]) -> dict[str, Runs]:
    """Each quantity by round, of valid runs."""
    runs: dict[str, Runs] = {TIME: runs_of(timed, repeated)}
    for metric in kernel.metrics:
        of_metric = runs_of(timed, repeated, partial(_figure, metric.field))
        # Other values have no ratios.
        if all(value > 0.0 for run in of_metric for value in run.values()):
            runs[metric.field] = of_metric
    return runs


def _figure(name: str, record: Record) -> float | None:
    return record.figures.get(name)
