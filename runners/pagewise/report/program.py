"""What is told of a program that is no kernel of ours: its own metrics by policy, and its memory by kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rich.table
from rich import box
from rich.console import Console
from rich.text import Text

from pagewise.analysis.program import (
    MemoryRow,
    MetricRow,
    SamplingCost,
    memory_rows,
    metric_rows,
    sampling_cost,
)
from pagewise.analysis.result import trusted_records
from pagewise.core.files import table_text
from pagewise.core.result import Result
from pagewise.core.units import bytes_text, number_text, percent_text
from pagewise.report import words

METRICS, MEMORY = "metrics.csv", "memory.csv"
_STYLES = {"better": "bold green", "worse": "bold red", "inconclusive": "dim"}
_OWN = ("peak_memory_gib", "system_seconds", "user_seconds")


def is_program(result: Result) -> bool:
    """Whether the result is of a program."""
    return bool(result.manifest["kind"] == "program")


def metric_row(result: Result, row: MetricRow) -> dict[str, Any]:
    """A row of metrics.csv and of the JSON."""
    found, metric = row.ratio, row.metric
    return {
        "metric": metric.label,
        "unit": metric.unit,
        "better": metric.better,
        "hugepages": _policy(result, row),
        "value": row.value,
        "ratio": None if found is None else found.median,
        "low": None if found is None else found.low,
        "high": None if found is None else found.high,
        "pairs": None if found is None else found.pairs,
        "noise_floor": row.floor,
        "p_corrected": None if row.verdict is None else row.verdict.p,
        "verdict": row.change,
        "reason": None if row.verdict is None else row.verdict.reason,
    }


def cost_text(cost: SamplingCost) -> str:
    """What sampling the memory cost, in words."""
    text = (
        f"Memory was sampled {cost.samples:.0f} times per run, which took {percent_text(cost.share)} of a CPU"
    )
    if any("untimed" in method for method in cost.methods):
        text += "; an untimed run of the same policy shows what was in memory too shortly for that"
    return text + "."


def print_program(console: Console, result: Result) -> None:
    """Prints both tables on a terminal."""
    rows = metric_rows(result)
    own = [row for row in rows if row.metric.field not in _OWN]
    if own:
        console.print()
        console.print(_metric_table(result, own))
    kinds = [row for row in memory_rows(trusted_records(result)) if _worth_telling(row)]
    if kinds:
        console.print()
        console.print(_memory_table(kinds))
    told = sampling_cost(trusted_records(result))
    if told is not None:
        console.print(Text(cost_text(told), style="dim"))


def metrics_csv(result: Result) -> str:
    """metrics.csv: a row for each metric and policy."""
    rows = [metric_row(result, row) for row in metric_rows(result)]
    return table_text(tuple(rows[0]) if rows else (), (tuple(row.values()) for row in rows))


def memory_csv(result: Result) -> str:
    """memory.csv: a row for each policy and kind of memory."""
    names = ("peak_bytes", "peak_huge_bytes", "mean_bytes", "mean_huge_bytes", "mean_coverage")
    rows = []
    for row in memory_rows(trusted_records(result)):
        sizes = (row.peak, row.peak_huge, row.mean, row.mean_huge)
        rows.append((row.policy, row.kind, *map(round, sizes), round(row.coverage, 6)))
    return table_text(("hugepages", "kind", *names), rows)


def for_page(result: Result) -> dict[str, Any] | None:
    """What report.html shows of it; None for a comparison of kernels."""
    if not is_program(result):
        return None
    told = sampling_cost(trusted_records(result))
    return {
        "metrics": [(row, _policy(result, row), _ratio_text(row)) for row in metric_rows(result)],
        "memory": [row for row in memory_rows(trusted_records(result)) if _worth_telling(row)],
        "cost": None if told is None else cost_text(told),
        "policies": result.manifest["program"]["policies"],
        "checks": result.manifest["program"]["checks"],
        "bytes": bytes_text,
        "number": number_text,
    }


def _policy(result: Result, row: MetricRow) -> str:
    return words.label(result.subjects[0].kernel, row.cell.measured)


def _worth_telling(row: MemoryRow) -> bool:
    """All that a program really uses; 1 MiB of data or stack hides what matters."""
    return row.kind == "all" or row.peak >= 1 << 20 or row.peak_huge > 0


def _ratio_text(row: MetricRow) -> str:
    if row.ratio is None:
        return "1"
    return f"{words.ratio_text(row.ratio)} {words.interval_text(row.ratio)}".strip()


def _metric_table(result: Result, rows: Sequence[MetricRow]) -> rich.table.Table:
    table = _table("Metrics of the program's output, by policy")
    for name in ("metric", "hugepages"):
        table.add_column(name, no_wrap=name == "hugepages")
    table.add_column("median", justify="right", no_wrap=True)
    for name in ("ratio, 95 % interval", "verdict"):
        table.add_column(name, no_wrap=True)
    before = ""
    for row in rows:
        name = f"{row.metric.label} [{row.metric.unit}], {row.metric.better} is better"
        table.add_row(
            name if name != before else "",
            _policy(result, row),
            number_text(row.value),
            _ratio_text(row),
            Text(row.change or "baseline", style=_STYLES.get(row.change or "", "cyan")),
        )
        before = name
    return table


def _memory_table(rows: Sequence[MemoryRow]) -> rich.table.Table:
    table = _table("Memory by kind")
    table.add_column("hugepages", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    for name in ("peak", "mean", "huge,\nat peak", "huge,\nover time"):
        table.add_column(name, justify="right", no_wrap=True)
    before = ""
    for row in rows:
        table.add_row(
            row.policy if row.policy != before else "",
            row.kind,
            bytes_text(row.peak),
            bytes_text(row.mean),
            f"{row.peak_coverage:.0%}",
            f"{row.coverage:.0%}",
        )
        before = row.policy
    return table


def _table(title: str) -> rich.table.Table:
    return rich.table.Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        padding=(0, 1),
    )
