"""The rows of summary.csv and policies.csv: one per kernel and configuration, one per ratio."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pagewise.analysis.analysis import Group, KernelResult
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import Row
from pagewise.analysis.verdict import Verdict
from pagewise.core.dimensions import COMPILER, DIMENSIONS, values_of
from pagewise.report.model import Table, Value, data_table

_SUMMARY = (
    *("kernel", "module", "measured_as", COMPILER.name, *(one.name for one in DIMENSIONS), "builder", "hash"),
    *("is_baseline", "runs", "rounds", "rounds_made", "pass_seconds_median", "pass_seconds_trimmed_mean"),
    *("populate_seconds", "wall_seconds", "metric", "metric_value", "metric_unit", "metric_convention"),
    *("page_size_requested_bytes", "page_size_observed_bytes", "huge_coverage", "time_ratio"),
    *("time_ratio_low", "time_ratio_high", "time_ratio_trimmed_mean", "pairs", "noise_floor", "p"),
    *("p_corrected", "verdict", "reason", "outlier_rounds", "slow_share", "slow_to_fast", "code", "invalid"),
    *("remedy", "note"),
)
_POLICIES = ("kernel", "compiler", "hugepages", "reference", "quantity", "ratio", "low", "high", "pairs")


def summary(kernels: Sequence[KernelResult]) -> Table:
    """Each configuration of each kernel, those measured by another one too; times in seconds."""
    return data_table(
        _SUMMARY,
        [
            row
            for result in kernels
            for group in result.groups
            for measured in (*group.ranked, *group.unranked)
            for row in _rows(result, group, measured)
        ],
    )


def policies(kernels: Sequence[KernelResult]) -> Table:
    """Each ratio; `reference` is the other compiler, or the pages of the baseline."""
    return data_table(
        _POLICIES,
        [
            {
                "kernel": result.kernel.name,
                "compiler": one.compiler,
                "hugepages": one.policy,
                "reference": one.reference or "without huge pages",
                "quantity": one.quantity,
                **ratio_fields(one.ratio),
            }
            for result in kernels
            for one in result.by_policy
        ],
    )


def ratio_fields(ratio: Ratio | None) -> dict[str, Value]:
    """A ratio as the fields of rows for programs."""
    if ratio is None:
        return dict.fromkeys(("ratio", "low", "high", "pairs"))
    return {"ratio": ratio.median, "low": ratio.low, "high": ratio.high, "pairs": ratio.pairs}


def verdict_fields(verdict: Verdict, change: str | None) -> dict[str, Value]:
    """A verdict as the fields of rows for programs; `change` names it."""
    return {
        **ratio_fields(verdict.ratio),
        "noise_floor": verdict.floor,
        "p_corrected": verdict.p,
        "verdict": change,
        "reason": verdict.reason,
    }


def _rows(result: KernelResult, group: Group, row: Row) -> Iterator[dict[str, Value]]:
    for configuration in row.cell.stands_for:
        yield {
            "kernel": result.kernel.name,
            "module": configuration.module,
            "measured_as": row.cell.measured.module,
            **values_of(configuration),
            "builder": configuration.builder,
            "hash": configuration.hash,
            "is_baseline": row.cell.is_baseline,
            **_measured(result, row),
            **_compared(group, row),
        }


def _measured(result: KernelResult, row: Row) -> dict[str, Value]:
    metric, pages = result.kernel.headline, row.pages
    return {
        "runs": row.runs,
        "rounds": row.rounds,
        "rounds_made": row.rounds_made,
        "pass_seconds_median": row.seconds,
        "pass_seconds_trimmed_mean": row.seconds_trimmed,
        "populate_seconds": row.populate,
        "wall_seconds": row.wall,
        "metric": metric.field,
        "metric_value": row.metrics.get(metric.field),
        "metric_unit": metric.unit,
        "metric_convention": metric.convention,
        "page_size_requested_bytes": None if pages is None else pages.requested,
        "page_size_observed_bytes": None if pages is None else pages.observed,
        "huge_coverage": None if pages is None else pages.coverage,
    }


def _compared(group: Group, row: Row) -> dict[str, Value]:
    fields: dict[str, Value] = {
        "noise_floor": group.floor,
        "code": row.code,
        "invalid": row.invalid,
        "remedy": row.remedy,
        "note": row.note,
        "reason": row.reason,
        "outlier_rounds": " ".join(str(number) for number, _ in row.outliers),
    }
    if row.bimodal is not None:
        fields |= {"slow_share": row.bimodal.slow_share, "slow_to_fast": row.bimodal.apart}
    if row.time_ratio is not None:
        fields |= {
            "time_ratio": row.time_ratio.median,
            "time_ratio_low": row.time_ratio.low,
            "time_ratio_high": row.time_ratio.high,
            "time_ratio_trimmed_mean": row.time_ratio.trimmed,
            "pairs": row.time_ratio.pairs,
            "p": row.time_ratio.p,
            "p_corrected": row.p,
            "verdict": row.verdict,
        }
    return fields
