"""summary.csv: a row for each kernel and configuration, those that were measured by another one too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pagewise.analysis.analysis import Group, KernelResult, Row
from pagewise.core.configuration import Configuration
from pagewise.core.dimensions import values_of
from pagewise.core.files import table_text

_COLUMNS = (
    "kernel",
    "module",
    "measured_as",
    "compiler",
    "hugepages",
    "prefetch",
    "stores",
    "library",
    "runtime",
    "simd",
    "target",
    "placement",
    "builder",
    "hash",
    "is_baseline",
    "runs",
    "rounds",
    "rounds_made",
    "pass_seconds_median",
    "pass_seconds_trimmed_mean",
    "populate_seconds",
    "wall_seconds",
    "metric",
    "metric_value",
    "metric_unit",
    "metric_convention",
    "page_size_requested_bytes",
    "page_size_observed_bytes",
    "huge_coverage",
    "time_ratio",
    "time_ratio_low",
    "time_ratio_high",
    "time_ratio_trimmed_mean",
    "pairs",
    "noise_floor",
    "p",
    "p_corrected",
    "verdict",
    "reason",
    "outlier_rounds",
    "slow_share",
    "slow_to_fast",
    "code",
    "invalid",
    "remedy",
    "note",
)


def summary_csv(kernels: Sequence[KernelResult]) -> str:
    """The summary; times in seconds, ratios to the baseline of the same compiler."""
    return table_text(_COLUMNS, [list(row.values()) for row in summary_rows(kernels)])


def summary_rows(kernels: Sequence[KernelResult]) -> Iterator[dict[str, object]]:
    """The rows of the summary, each with all columns: None where there is no value."""
    for result in kernels:
        for group in result.groups:
            for row in (*group.ranked, *group.unranked):
                for told in _rows(result, group, row):
                    yield {name: told.get(name) for name in _COLUMNS}


def _rows(result: KernelResult, group: Group, row: Row) -> Iterator[dict[str, object]]:
    for configuration in row.cell.stands_for:
        yield {**_who(result, row, configuration), **_what(result, row), **_compared(group, row)}


def _who(result: KernelResult, row: Row, configuration: Configuration) -> dict[str, object]:
    return {
        "kernel": result.kernel.name,
        "module": configuration.module,
        "measured_as": row.cell.measured.module,
        "is_baseline": row.cell.is_baseline,
        **values_of(configuration),
        "builder": configuration.builder,
        "hash": configuration.hash,
    }


def _what(result: KernelResult, row: Row) -> dict[str, object]:
    metric = result.kernel.headline
    told: dict[str, object] = {
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
    }
    if row.pages is not None:
        told |= {
            "page_size_requested_bytes": row.pages.requested,
            "page_size_observed_bytes": row.pages.observed,
            "huge_coverage": row.pages.coverage,
        }
    return told


def _compared(group: Group, row: Row) -> dict[str, object]:
    told: dict[str, object] = {
        "noise_floor": group.floor,
        "code": row.code,
        "invalid": row.invalid,
        "remedy": row.remedy,
        "note": row.note,
        "reason": row.reason,
        "outlier_rounds": " ".join(str(number) for number, _ in row.outliers),
    }
    if row.speeds is not None:
        told |= {"slow_share": row.speeds.slow_share, "slow_to_fast": row.speeds.apart}
    if row.time_ratio is not None:
        told |= {
            "time_ratio": row.time_ratio.median,
            "time_ratio_low": row.time_ratio.low,
            "time_ratio_high": row.time_ratio.high,
            "time_ratio_trimmed_mean": row.time_ratio.trimmed,
            "pairs": row.time_ratio.pairs,
            "p": row.time_ratio.p,
            "p_corrected": row.p,
            "verdict": row.verdict,
        }
    return told
