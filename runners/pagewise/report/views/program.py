"""Further sections for the user's program: its metrics, its memory by kind, the policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.program import MemoryRow, MetricRow, memory_rows, metric_rows, sampling_cost
from pagewise.analysis.result import trusted_records
from pagewise.analysis.rows import Row
from pagewise.analysis.targets import Answer, TargetRow, target_rows
from pagewise.core.record_parts import PEAK_MEMORY
from pagewise.core.result import Result
from pagewise.core.units import percent_text
from pagewise.report.model import Block, Cell, Column, Facts, Getter, Section, Style, Table, Text, style_of
from pagewise.report.views.applying import policy_of
from pagewise.report.views.data import ratio_fields, verdict_fields
from pagewise.report.views.wording import cost_text, label, reason_text

_METRICS: Mapping[str, Getter] = {
    "program": "kernel.name",
    "metric": "metric.label",
    "unit": "metric.unit",
    "better": "metric.better",
    "hugepages": "",
    "value": "value",
    **verdict_fields("change"),
    **ratio_fields(),
    "pairs": "change_measured.pairs",
    "difference": "difference.median",
    "difference_low": "difference.low",
    "difference_high": "difference.high",
    "noise_floor": "floor",
}
_TARGETS: Mapping[str, Getter] = {
    "program": "ours.kernel.name",
    "build": lambda row: row.ours.cell.measured.flags or None,
    "hugepages": lambda row: _policy(row.ours),
    "metric": "ours.metric.label",
    "unit": "ours.metric.unit",
    "better": "ours.metric.better",
    "value": "ours.value",
    "relative_to": "reference",
    "reference_value": "theirs.value",
    **ratio_fields("goal.ratio"),
    "target_least": "least",
    "target_most": "most",
    "noise_floor": "goal.floor",
    "answer": "answer",
}
_ANSWERS: Mapping[Answer, Style] = {"met": "", "not met": "strong", "inconclusive": "inconclusive"}
_COSTS: Mapping[str, Getter] = {
    "program": "program",
    "hugepages": "row.cell.measured.hugepages",
    "placement": "row.cell.placement",
    "node_state": "row.cell.node_state",
    "prefetchers": lambda cost: cost.row.cell.measured.prefetchers or None,
    "clocks": lambda cost: cost.row.cell.measured.clocks or None,
    "setting": lambda cost: cost.row.cell.measured.setting or None,
    "text": "text",
    **ratio_fields("row.time_ratio", "time_"),
    **ratio_fields("row.memory", "memory_"),
    "more_bytes": "more",
    "over_memory_budget": "row.over_budget",
}
_MEMORY: Mapping[str, Getter] = {
    "program": "program",
    "hugepages": "policy",
    "kind": "kind",
    "peak_bytes": lambda row: round(row.peak),
    "peak_huge_bytes": lambda row: round(row.peak_huge),
    "mean_bytes": lambda row: round(row.mean),
    "mean_huge_bytes": lambda row: round(row.mean_huge),
    "mean_coverage": lambda row: round(row.coverage, 6),
}
_MEMORY_SHOWN = (
    Column("policy", merged=True),
    Column("kind"),
    Column("peak", kind="bytes"),
    Column("mean", unit="over time", kind="bytes"),
    Column("peak_coverage", "on huge pages", unit="at peak", kind="percent"),
    Column("coverage", "on huge pages", unit="over time", kind="percent"),
)
_GIB = 1 << 30
# Kinds with a smaller peak are shown only if they use huge pages.
_SMALL_BYTES = 1 << 20


@dataclass(frozen=True)
class Programs:
    """A result with what was analysed of it; of kernels there are no metrics and no targets."""

    result: Result
    kernels: Sequence[KernelResult]
    metrics: Sequence[MetricRow]
    targets: Sequence[TargetRow]

    @classmethod
    def of(cls, result: Result, kernels: Sequence[KernelResult]) -> Programs:
        """Return those of a result."""
        metrics = metric_rows(result, kernels)
        return cls(result, kernels, metrics, target_rows(result, metrics))


def sections(programs: Programs) -> list[Section]:
    """Targets, costs, metrics, memory and the meaning of the policies; none for kernels."""
    result, described = programs.result, programs.result.manifest.programs.items()
    if not described:
        return []
    policies = tuple(
        (
            f"{key}: {policy['name']}" if len(described) > 1 else policy["name"],
            policy["meaning"] + (f". Unavailable: {policy['lack']}" if policy["lack"] else ""),
        )
        for key, program in described
        for policy in program["policies"]
    )
    meanings = Section("Policies", (Facts(policies),), "meanings", only="page")
    return [*_targets(programs), _costs(programs), _metrics(programs), _memory(result), meanings]


def brief(programs: Programs) -> list[Section]:
    """The targets, else the metrics, which a terminal always shows; words wrap, so that it fits."""
    shown = _targets(programs) or ([_metrics(programs)] if programs.metrics else [])
    return [replace(section, blocks=tuple(map(_wrapped, section.blocks))) for section in shown]


def _wrapped(block: Block) -> Block:
    if not isinstance(block, Table):
        return block
    columns = (replace(each, wrap=True) if each.kind == "text" else each for each in block.columns)
    return replace(block, columns=tuple(columns))


def _policy(row: MetricRow) -> str:
    return label(row.kernel, row.cell.measured)


def tables(programs: Programs) -> dict[str, Table]:
    """Of programs metrics.csv, memory.csv and, with targets, targets.csv."""
    if not programs.result.manifest.programs:
        return {}
    tables = {
        "metrics.csv": Table.of_fields({**_METRICS, "hugepages": _policy}, programs.metrics),
        "memory.csv": Table.of_fields(_MEMORY, _memory_rows(programs.result)),
    }
    targets = {"targets.csv": Table.of_fields(_TARGETS, programs.targets)}
    return {**tables, **(targets if programs.targets else {})}


def data(programs: Programs, of_files: Mapping[str, Table]) -> dict[str, object]:
    """The field `program` of the JSON object; nothing for kernels. of_files: `tables` of the programs."""
    result, kernels = programs.result, programs.kernels
    if not of_files:
        return {}
    memory = [
        {**asdict(row), "coverage": row.coverage, "peak_coverage": row.peak_coverage}
        for row in _memory_rows(result)
    ]
    costs = Table.of_fields(_COSTS, _cost_rows(kernels))
    applied = policy_of(result, kernels)
    advice = None if applied is None else asdict(applied)
    figures = {"metrics": of_files["metrics.csv"], "memory": memory, "costs": costs, "advice": advice}
    return {"program": {**figures, "targets": of_files.get("targets.csv", ())}}


def _memory_rows(result: Result) -> list[MemoryRow]:
    return memory_rows(trusted_records(result))


@dataclass(frozen=True)
class _Cost:
    """A policy's time for its memory; `label` as in other tables."""

    program: str
    row: Row
    label: str

    @property
    def text(self) -> str:
        """`7 % less time for 12 % more memory`; empty for the baseline."""
        return "" if self.row.cell.is_baseline else cost_text(self.row)

    @property
    def peak(self) -> float | None:
        """The peak memory in bytes."""
        peak = self.row.metrics.get(PEAK_MEMORY)
        return None if peak is None else peak * _GIB

    @property
    def more(self) -> float | None:
        """What of the peak is there only because of the policy, in bytes; negative: it needs less."""
        ratio = self.row.memory
        return None if ratio is None or self.peak is None else self.peak * (1.0 - 1.0 / ratio.median)


def _cost_rows(kernels: Sequence[KernelResult]) -> list[_Cost]:
    return [
        _Cost(analysed.kernel.name, row, label(analysed.kernel, row.cell.measured))
        for analysed in kernels
        for row in analysed.ranked
    ]


def _costs(programs: Programs) -> Section:
    columns = (
        *_program_column(programs.result, "program"),
        Column("hugepages", get="label"),
        Column("peak memory", kind="bytes", get="peak"),
        Column("memory ratio", unit="95 % interval", kind="ratio", get=_memory_ratio),
        Column("more", "more than the baseline", kind="bytes", get="more"),
        Column("page tables", kind="bytes", get=_page_tables),
        Column("time for memory", wrap=True, get=_time_for_memory),
    )
    first = next(iter(programs.result.manifest.programs.values()))
    budget = first.get("memory_budget")
    text = "Peak memory of each run, and its ratio to the baseline's, paired by round." + (
        f" Memory budget: {percent_text(budget)} more than the baseline." if budget is not None else ""
    )
    table = Table.of("Time and memory by policy", columns, _cost_rows(programs.kernels))
    return Section("Time and memory", (table, Text(text, style="dim")))


def _memory_ratio(cost: _Cost) -> Cell | None:
    return Cell("1", "baseline") if cost.row.cell.is_baseline else Cell(cost.row.memory)


def _page_tables(cost: _Cost) -> float | None:
    size = cost.row.metrics.get("page_tables_mib")
    return None if size is None else size * (1 << 20)


def _time_for_memory(cost: _Cost) -> Cell:
    if cost.row.cell.is_baseline:
        return Cell("baseline", "baseline")
    note = "above the memory budget" if cost.row.over_budget else ""
    return Cell(cost.text, style_of(cost.row.verdict), note)


def _metrics(programs: Programs) -> Section:
    result, rows = programs.result, programs.metrics
    columns = (
        *_program_column(result, "kernel.name"),
        Column("metric", merged=True, get=lambda row: f"{row.metric.label} [{row.metric.unit}]"),
        Column("better", merged=True, get="metric.better"),
        Column("hugepages", get=_policy),
        Column("median", kind="number", get="value"),
        Column("ratio", unit="95 % interval", kind="ratio", get=_ratio),
        Column("verdict", get=_verdict),
    )
    text = "Medians; ratios to the baseline, paired by round."
    for key, described in result.manifest.programs.items():
        if checks := ", ".join(described["checks"]):
            text += f" The output of each run of {key} had to pass: {checks}."
    if any(row.difference for row in rows):
        text += " With a sign: differences, because not all values of the metric are above zero."
    table = Table.of("Metrics by policy", columns, rows)
    return Section("Metrics", (table, Text(text, style="dim")))


def _ratio(row: MetricRow) -> Cell:
    if row.verdict is None:
        return Cell("baseline", "baseline")
    return Cell(row.change_measured, style_of(row.change), floor=row.floor)


def _verdict(row: MetricRow) -> Cell:
    if row.verdict is None:
        return Cell("baseline", "baseline")
    return Cell(row.change, style_of(row.change), _reason(row))


def _reason(row: MetricRow) -> str:
    if row.difference is not None and row.verdict is not None and row.verdict.reason == "interval":
        return "the interval contains 0"
    return reason_text(row.verdict.reason if row.verdict else None)


def misses_target(programs: Programs) -> bool:
    """Whether a metric does not meet its target."""
    return any(row.answer == "not met" for row in programs.targets)


def _targets(programs: Programs) -> list[Section]:
    """The metrics that have targets relative to another program; empty without any."""
    columns = (
        Column("program", merged=True, get="ours.kernel.name"),
        Column("metric", merged=True, get=lambda row: f"{row.ours.metric.label} [{row.ours.metric.unit}]"),
        Column("hugepages", get=lambda row: _policy(row.ours)),
        Column("median", kind="number", get="ours.value"),
        Column("relative to", get="reference"),
        Column("its median", kind="number", get="theirs.value"),
        Column("ratio", unit="95 % interval", kind="ratio", get="goal.ratio"),
        Column("target", get=_target),
        Column("noise floor", kind="percent", get="goal.floor"),
        Column("answer", get=lambda row: Cell(row.answer, _ANSWERS[row.answer])),
    )
    rows = programs.targets
    given = [row.answer for row in rows]
    text = f"{', '.join(f'{given.count(answer)} {answer}' for answer in _ANSWERS)}. Ratios paired by round."
    table = Table.of("Targets", columns, rows)
    return [Section("Targets", (table, Text(text, style="dim")))] if rows else []


def _target(row: TargetRow) -> str:
    ends = (("≥", row.least), ("≤", row.most))
    return ", ".join(f"{sign} {end:g}" for sign, end in ends if end is not None)


def _memory(result: Result) -> Section:
    rows = [
        row
        for row in _memory_rows(result)
        if row.kind == "all" or row.peak >= _SMALL_BYTES or row.peak_huge > 0
    ]
    text = "Memory of the processes while they ran (PSS of smaps): medians over the timed runs."
    if cost := sampling_cost(trusted_records(result)):
        text += (
            f" Memory was sampled {cost.samples:.0f} times per run, which took {percent_text(cost.share)} of "
            "a CPU"
        )
        if any("untimed" in method for method in cost.methods):
            text += "; an untimed run of the same policy shows what was in memory too shortly for that"
        text += "."
    columns = (*_program_column(result, "program"), *_MEMORY_SHOWN)
    return Section("Memory", (Table.of("Memory by kind", columns, rows), Text(text, style="dim")))


def _program_column(result: Result, get: str) -> list[Column]:
    """The programs, if there are several."""
    return [Column("program", merged=True, get=get)] if len(result.manifest.programs) > 1 else []
