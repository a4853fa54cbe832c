"""Further sections for the user's programs: metrics, targets, memory by kind, the policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pagewise.analysis.comparison import Comparison
from pagewise.analysis.rows import KernelResult
from pagewise.analysis.usage import MemoryRow, memory_rows, sampling_cost
from pagewise.analysis.validity import trusted_records
from pagewise.core.result import Result
from pagewise.core.units import percent_text
from pagewise.report.model import Column, Facts, Section, Table, TableCell, Text, style_of
from pagewise.report.verdicts import AnswerRow, ProgramFigures
from pagewise.report.views.comparisons import judged_columns, label_of, of_kind
from pagewise.report.views.data import DataRow, cost_text, ranked_rows

_PROGRAM = Column("program", merged=True, get="benchmark.name")
_METRIC = Column("metric", merged=True, get=lambda row: f"{row.quantity.label} [{row.quantity.unit}]")
_MEMORY = (
    Column("program", merged=True),
    Column("policy", merged=True, get="hugepages"),
    Column("kind"),
    Column("peak", kind="bytes", get="peak_bytes"),
    Column("mean", unit="over time", kind="bytes", get="mean_bytes"),
    Column("peak_coverage", "on huge pages", unit="at peak", kind="percent"),
    Column("mean_coverage", "on huge pages", unit="over time", kind="percent"),
)
# Kinds with a smaller peak are shown only if they use huge pages.
_SMALL_BYTES = 1 << 20


def sections(result: Result, kernels: Sequence[KernelResult]) -> list[Section]:
    """Targets, costs, metrics, memory and the meaning of the policies; none for kernels."""
    programs = result.manifest.programs
    if not programs:
        return []
    several = len(programs) > 1
    policies = tuple(
        (
            f"{key}: {policy['name']}" if several else policy["name"],
            policy["meaning"]
            + (f". Unavailable: {policy['unavailable_reason']}" if policy["unavailable_reason"] else ""),
        )
        for key, program in programs.items()
        for policy in program["policies"]
    )
    meanings = Section("Policies", (Facts(policies),), "meanings", only="page")
    costs, metrics = _costs(result, kernels), _metrics(result, kernels)
    return [*_targets(kernels), costs, metrics, _memory(result), meanings]


def brief(result: Result, kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """The targets, else the metrics, which a terminal always shows; words wrap, so that it fits."""
    if not result.manifest.programs:
        return
    for section in list(_targets(kernels)) or [_metrics(result, kernels)]:
        yield replace(
            section,
            blocks=tuple(each.wrapped if isinstance(each, Table) else each for each in section.blocks),
        )


def figures(result: Result, given: Sequence[AnswerRow]) -> ProgramFigures | None:
    """The field `program` of the JSON object; None for kernels."""
    if not result.manifest.programs:
        return None
    policy = next((answer.policy for answer in given), None)
    return ProgramFigures(memory=tuple(_memory_rows(result)), advice=policy)


def _metrics(result: Result, kernels: Sequence[KernelResult]) -> Section:
    """The metrics of programs by policy, and the checks of each program's output."""
    programs, rows = result.manifest.programs, of_kind(kernels, "metric")
    columns = (
        *([_PROGRAM] if len(programs) > 1 else []),
        _METRIC,
        Column("better", merged=True, get="quantity.better"),
        Column("hugepages", get=label_of),
        Column("median", kind="number", get="value"),
        *judged_columns(name="ratio"),
    )
    text = "Medians; ratios to the baseline, paired by round."
    for name, described in programs.items():
        if described["checks"]:
            text += f" The output of each run of {name} had to pass: {', '.join(described['checks'])}."
    if any(row.ratio is not None and row.ratio.is_difference for row in rows):
        text += " With a sign: differences, because not all values of the metric are above zero."
    return Section("Metrics", (Table.of("Metrics by policy", columns, rows), Text(text, style="dim")))


def _range_text(row: Comparison) -> str:
    """The range of a target: `≥ 0.9, ≤ 1.1`."""
    ends = (("≥", row.least), ("≤", row.most))
    return ", ".join(f"{sign} {end:g}" for sign, end in ends if end is not None)


_TARGETS = (
    _PROGRAM,
    _METRIC,
    Column("hugepages", get=label_of),
    Column("median", kind="number", get="value"),
    Column("relative to", get="reference_kernel"),
    Column("its median", kind="number", get="reference_value"),
    Column("ratio", unit="95 % interval", kind="ratio"),
    Column("target", get=_range_text),
    Column("noise floor", kind="percent", get="floor"),
    judged_columns(verdict="answer")[1],
)


def _targets(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """The metrics that have targets relative to another program."""
    rows = of_kind(kernels, "target")
    given = [row.answer for row in rows]
    counts = ", ".join(f"{given.count(answer)} {answer}" for answer in ("met", "not met", "inconclusive"))
    text = f"{counts}. Ratios paired by round."
    return Table.of("Targets", _TARGETS, rows).section("Targets", text)


def _costs(result: Result, kernels: Sequence[KernelResult]) -> Section:
    """The memory of programs by policy, and what it gains for it."""
    programs = result.manifest.programs
    columns = (
        *([_PROGRAM] if len(programs) > 1 else []),
        Column("hugepages", get="label"),
        Column("peak memory", kind="bytes", get="peak"),
        Column("memory ratio", unit="95 % interval", kind="ratio", get=_memory_ratio),
        Column("more", "more than the baseline", kind="bytes", get="more_memory_bytes"),
        Column("page tables", kind="bytes", get=_page_tables),
        Column("time for memory", wrap=True, get=_time_for_memory),
    )
    text = "Peak memory of each run, and its ratio to the baseline's, paired by round."
    if (budget := next(iter(programs.values())).get("memory_budget")) is not None:
        text += f" Memory budget: {percent_text(budget)} more than the baseline."
    table = Table.of("Time and memory by policy", columns, ranked_rows(kernels))
    return Section("Time and memory", (table, Text(text, style="dim")))


def _memory_ratio(entry: DataRow) -> TableCell:
    return TableCell("1", "baseline") if entry.row.cell.is_baseline else TableCell(entry.row.memory)


def _page_tables(entry: DataRow) -> float | None:
    size = entry.row.metrics.get("page_tables_mib")
    return None if size is None else size * (1 << 20)


def _time_for_memory(entry: DataRow) -> TableCell:
    if entry.row.cell.is_baseline:
        return TableCell("baseline", "baseline")
    note = "above the memory budget" if entry.row.over_budget else ""
    return TableCell(cost_text(entry.row), style_of(entry.row.verdict), note)


def _memory_rows(result: Result) -> list[MemoryRow]:
    return memory_rows(trusted_records(result))


def _memory(result: Result) -> Section:
    rows = [
        row
        for row in _memory_rows(result)
        if row.kind == "all" or row.peak_bytes >= _SMALL_BYTES or row.peak_huge_bytes > 0
    ]
    text = "Memory of the processes while they ran (PSS of smaps): medians over the timed runs."
    if cost := sampling_cost(trusted_records(result)):
        text += f" Memory was sampled {cost.samples:.0f} times per run, which took "
        text += f"{percent_text(cost.share)} of a CPU"
        if any("untimed" in method for method in cost.methods):
            text += "; an untimed run of the same policy shows what was in memory too shortly for that"
        text += "."
    table = Table.of("Memory by kind", _MEMORY if len(result.manifest.programs) > 1 else _MEMORY[1:], rows)
    return Section("Memory", (table, Text(text, style="dim")))
