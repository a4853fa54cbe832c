"""What supports the verdicts: counted events, observed pages, and the state of the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pagewise.analysis.rows import KernelResult
from pagewise.analysis.usage import counts_by_cell, use_by_cell
from pagewise.analysis.validity import trusted_records
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import CellOf, key_of
from pagewise.core.result import Result
from pagewise.core.units import count_text, percent_text
from pagewise.report.model import Block, Column, Section, Table, Text, output_of
from pagewise.report.verdicts import NodeMemoryRow
from pagewise.report.views.data import DataRow, entries, floored_percent, ranked_rows

_NAMES = (
    Column("kernel", merged=True, get="benchmark.title"),
    Column("compiler", merged=True, get="group.compiler"),
    Column("configuration", get="label"),
)


def sections(result: Result, kernels: Sequence[KernelResult]) -> list[Section]:
    """Counters, observed pages, and the state of the node."""
    states = Table.of("State of the node by configuration", _STATE, _states(result, kernels))
    return [
        Section("Counters", tuple(_counters(result, kernels)), only="page"),
        Section("Observed pages", tuple(_pages(result, kernels)), "pages", only="page"),
        *states.section("State of the node", _STATE_TEXT, only="page"),
    ]


def _key(entry: DataRow) -> CellOf:
    return entry.benchmark.name, entry.row.cell.key


def _fold(title: str, name: str, columns: Sequence[Column], rows: Sequence[DataRow]) -> Section:
    table = Table.of(name, (*_NAMES, *columns), rows)
    return Section(f"{count_text(len(rows), 'configuration')}{title}", (table,), folded=True)


def _count(counts: Mapping[CellOf, Mapping[str, float]], name: str, entry: DataRow) -> float | None:
    return counts[_key(entry)].get(name)


def _counters(result: Result, kernels: Sequence[KernelResult]) -> Iterator[Block]:
    """Counts per pass of each configuration, and why there are no hardware counters."""
    records = trusted_records(result)
    counts = counts_by_cell(records)
    counted = [entry for entry in ranked_rows(kernels) if counts.get(_key(entry))]
    if counted:
        yield Text("Per pass, medians over the runs; page faults of placing the pages and of computing.")
        names = dict.fromkeys(name for values in counts.values() for name in values)
        columns = [Column(name, kind="number", get=partial(_count, counts, name)) for name in names]
        yield _fold("", "Counts by kernel and configuration", columns, counted)
    counters = [record.counters for record in records if record.counters is not None]
    for reason in dict.fromkeys(str(each["unavailable"]) for each in counters if "unavailable" in each):
        yield Text(
            f"No hardware counters: {reason}. pagewise counters counts cache and TLB misses in groups "
            "where the machine supports it, and reports why where it does not."
        )


def _pages(result: Result, kernels: Sequence[KernelResult]) -> Iterator[Block]:
    """Requested and observed pages of each configuration, lowest coverage, and the source."""
    methods = {
        (record.of_kernel, key_of(record.run)): record.pages.method or ""
        for record in trusted_records(result)
        if record.pages is not None and record.run is not None
    }
    with_pages = [entry for entry in entries(kernels) if entry.row.pages is not None]
    yield Text(
        f"{_coverage_text(kernels)} Read from the operating system's accounting of the arrays' address "
        "ranges after they were touched; of several runs, the pages farthest from the request are shown."
    )
    columns = (
        Column("requested", kind="bytes", get="row.pages.page_size_requested_bytes"),
        Column("observed", kind="bytes", get="row.pages.page_size_observed_bytes"),
        Column("on huge pages", get=lambda entry: floored_percent(entry.row.pages.huge_coverage)),
        Column("runs", kind="integer", get="row.runs"),
        Column("read from", get=lambda entry: methods.get(_key(entry), "")),
    )
    if with_pages:
        yield _fold(": pages", "Requested and observed pages", columns, with_pages)


def _coverage_text(kernels: Sequence[KernelResult]) -> str:
    pages = [
        (entry.configuration, entry.row.pages)
        for entry in ranked_rows(kernels)
        if entry.row.pages is not None
    ]
    if not pages:
        return "No configuration reported its pages."
    huge = [observed.huge_coverage for of, observed in pages if PagePolicy(of.hugepages).has_huge_pages]
    least = f"; with huge pages at least {floored_percent(min(huge))} of the bytes" if huge else ""
    return f"{count_text(len(pages), 'configuration')} ran on the requested pages{least}."


# A smaller share of faults that fell back needs no note.
_NOTED = 0.01
_STATE = (
    *(replace(column, get=f"entry.{column.get}") for column in _NAMES),
    Column("runs", kind="integer", get="use.runs"),
    Column("unusable", "unusable free memory", unit="median", kind="percent", get="use.unusable"),
    Column("THP faults", kind="integer", get="use.allocated"),
    Column("fell back", kind="integer", get="use.fell_back"),
    Column("share", "share that fell back", kind="percent", get="use.fallback_share"),
    Column("stalls", "compaction stalls", kind="integer", get="use.stalls"),
    Column("collapsed", "collapsed by khugepaged", kind="integer", get="use.collapsed"),
)
_STATE_TEXT = (
    "Unusable free memory: the share of free memory in blocks that are smaller than a transparent huge page, "
    "before each run. The other columns are what the kernel counted on the whole node during all timed runs."
)


def _states(result: Result, kernels: Sequence[KernelResult]) -> Iterator[Mapping[str, Any]]:
    uses = use_by_cell(result.records)
    for entry in entries(kernels):
        use = uses.get(_key(entry))
        if use is not None:
            yield {**vars(entry), "entry": entry, "use": use}


def node_rows(result: Result, kernels: Sequence[KernelResult]) -> list[NodeMemoryRow]:
    """The field `node_state` of the JSON object."""
    return [output_of(NodeMemoryRow, item) for item in _states(result, kernels)]


def node_notes(result: Result, kernels: Sequence[KernelResult]) -> Iterator[str]:
    """The configurations whose THP faults fell back to base pages."""
    for item in _states(result, kernels):
        entry, use = item["entry"], item["use"]
        share = use.fallback_share
        if share is None or share <= _NOTED:
            continue
        by_limit = 2 * use.uncharged > use.fell_back
        cause, other = (
            ("the memory limit of a control group left no room for a huge page", "With another limit")
            if by_limit
            else ("the node had no free block of that size", "On another state of the node's memory")
        )
        yield (
            f"{entry.benchmark.title}, {entry.label}: {percent_text(share)} of the THP faults "
            f"fell back to base pages, because {cause}. {other} the result may be different."
        )
