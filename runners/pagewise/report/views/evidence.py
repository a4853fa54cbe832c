"""What supports the verdicts: counted events and observed pages of each configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.counts import counts_by_cell
from pagewise.analysis.result import trusted_records
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import key_of
from pagewise.core.result import Result
from pagewise.core.units import count_text
from pagewise.report.model import Block, Column, Section, Table, Text
from pagewise.report.views.wording import floored_percent, label

_NAMES = (Column("kernel", merged=True), Column("compiler", merged=True), Column("configuration"))


def sections(result: Result, kernels: Sequence[KernelResult]) -> list[Section]:
    """Counters and observed pages."""
    return [
        Section("Counters", tuple(_counters(result, kernels)), only="page"),
        Section("Observed pages", tuple(_pages(result, kernels)), "pages", only="page"),
    ]


def _counters(result: Result, kernels: Sequence[KernelResult]) -> Iterator[Block]:
    """Counts per pass of each configuration, and why there are no hardware counters."""
    counts = counts_by_cell(trusted_records(result))
    names = list(dict.fromkeys(name for values in counts.values() for name in values))
    rows = [
        (one.kernel.title, row.cell.compiler, label(one.kernel, row.cell.measured), *map(values.get, names))
        for one in kernels
        for group in one.groups
        for row in group.ranked
        if (values := counts.get((one.kernel.name, *row.cell.key)))
    ]
    if rows:
        yield Text("Per pass, medians over the runs; page faults of placing the pages and of computing.")
        table = Table(
            "Counts by kernel and configuration",
            (*_NAMES, *(Column(name, kind="number") for name in names)),
            tuple(rows),
        )
        yield Section(count_text(len(rows), "configuration"), (table,), folded=True)
    for reason in dict.fromkeys(
        str(record.counters["unavailable"])
        for record in trusted_records(result)
        if record.counters and "unavailable" in record.counters
    ):
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
    rows = [
        (
            *(one.kernel.title, group.compiler, label(one.kernel, row.cell.measured)),
            *(row.pages.requested, row.pages.observed, floored_percent(row.pages.coverage), row.runs),
            methods.get((one.kernel.name, *row.cell.key), ""),
        )
        for one in kernels
        for group in one.groups
        for row in (*group.ranked, *group.unranked)
        if row.pages is not None
    ]
    yield Text(
        f"{_coverage_text(kernels)} Read from the operating system's accounting of the arrays' address "
        "ranges after they were touched; of several runs, the one farthest from what was requested is shown."
    )
    columns = (
        *_NAMES,
        Column("requested", kind="bytes"),
        Column("observed", kind="bytes"),
        Column("on huge pages"),
        Column("runs", kind="integer"),
        Column("read from"),
    )
    if rows:
        table = Table("Requested and observed pages", columns, tuple(rows))
        yield Section(f"{count_text(len(rows), 'configuration')}: pages", (table,), folded=True)


def _coverage_text(kernels: Sequence[KernelResult]) -> str:
    rows = [row for one in kernels for group in one.groups for row in group.ranked if row.pages is not None]
    if not rows:
        return "No configuration reported its pages."
    if kernels[0].kernel.is_program:
        return f"The pages of the whole process are known for {count_text(len(rows), 'policy', 'policies')}."
    huge = [
        row.pages.coverage
        for row in rows
        if row.pages and not PagePolicy(row.cell.measured.hugepages).is_base
    ]
    least = f"; with huge pages at least {floored_percent(min(huge))} of the bytes" if huge else ""
    return f"{count_text(len(rows), 'configuration')} ran on the requested pages{least}."
