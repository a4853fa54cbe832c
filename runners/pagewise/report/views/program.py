"""What the report of the user's program has besides: its own metrics, its memory by kind, the policies."""

from __future__ import annotations

from dataclasses import asdict

from pagewise.analysis.program import (
    MetricRow,
    SamplingCost,
    memory_rows,
    metric_rows,
    sampling_cost,
)
from pagewise.analysis.result import trusted_records
from pagewise.core.result import Result
from pagewise.core.units import percent_text
from pagewise.report.model import (
    Block,
    Cell,
    Column,
    Facts,
    Section,
    Table,
    Text,
    Value,
    data_table,
    style_of,
)
from pagewise.report.views.data import ratio_fields, verdict_fields
from pagewise.report.views.wording import label, reason_text

_METRICS = (
    *("metric", "unit", "better", "hugepages", "value", "ratio", "low", "high", "pairs", "noise_floor"),
    *("p_corrected", "verdict", "reason"),
)
_MEMORY = (
    *("hugepages", "kind", "peak_bytes", "peak_huge_bytes", "mean_bytes", "mean_huge_bytes"),
    "mean_coverage",
)
# Less is not shown, unless it is on huge pages.
_SMALL_BYTES = 1 << 20


def is_program(result: Result) -> bool:
    """Whether the result is of the user's program."""
    return bool(result.manifest["kind"] == "program")


def sections(result: Result) -> list[Section]:
    """Metrics, memory and the meaning of the policies; none for a comparison of kernels."""
    if not is_program(result):
        return []
    program = result.manifest["program"]
    meanings = tuple(
        (one["name"], f"{one['meaning']}. Unavailable: {one['lack']}" if one["lack"] else one["meaning"])
        for one in program["policies"]
    )
    found = [Section("Policies", (Facts(meanings),), "meanings", only="page")]
    return [_metrics(result), _memory(result), *found]


def tables(result: Result) -> dict[str, Table]:
    """metrics.csv and memory.csv."""
    if not is_program(result):
        return {}
    memory: list[dict[str, Value]] = [
        {
            "hugepages": row.policy,
            "kind": row.kind,
            "peak_bytes": round(row.peak),
            "peak_huge_bytes": round(row.peak_huge),
            "mean_bytes": round(row.mean),
            "mean_huge_bytes": round(row.mean_huge),
            "mean_coverage": round(row.coverage, 6),
        }
        for row in memory_rows(trusted_records(result))
    ]
    metrics = [_metric(result, row) for row in metric_rows(result)]
    return {"metrics.csv": data_table(_METRICS, metrics), "memory.csv": data_table(_MEMORY, memory)}


def data(result: Result) -> dict[str, object]:
    """The field `program` of the JSON object; nothing for kernels."""
    if not is_program(result):
        return {}
    memory = [
        {**asdict(row), "coverage": row.coverage, "peak_coverage": row.peak_coverage}
        for row in memory_rows(trusted_records(result))
    ]
    return {"program": {"metrics": tables(result)["metrics.csv"], "memory": memory}}


def _metric(result: Result, row: MetricRow) -> dict[str, Value]:
    return {
        "metric": row.metric.label,
        "unit": row.metric.unit,
        "better": row.metric.better,
        "hugepages": label(result.subjects[0].kernel, row.cell.measured),
        "value": row.value,
        **(ratio_fields(None) if row.verdict is None else verdict_fields(row.verdict, row.change)),
        "noise_floor": row.floor,
    }


def _metrics(result: Result) -> Section:
    columns = (
        Column("metric", merged=True),
        Column("better", merged=True),
        Column("hugepages"),
        Column("median", kind="number"),
        Column("ratio", unit="95 % interval", kind="ratio"),
        Column("verdict"),
    )
    rows = []
    for row in metric_rows(result):
        style = "baseline" if row.change is None else style_of(row.change)
        ratio = Cell("1", "baseline") if row.verdict is None else Cell(row.ratio, style, floor=row.floor)
        reason = "" if row.verdict is None else reason_text(row.verdict.reason)
        rows.append(
            (
                f"{row.metric.label} [{row.metric.unit}]",
                row.metric.better,
                label(result.subjects[0].kernel, row.cell.measured),
                *(row.value, ratio, Cell(row.change or "baseline", style, reason)),
            )
        )
    checks = ", ".join(result.manifest["program"]["checks"])
    text = "Medians; ratios to the baseline, paired by round." + (
        f" The output of each run had to pass: {checks}." if checks else ""
    )
    return Section("Metrics", (Table("Metrics by policy", columns, tuple(rows)), Text(text, style="dim")))


def _memory(result: Result) -> Section:
    columns = (
        Column("policy", merged=True),
        Column("kind"),
        Column("peak", kind="bytes"),
        Column("mean", unit="over time", kind="bytes"),
        Column("peak_coverage", "on huge pages", unit="at peak", kind="percent"),
        Column("coverage", "on huge pages", unit="over time", kind="percent"),
    )
    rows = tuple(
        (row.policy, row.kind, row.peak, row.mean, row.peak_coverage, row.coverage)
        for row in memory_rows(trusted_records(result))
        if row.kind == "all" or row.peak >= _SMALL_BYTES or row.peak_huge > 0
    )
    cost = sampling_cost(trusted_records(result))
    text = "Memory of the processes while they ran (smaps): medians over the timed runs."
    blocks: tuple[Block, ...] = (
        Table("Memory by kind", columns, rows),
        Text(f"{text} {_cost_text(cost)}" if cost else text, style="dim"),
    )
    return Section("Memory", blocks)


def _cost_text(cost: SamplingCost) -> str:
    text = (
        f"Memory was sampled {cost.samples:.0f} times per run, which took {percent_text(cost.share)} of a CPU"
    )
    if any("untimed" in method for method in cost.methods):
        text += "; an untimed run of the same policy shows what was in memory too shortly for that"
    return text + "."
