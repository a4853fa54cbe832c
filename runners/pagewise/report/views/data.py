"""Rows, names and sentences that views share, and the tables for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pagewise.analysis.choices import Best, Choice
from pagewise.analysis.comparison import Comparison, Reason
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import Group, KernelResult, Row
from pagewise.core.benchmark import Benchmark, Metric
from pagewise.core.configuration import Configuration
from pagewise.core.dimensions import PAGES, Dimension, dimension_of, dimensions_of, sensitive_dimensions
from pagewise.core.manifest import Manifest
from pagewise.core.plan import Cell
from pagewise.core.record_parts import PEAK_MEMORY
from pagewise.core.units import bytes_text, count_text, percent_text
from pagewise.report.model import Table, output_of
from pagewise.report.verdicts import ComparisonRow, ConfigurationRow, MedianRow

_GIB = 1 << 30
_TIME = Metric("pass_seconds", "time per pass", "s", "lower")


@dataclass(frozen=True)
class DataRow:
    """A row of a comparison, with its kernel, the group of its compiler, and what outputs show of it.

    `configuration` is the one that was measured, or another one that it stands for.
    """

    benchmark: Benchmark
    group: Group
    row: Row
    configuration: Configuration

    @property
    def label(self) -> str:
        """The configuration in words."""
        return label(self.benchmark, self.configuration)

    @property
    def peak(self) -> float | None:
        """The peak memory of a program in bytes."""
        peak = self.row.metrics.get(PEAK_MEMORY)
        return None if peak is None else peak * _GIB

    @property
    def more_memory_bytes(self) -> float | None:
        """What of the peak is there only because of the policy; negative: it needs less."""
        ratio = self.row.memory
        return None if ratio is None or self.peak is None else self.peak * (1.0 - 1.0 / ratio.median)


def entries(kernels: Iterable[KernelResult]) -> list[DataRow]:
    """All rows, by kernel and compiler; the ranked ones first."""
    return [
        DataRow(result.benchmark, group, row, row.cell.measured)
        for result in kernels
        for group in result.groups
        for row in group.rows
    ]


def ranked_rows(kernels: Iterable[KernelResult]) -> list[DataRow]:
    """The ranked rows."""
    return [entry for entry in entries(kernels) if entry.row.invalid is None]


def excluded_rows(kernels: Iterable[KernelResult]) -> list[DataRow]:
    """The excluded rows."""
    return [entry for entry in entries(kernels) if entry.row.invalid is not None]


def faults(kernels: Iterable[KernelResult]) -> list[DataRow]:
    """The rows that are excluded because of a fault; a missing configuration is not a fault."""
    return [entry for entry in excluded_rows(kernels) if entry.row.is_fault]


def rounds_share(row: Row) -> str:
    """In how many of its kernel's rounds a row has a valid run: `18 of 60 rounds`."""
    return f"{row.rounds} of {count_text(row.rounds_made, 'round')}"


def configurations(kernels: Iterable[KernelResult]) -> list[ConfigurationRow]:
    """Each configuration of each kernel, including those that share a measurement; times in seconds."""
    return [
        output_of(ConfigurationRow, replace(entry, configuration=configuration))
        for entry in entries(kernels)
        for configuration in entry.row.cell.stands_for
    ]


def comparisons(rows: Iterable[Comparison]) -> list[ComparisonRow]:
    """Each comparison of each kind."""
    return [output_of(ComparisonRow, row) for row in rows]


def medians(kernels: Sequence[KernelResult], manifest: Manifest) -> Table:
    """Each quantity of each measured configuration and each point of a curve, with the placement."""
    places = {place.name: place for place in manifest.placements}

    def row_of(kernel: Benchmark, cell: Cell, **further: Any) -> MedianRow:
        place = places.get(cell.placement or "", manifest.placement)
        item = {"benchmark": kernel, "configuration": cell.measured, "place": place, **further}
        return output_of(MedianRow, item)

    def rows() -> Iterator[MedianRow]:
        for result in kernels:
            for row in (row for group in result.groups for row in group.rows):
                values = {_TIME.field: row.seconds, **row.metrics}
                for metric in (*result.benchmark.metrics, _TIME):
                    value = {"value": values.get(metric.field), "invalid": row.invalid}
                    yield row_of(result.benchmark, row.cell, metric=metric, **value)
            for curve in result.curves:
                of_curve = {"metric": curve.sweep.y, "sweep": curve.sweep.name}
                for x, y in curve.points:
                    swept = f"{x:.12g}" if isinstance(x, float) else x
                    yield row_of(result.benchmark, curve.cell, **of_curve, swept=swept, value=y)

    return Table.of_outputs(MedianRow, rows())


# Memory that differs by a smaller share is called the same.
_SAME_MEMORY = 0.01
_REASONS: dict[Reason, str] = {
    "too few rounds": "too few rounds",
    "interval": "the interval contains 1",
    "floor": "within the noise floor",
    "correction": "not significant among so many comparisons",
    "bimodal": "run times are bimodal",
    "drift": "the ratio changed over the rounds",
    "no baseline": "the baseline is excluded",
}


def shown_dimensions(result: KernelResult) -> tuple[Dimension, ...]:
    """The dimensions with a column in tables: those always shown, and those in which rows differ."""
    kernel = result.benchmark
    configurations = [row.cell.measured for group in result.groups for row in group.rows]

    def is_shown(dimension: Dimension) -> bool:
        differs = dimension.always or len(set(map(dimension.of, configurations))) > 1
        return dimension is PAGES or (kernel.is_sensitive_to(dimension.name) and differs)

    return tuple(filter(is_shown, dimensions_of([kernel])))


def label(kernel: Benchmark, configuration: Configuration) -> str:
    """A configuration in as few words as it needs: `none`, `thp software`, `thp nontemporal x86_64_v3`.

    Defaults are not named, as hardware prefetch and regular stores.
    """
    return short_name(configuration, sensitive_dimensions(kernel)) or "as built"


def short_name(configuration: Configuration, dimensions: Iterable[Dimension]) -> str:
    """A configuration's values in these dimensions, without defaults: `thp software`."""
    return " ".join(filter(None, (dimension.brief(configuration) for dimension in dimensions)))


def choice_text(choice: Choice) -> str:
    """A single choice: `Pages: thp`."""
    dimension = dimension_of(choice.factor)
    loop = f" (loop={choice.loop})" if choice.loop else ""
    return f"{dimension.title}: {choice.value or dimension.empty}{loop}"


def label_of(best: Best) -> str:
    """The best configuration in words; the baseline's where nothing is faster."""
    return "" if best.shown is None else label(best.benchmark, best.shown.cell.measured)


def equally_good(best: Best) -> str:
    """The configurations that are as good as the best one."""
    return ", ".join(label(best.benchmark, row.cell.measured) for row in best.as_good)


def capital(text: str) -> str:
    """The text with its first letter capitalized, unless it begins with a version (gcc-12.2.0)."""
    is_version = any(map(str.isdigit, text.partition(" ")[0]))
    return text if is_version else text[:1].upper() + text[1:]


def floored_percent(share: float) -> str:
    """A share that is never rounded up: incomplete coverage shows as `99.9 %` at most."""
    return f"{int(1000 * share) / 10:g} %"


def pages_text(row: Row) -> str:
    """The observed page size, with the share of bytes on pages of that size: `2 MiB 100 %`."""
    if row.pages is None:
        return ""
    huge = row.pages.huge_coverage > 0.5
    share = row.pages.huge_coverage if huge else 1.0 - row.pages.huge_coverage
    return f"{bytes_text(row.pages.page_size_observed_bytes)} {floored_percent(share)}"


def speed_up(measured: Ratio | None) -> float | None:
    """The inverse of a time ratio."""
    return None if measured is None else 1.0 / measured.median


def memory_text(memory: Ratio | None) -> str:
    """A ratio of memory after a change of time: ` for 12 % more memory`; empty for a kernel."""
    if memory is None:
        return ""
    share = abs(1.0 - memory.median)
    if share < _SAME_MEMORY:
        return " with the same memory"
    more = memory.median > 1.0
    return f" for {share_text(share)} more memory" if more else f" with {share_text(share)} less memory"


def cost_text(row: Row) -> str:
    """What a program's policy gains and needs: `7 % less time for 12 % more memory`."""
    ratio = row.time_ratio
    if ratio is None or row.verdict not in ("faster", "slower"):
        return "inconclusive" + memory_text(row.memory)
    time = f"{share_text(abs(1.0 - ratio.median))} {'less' if ratio.median < 1 else 'more'} time"
    return time + memory_text(row.memory)


def share_text(share: float) -> str:
    """A share with two significant figures: `13 %`, `4.1 %`."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else percent_text(share)


def floor_text(floor: float) -> str:
    """A noise floor with the ratios that are within it: `5.7 % (ratios 0.946 to 1.057)`."""
    return f"{percent_text(floor)} (ratios {1.0 / (1.0 + floor):.3f} to {1.0 + floor:.3f})"


def floors_text(groups: Sequence[Group]) -> str:
    """The noise floors of groups."""
    known = [group for group in groups if group.floor is not None]
    if not known:
        return (
            "No noise floor, therefore no verdicts: three rounds with the baseline twice in each are needed."
        )
    floors = ", ".join(f"{group.compiler} {floor_text(group.floor or 0.0)}" for group in known)
    rounds = max(repeated.pairs for group in known for repeated in group.repeated)
    return (
        f"Noise floor, the baseline against itself (A/A) over {rounds} rounds: {floors}. Smaller differences "
        "are inconclusive."
    )


def reason_text(reason: Reason | None) -> str:
    """Why a verdict is inconclusive, in a few words."""
    return "" if reason is None else _REASONS[reason]


def method_text(results: Sequence[KernelResult]) -> str:
    """The number of verdicts and their correction; empty if there are fewer than two."""
    count = results[0].judged if results else 0
    if count < 2:
        return ""
    return (
        f"Verdicts are corrected for {count} comparisons (Benjamini and Hochberg): of the reported "
        "differences at most 5 % are false on average."
    )
