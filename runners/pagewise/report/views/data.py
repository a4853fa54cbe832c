"""The rows of a comparison, and the tables for programs: summary.csv, policies.csv and data.csv."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pagewise.analysis.analysis import Group, KernelResult
from pagewise.analysis.rows import Row
from pagewise.core.benchmark import Benchmark, Metric
from pagewise.core.configuration import Configuration
from pagewise.core.dimensions import COMPILER, DIMENSIONS, Dimension
from pagewise.core.manifest import Manifest
from pagewise.core.units import count_text
from pagewise.report.model import Getter, Table, value_of
from pagewise.report.views.wording import label


@dataclass(frozen=True)
class Entry:
    """A row of a comparison, with its kernel and the group of its compiler."""

    result: KernelResult
    group: Group
    row: Row

    @property
    def kernel(self) -> Benchmark:
        """The kernel, or the user's program."""
        return self.result.kernel

    @property
    def measured(self) -> Configuration:
        """The configuration that was measured."""
        return self.row.cell.measured

    @property
    def label(self) -> str:
        """The configuration in words."""
        return label(self.kernel, self.measured)


def entries(kernels: Iterable[KernelResult]) -> list[Entry]:
    """All rows, by kernel and compiler; the ranked ones first."""
    return [
        Entry(result, group, row)
        for result in kernels
        for group in result.groups
        for row in (*group.ranked, *group.unranked)
    ]


def ranked(kernels: Iterable[KernelResult]) -> list[Entry]:
    """The ranked rows."""
    return [entry for entry in entries(kernels) if entry.row.invalid is None]


def excluded(kernels: Iterable[KernelResult]) -> list[Entry]:
    """The excluded rows."""
    return [entry for entry in entries(kernels) if entry.row.invalid is not None]


def faults(kernels: Iterable[KernelResult]) -> list[Entry]:
    """The rows that are excluded because of a fault; a missing configuration is no fault."""
    return [entry for entry in excluded(kernels) if entry.row.is_fault]


def ratio_fields(path: str = "ratio", prefix: str = "") -> dict[str, Getter]:
    """The fields of the ratio at `path` of an item; `prefix` precedes their names."""
    fields = {"ratio": "median", "low": "low", "high": "high", "pairs": "pairs"}
    return {f"{prefix}{name}": f"{path}.{attribute}" for name, attribute in fields.items()}


def verdict_fields(change: Getter) -> dict[str, Getter]:
    """The fields of an item's `verdict`; `change` names it."""
    return {
        **ratio_fields("verdict.ratio"),
        "noise_floor": "verdict.floor",
        "p_corrected": "verdict.p",
        "verdict": change,
        "reason": "verdict.reason",
    }


def dimension_fields(path: str) -> dict[str, Getter]:
    """The dimensions' values in the configuration at `path` of an item; None for no value."""

    def getter(dimension: Dimension) -> Getter:
        return lambda item: dimension.of(value_of(item, path)) or None

    return {dimension.name: getter(dimension) for dimension in (COMPILER, *DIMENSIONS)}


def rounds_share(row: Row) -> str:
    """In how many of its kernel's rounds a row has a valid run: `18 of 60 rounds`."""
    return f"{row.rounds} of {count_text(row.rounds_made, 'round')}"


# Of `row` by `kernel`, `group` and the `configuration` that it stands for.
_SUMMARY: Mapping[str, Getter] = {
    "kernel": "kernel.name",
    "module": "configuration.module",
    "measured_as": "row.cell.measured.module",
    **dimension_fields("configuration"),
    "builder": "configuration.builder",
    "hash": "configuration.hash",
    "is_baseline": "row.cell.is_baseline",
    "runs": "row.runs",
    "rounds": "row.rounds",
    "rounds_made": "row.rounds_made",
    "pass_seconds_median": "row.seconds",
    "pass_seconds_trimmed_mean": "row.seconds_trimmed",
    "populate_seconds": "row.populate",
    "wall_seconds": "row.wall",
    "metric": "kernel.headline.field",
    "metric_value": lambda item: item["row"].metrics.get(item["kernel"].headline.field),
    "metric_unit": "kernel.headline.unit",
    "metric_convention": "kernel.headline.convention",
    "metric_estimated": "kernel.headline.estimated",
    "page_size_requested_bytes": "row.pages.requested",
    "page_size_observed_bytes": "row.pages.observed",
    "huge_coverage": "row.pages.coverage",
    "time_ratio": "row.time_ratio.median",
    "time_ratio_low": "row.time_ratio.low",
    "time_ratio_high": "row.time_ratio.high",
    "time_ratio_trimmed_mean": "row.time_ratio.trimmed",
    "pairs": "row.time_ratio.pairs",
    "noise_floor": "group.floor",
    "p": "row.time_ratio.p",
    "p_corrected": "row.p",
    "verdict": lambda item: item["row"].verdict if item["row"].time_ratio else None,
    "reason": "row.reason",
    "memory_ratio": "row.memory.median",
    "memory_ratio_low": "row.memory.low",
    "memory_ratio_high": "row.memory.high",
    "over_memory_budget": "row.over_budget",
    "differs_in": lambda item: " ".join(item["row"].differs),
    "change": "row.change.dimension",
    "change_from": "row.change.reference.measured.module",
    "change_from_options": "row.change.reference.options",
    **ratio_fields("row.change.time_ratio", "change_"),
    "change_verdict": "row.change.verdict",
    "change_reason": "row.change.reason",
    "change_p_corrected": "row.change.p",
    "migrated_runs": lambda item: item["row"].migration.runs if item["row"].migration else 0,
    "left_node_runs": lambda item: item["row"].migration.left_node if item["row"].migration else 0,
    "outlier_rounds": lambda item: " ".join(str(number) for number, _ in item["row"].outliers),
    "slow_share": "row.bimodal.slow_share",
    "slow_to_fast": "row.bimodal.apart",
    **{name: f"row.{name}" for name in ("code", "invalid", "remedy", "note")},
}
_POLICIES: Mapping[str, Getter] = {
    "kernel": "kernel.name",
    "compiler": "compared.compiler",
    "hugepages": "compared.policy",
    "reference": lambda item: item["compared"].reference or "without huge pages",
    "quantity": "compared.quantity",
    **ratio_fields("compared.ratio"),
}
_TIME = Metric("pass_seconds", "time per pass", "s", "lower")
_MEDIANS: Mapping[str, Getter] = {
    "kernel": "kernel.name",
    "title": "kernel.title",
    "module": "cell.measured.module",
    **dimension_fields("cell.measured"),
    **{name: f"place.{name}" for name in ("ranks", "threads", "cores")},
    "memory": lambda item: item["place"].policy or item["place"].memory,
    "sweep": "sweep",
    "swept": lambda item: f"{item['swept']:.12g}" if isinstance(item["swept"], float) else item["swept"],
    "quantity": "metric.field",
    "unit": "metric.unit",
    "better": "metric.better",
    "value": "value",
    "invalid": "row.invalid",
}


def summary(kernels: Iterable[KernelResult]) -> Table:
    """Each configuration of each kernel, including those that share a measurement; times in seconds."""
    return Table.of_fields(
        _SUMMARY,
        [
            {"kernel": entry.kernel, "group": entry.group, "row": entry.row, "configuration": configuration}
            for entry in entries(kernels)
            for configuration in entry.row.cell.stands_for
        ],
    )


def policies(kernels: Iterable[KernelResult]) -> Table:
    """Each ratio; `reference` is the other compiler, or the pages of the baseline."""
    ratios = [
        {"kernel": result.kernel, "compared": compared} for result in kernels for compared in result.by_policy
    ]
    return Table.of_fields(_POLICIES, ratios)


def medians(kernels: Iterable[KernelResult], manifest: Manifest) -> Table:
    """Each quantity of each measured configuration and each point of a curve, with the placement."""
    places = {place.name: place for place in manifest.placements}

    def items() -> Iterator[dict[str, Any]]:
        for result in kernels:
            for entry in entries([result]):
                row, of_cell = entry.row, {"kernel": result.kernel, "cell": entry.row.cell}
                values = {_TIME.field: row.seconds, **row.metrics}
                for metric in (*result.kernel.metrics, _TIME):
                    yield {**of_cell, "metric": metric, "value": values.get(metric.field), "row": row}
            for curve in result.curves:
                of_curve = {"kernel": result.kernel, "cell": curve.cell, "metric": curve.sweep.y}
                for x, y in curve.points:
                    yield {**of_curve, "value": y, "sweep": curve.sweep.name, "swept": x}

    empty = {"row": None, "sweep": None, "swept": None}
    placed = (
        {**empty, **item, "place": places.get(item["cell"].placement, manifest.placement)} for item in items()
    )
    return Table.of_fields(_MEDIANS, placed)
