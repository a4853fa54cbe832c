"""Further sections for the user's programs: metrics, targets, memory by kind, the policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
class Programs:
    """A result with its analysis, and what it has if it is of programs."""

    result: Result
    kernels: Sequence[KernelResult]

    @property
    def is_one(self) -> bool:
        """Whether the result is of one program of the user."""
        return self.result.manifest.kind == "program"

    @property
    def has_several(self) -> bool:
        """Whether the result is of several programs."""
        return self.result.manifest.kind == "programs"

    @property
    def misses_target(self) -> bool:
        """Whether a metric does not meet its target."""
        return any(row.answer == "not met" for row in comparisons.of_kind(self.kernels, "target"))

    def sections(self) -> list[Section]:
        """Metrics, memory and the meaning of the policies; none for kernels."""
        if self.has_several:
            return [*comparisons.targets(comparisons.of_kind(self.kernels, "target")), self._metrics()]
        if not self.is_one:
            return []
        about = self.result.manifest.program or {}
        policies = tuple(
            (
                policy["name"],
                policy["meaning"] + (f". Unavailable: {policy['lack']}" if policy["lack"] else ""),
            )
            for policy in about["policies"]
        )
        budget = about.get("memory_budget")
        text = "" if budget is None else f" Memory budget: {percent_text(budget)} more than the baseline."
        meanings = Section("Policies", (Facts(policies),), "meanings", only="page")
        return [comparisons.costs(self.kernels, text), self._metrics(), self._memory(), meanings]

    def brief(self) -> Iterator[Section]:
        """The metrics, or targets, which a terminal always shows; words wrap, so that it fits."""
        targets = comparisons.of_kind(self.kernels, "target")
        for section in [self._metrics()] if self.is_one else comparisons.targets(targets):
            yield replace(section, blocks=tuple(map(_wrapped, section.blocks)))

    def tables(self) -> dict[str, Table]:
        """memory.csv of a single program."""
        return {"memory.csv": Table.of_outputs(MemoryFields, self._memory_rows())} if self.is_one else {}

    def figures(self, given: Sequence[AnswerRow]) -> ProgramFigures | None:
        """The field `program` of the JSON object."""
        if not self.is_one:
            return None
        memory = tuple(output_of(MemoryFields, row) for row in self._memory_rows())
        return ProgramFigures(memory=memory, advice=policy_of(self.result, self.kernels, given))

    def _metrics(self) -> Section:
        checks = (self.result.manifest.program or {}).get("checks", ())
        rows = comparisons.of_kind(self.kernels, "metric")
        return comparisons.metrics(rows, checks, several=self.has_several)

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
        return Section("Memory", (Table.of("Memory by kind", _MEMORY, rows), Text(text, style="dim")))


def _wrapped(block: Block) -> Block:
    if not isinstance(block, Table):
        return block
    columns = (replace(each, wrap=True) if each.kind == "text" else each for each in block.columns)
    return replace(block, columns=tuple(columns))
