"""Further sections for the user's programs: metrics, targets, memory by kind, the policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pagewise.analysis.rows import KernelResult
from pagewise.analysis.usage import MemoryRow, memory_rows, sampling_cost
from pagewise.analysis.validity import trusted_records
from pagewise.core.result import Result
from pagewise.core.units import percent_text
from pagewise.report.model import Block, Column, Facts, Section, Table, Text
from pagewise.report.verdicts import AnswerRow, ProgramFigures
from pagewise.report.views import comparisons

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
            policy["meaning"] + (f". Unavailable: {policy['lack']}" if policy["lack"] else ""),
        )
        for key, program in programs.items()
        for policy in program["policies"]
    )
    budget = next(iter(programs.values())).get("memory_budget")
    text = "" if budget is None else f" Memory budget: {percent_text(budget)} more than the baseline."
    costs = comparisons.costs(kernels, text, several=several)
    meanings = Section("Policies", (Facts(policies),), "meanings", only="page")
    return [*comparisons.targets(kernels), costs, _metrics(result, kernels), _memory(result), meanings]


def brief(result: Result, kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """The targets, else the metrics, which a terminal always shows; words wrap, so that it fits."""
    shown = list(comparisons.targets(kernels))
    if result.manifest.programs and not shown:
        shown = [_metrics(result, kernels)]
    for section in shown:
        yield replace(section, blocks=tuple(map(_wrapped, section.blocks)))


def figures(result: Result, given: Sequence[AnswerRow]) -> ProgramFigures | None:
    """The field `program` of the JSON object; None for kernels."""
    if not result.manifest.programs:
        return None
    policy = next((answer.policy for answer in given), None)
    return ProgramFigures(memory=tuple(_memory_rows(result)), advice=policy)


def _metrics(result: Result, kernels: Sequence[KernelResult]) -> Section:
    checks = {key: described["checks"] for key, described in result.manifest.programs.items()}
    return comparisons.metrics(kernels, checks)


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


def _wrapped(block: Block) -> Block:
    if not isinstance(block, Table):
        return block
    columns = (replace(each, wrap=True) if each.kind == "text" else each for each in block.columns)
    return replace(block, columns=tuple(columns))
