"""The state of the node's memory during the runs: free blocks, and THP faults that got base pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pagewise.analysis.rows import KernelResult
from pagewise.analysis.usage import NodeUse, use_by_cell
from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import Configuration
from pagewise.core.result import Result
from pagewise.core.units import percent_text
from pagewise.report.model import Column, Section, Table, Text, output_of
from pagewise.report.verdicts import NodeMemoryRow
from pagewise.report.views.data import Entry, entries

# A smaller share of faults that fell back needs no note.
_NOTED = 0.01


@dataclass(frozen=True)
class _Item:
    """A configuration with the state of the node during its runs."""

    entry: Entry
    use: NodeUse

    @property
    def kernel(self) -> Benchmark:
        return self.entry.kernel

    @property
    def configuration(self) -> Configuration:
        return self.entry.configuration


_SHOWN = (
    Column("kernel", merged=True, get="entry.kernel.title"),
    Column("compiler", merged=True, get="entry.group.compiler"),
    Column("configuration", get="entry.label"),
    Column("runs", kind="integer", get="use.runs"),
    Column("unusable", "unusable free memory", unit="median", kind="percent", get="use.unusable"),
    Column("THP faults", kind="integer", get="use.allocated"),
    Column("fell back", kind="integer", get="use.fell_back"),
    Column("share", "share that fell back", kind="percent", get="use.fallback_share"),
    Column("stalls", "compaction stalls", kind="integer", get="use.stalls"),
    Column("collapsed", "collapsed by khugepaged", kind="integer", get="use.collapsed"),
)
_TEXT = (
    "Unusable free memory: the share of free memory in blocks that are smaller than a transparent huge page, "
    "before each run. The other columns are what the kernel counted on the whole node during all timed runs."
)


def _items(result: Result, kernels: Sequence[KernelResult]) -> Iterator[_Item]:
    uses = use_by_cell(result.records)
    for entry in entries(kernels):
        use = uses.get((entry.kernel.name, *entry.row.cell.key))
        if use is not None:
            yield _Item(entry, use)


def sections(result: Result, kernels: Sequence[KernelResult]) -> list[Section]:
    """The state during the runs of each configuration; none for results without it."""
    table = Table.of("State of the node by configuration", _SHOWN, _items(result, kernels))
    return (
        [Section("State of the node", (table, Text(_TEXT, style="dim")), only="page")] if table.rows else []
    )


def rows(result: Result, kernels: Sequence[KernelResult]) -> list[NodeMemoryRow]:
    """The field `node_state` of the JSON object."""
    return [output_of(NodeMemoryRow, item) for item in _items(result, kernels)]


def notes(result: Result, kernels: Sequence[KernelResult]) -> Iterator[str]:
    """The configurations whose THP faults fell back to base pages."""
    for item in _items(result, kernels):
        share = item.use.fallback_share
        if share is None or share <= _NOTED:
            continue
        by_limit = 2 * item.use.uncharged > item.use.fell_back
        cause, other = (
            ("the memory limit of a control group left no room for a huge page", "With another limit")
            if by_limit
            else ("the node had no free block of that size", "On another state of the node's memory")
        )
        yield (
            f"{item.entry.kernel.title}, {item.entry.label}: {percent_text(share)} of the THP faults "
            f"fell back to base pages, because {cause}. {other} the result may be different."
        )
