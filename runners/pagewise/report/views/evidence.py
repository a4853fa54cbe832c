"""What supports the verdicts: counted events and observed pages of each configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.counter_runs import Key, counts_by_cell
from pagewise.analysis.result import trusted_records
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import key_of
from pagewise.core.result import Result
from pagewise.core.units import count_text
from pagewise.report.model import Block, Column, Section, Table, Text
from pagewise.report.views.data import Entry, entries, ranked
from pagewise.report.views.wording import floored_percent

_NAMES = (
    Column("kernel", merged=True, get="kernel.title"),
    Column("compiler", merged=True, get="group.compiler"),
    Column("configuration", get="label"),
)


def sections(result: Result, kernels: Sequence[KernelResult]) -> list[Section]:
    """Counters and observed pages."""
    return [
        Section("Counters", tuple(_counters(result, kernels)), only="page"),
        Section("Observed pages", tuple(_pages(result, kernels)), "pages", only="page"),
    ]


def _key(entry: Entry) -> Key:
    return entry.kernel.name, *entry.row.cell.key


def _folded(title: str, name: str, columns: Sequence[Column], rows: Sequence[Entry]) -> Section:
    table = Table.of(name, (*_NAMES, *columns), rows)
    return Section(f"{count_text(len(rows), 'configuration')}{title}", (table,), folded=True)


def _count(counts: Mapping[Key, Mapping[str, float]], name: str, entry: Entry) -> float | None:
    return counts[_key(entry)].get(name)


def _counters(result: Result, kernels: Sequence[KernelResult]) -> Iterator[Block]:
    """Counts per pass of each configuration, and why there are no hardware counters."""
    records = trusted_records(result)
    counts = counts_by_cell(records)
    counted = [entry for entry in ranked(kernels) if counts.get(_key(entry))]
    if counted:
        yield Text("Per pass, medians over the runs; page faults of placing the pages and of computing.")
        names = dict.fromkeys(name for values in counts.values() for name in values)
        columns = [Column(name, kind="number", get=partial(_count, counts, name)) for name in names]
        yield _folded("", "Counts by kernel and configuration", columns, counted)
    counters = [record.counters for record in records if record.counters is not None]
    for reason in dict.fromkeys(str(each["unavailable"]) for each in counters if "unavailable" in each):
        yield Text(
            f"No hardware counters: {reason}. pagewise counters counts cache and TLB misses in groups "
            "where the machine supports it, and reports why where it does not."
        )


def _pages(result: Result, kernels: Sequence[KernelResult]) -> Iterator[Block]:
    """Requested and observed pages of each configuration, lowest coverage, and the source."""
    methods = {
        (record.of_kernel, *key_of(record.run)): record.pages.method or ""
        for record in trusted_records(result)
        if record.pages is not None and record.run is not None
    }
    with_pages = [entry for entry in entries(kernels) if entry.row.pages is not None]
    yield Text(
        f"{_coverage_text(kernels)} Read from the operating system's accounting of the arrays' address "
        "ranges after they were touched; of several runs, the pages farthest from the request are shown."
    )
    columns = (
        Column("requested", kind="bytes", get="row.pages.requested"),
        Column("observed", kind="bytes", get="row.pages.observed"),
        Column("on huge pages", get=lambda entry: floored_percent(entry.row.pages.coverage)),
        Column("runs", kind="integer", get="row.runs"),
        Column("read from", get=lambda entry: methods.get(_key(entry), "")),
    )
    if with_pages:
        yield _folded(": pages", "Requested and observed pages", columns, with_pages)


def _coverage_text(kernels: Sequence[KernelResult]) -> str:
    pages = [(entry.measured, entry.row.pages) for entry in ranked(kernels) if entry.row.pages is not None]
    if not pages:
        return "No configuration reported its pages."
    huge = [observed.coverage for of, observed in pages if PagePolicy(of.hugepages).has_huge_pages]
    least = f"; with huge pages at least {floored_percent(min(huge))} of the bytes" if huge else ""
    return f"{count_text(len(pages), 'configuration')} ran on the requested pages{least}."
