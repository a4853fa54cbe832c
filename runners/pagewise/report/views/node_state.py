"""The state of the node's memory during the runs: free blocks, and THP faults that got base pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.node_state import NodeUse, StateVerdict, use_by_cell, verdicts_by_state
from pagewise.core.dimensions import PAGES
from pagewise.core.result import Result
from pagewise.core.units import percent_text
from pagewise.report.model import Column, Getter, Section, Table, Text
from pagewise.report.views.data import Entry, dimension_fields, entries, ratio_fields
from pagewise.report.views.wording import capital, change_text

# A smaller share of faults that fell back needs no note.
_NOTED = 0.01


@dataclass(frozen=True)
class _Item:
    """A configuration with the state of the node during its runs."""

    entry: Entry
    use: NodeUse


_FIELDS: Mapping[str, Getter] = {
    "kernel": "entry.kernel.name",
    "module": "entry.measured.module",
    **dimension_fields("entry.measured"),
    "runs": "use.runs",
    "thp_faults": "use.allocated",
    "thp_fallbacks": "use.fell_back",
    "thp_fallback_share": "use.fallback_share",
    "unusable_index": "use.unusable",
    "compaction_stalls": "use.stalls",
    "khugepaged_collapsed": "use.collapsed",
}
_VERDICTS: Mapping[str, Getter] = {
    "kernel": "kernel",
    "compiler": "verdict.compiler",
    "hugepages": "verdict.policy",
    "node_state": "verdict.state",
    **ratio_fields("verdict.ratio"),
    "verdict": "verdict.verdict",
    "reason": "verdict.reason",
    "holds": "verdict.holds",
}
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


def table_of(result: Result, kernels: Sequence[KernelResult]) -> Table:
    """The field `node_state` of the JSON object."""
    return Table.of_fields(_FIELDS, _items(result, kernels))


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


def verdicts_of(kernels: Sequence[KernelResult]) -> Table:
    """The field `node_states` of the JSON object: each policy's verdict by state of the node."""
    rows = [
        {"kernel": result.kernel.name, "verdict": verdict}
        for result in kernels
        for verdict in verdicts_by_state(result)
    ]
    return Table.of_fields(_VERDICTS, rows)


def answers(kernels: Sequence[KernelResult]) -> Iterator[Text]:
    """Whether the advice on pages holds in every state of the node that was compared."""
    for result in kernels:
        by_policy: dict[tuple[str, str], list[StateVerdict]] = {}
        for verdict in verdicts_by_state(result):
            by_policy.setdefault((verdict.compiler, verdict.policy), []).append(verdict)
        for (compiler, policy), verdicts in by_policy.items():
            holds = all(verdict.holds for verdict in verdicts)
            states = "; ".join(f"{verdict.state}: {_state_text(verdict)}" for verdict in verdicts)
            lead = "The verdict is the same in every state" if holds else "The verdict depends on the state"
            text = f"{lead} of the node's memory. {capital(PAGES.text(policy))}, {states}."
            where = f"{result.kernel.title}, {compiler}: "
            yield Text(text, f"{where}Does the advice hold in every state of the node?")


def _state_text(verdict: StateVerdict) -> str:
    if verdict.ratio is None or verdict.verdict is None:
        return f"excluded ({verdict.reason})"
    if verdict.verdict == "inconclusive":
        return "inconclusive"
    return f"{verdict.verdict} ({change_text(verdict.ratio)})"
