"""Further sections for the user's programs: metrics, targets, memory by kind, the policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pagewise.analysis.rows import KernelResult
from pagewise.analysis.usage import MemoryRow, memory_rows, sampling_cost
from pagewise.analysis.validity import trusted_records
from pagewise.core.result import Result
from pagewise.core.units import percent_text
from pagewise.report.model import Block, Column, Facts, Section, Table, Text, output_of
from pagewise.report.verdicts import AnswerRow, MemoryFields, ProgramFigures
from pagewise.report.views import comparisons
from pagewise.report.views.applying import policy_of

_MEMORY = (
    Column("policy", merged=True),
    Column("kind"),
    Column("peak", kind="bytes"),
    Column("mean", unit="over time", kind="bytes"),
    Column("peak_coverage", "on huge pages", unit="at peak", kind="percent"),
    Column("coverage", "on huge pages", unit="over time", kind="percent"),
)
# Kinds with a smaller peak are shown only if they use huge pages.
_SMALL_BYTES = 1 << 20


@dataclass(frozen=True)
class AnalysedPrograms:
    """A result with its analysis, and what it has if it is of programs."""

    result: Result
    kernels: Sequence[KernelResult]

    @property
    def described(self) -> Mapping[str, Any]:
        """What the manifest has of each program; empty for kernels."""
        return self.result.manifest.programs

    @property
    def misses_target(self) -> bool:
        """Whether a metric does not meet its target."""
        return any(row.answer == "not met" for row in comparisons.of_kind(self.kernels, "target"))

    def sections(self) -> list[Section]:
        """Targets, costs, metrics, memory and the meaning of the policies; none for kernels."""
        if not self.described:
            return []
        policies = tuple(
            (
                f"{key}: {policy['name']}" if self._has_several else policy["name"],
                policy["meaning"] + (f". Unavailable: {policy['lack']}" if policy["lack"] else ""),
            )
            for key, program in self.described.items()
            for policy in program["policies"]
        )
        budget = next(iter(self.described.values())).get("memory_budget")
        text = "" if budget is None else f" Memory budget: {percent_text(budget)} more than the baseline."
        costs = comparisons.costs(self.kernels, text, several=self._has_several)
        meanings = Section("Policies", (Facts(policies),), "meanings", only="page")
        return [*self._targets(), costs, self._metrics(), self._memory(), meanings]

    def brief(self) -> Iterator[Section]:
        """The targets, else the metrics, which a terminal always shows; words wrap, so that it fits."""
        for section in self._targets() or ([self._metrics()] if self.described else []):
            yield replace(section, blocks=tuple(map(_wrapped, section.blocks)))

    def tables(self) -> dict[str, Table]:
        """memory.csv of programs."""
        return {"memory.csv": Table.of_outputs(MemoryFields, self._memory_rows())} if self.described else {}

    def figures(self, given: Sequence[AnswerRow]) -> ProgramFigures | None:
        """The field `program` of the JSON object."""
        if not self.described:
            return None
        memory = tuple(output_of(MemoryFields, row) for row in self._memory_rows())
        return ProgramFigures(memory=memory, advice=policy_of(self.result, self.kernels, given))

    @property
    def _has_several(self) -> bool:
        return len(self.described) > 1

    def _targets(self) -> list[Section]:
        return list(comparisons.targets(comparisons.of_kind(self.kernels, "target")))

    def _metrics(self) -> Section:
        checks = {key: described["checks"] for key, described in self.described.items()}
        rows = comparisons.of_kind(self.kernels, "metric")
        return comparisons.metrics(rows, checks, several=self._has_several)

    def _memory_rows(self) -> list[MemoryRow]:
        return memory_rows(trusted_records(self.result))

    def _memory(self) -> Section:
        rows = [
            row
            for row in self._memory_rows()
            if row.kind == "all" or row.peak >= _SMALL_BYTES or row.peak_huge > 0
        ]
        text = "Memory of the processes while they ran (PSS of smaps): medians over the timed runs."
        if cost := sampling_cost(trusted_records(self.result)):
            text += f" Memory was sampled {cost.samples:.0f} times per run, which took "
            text += f"{percent_text(cost.share)} of a CPU"
            if any("untimed" in method for method in cost.methods):
                text += "; an untimed run of the same policy shows what was in memory too shortly for that"
            text += "."
        program = [Column("program", merged=True)] if self._has_several else []
        table = Table.of("Memory by kind", (*program, *_MEMORY), rows)
        return Section("Memory", (table, Text(text, style="dim")))


def _wrapped(block: Block) -> Block:
    if not isinstance(block, Table):
        return block
    columns = (replace(each, wrap=True) if each.kind == "text" else each for each in block.columns)
    return replace(block, columns=tuple(columns))
