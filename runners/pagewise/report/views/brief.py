"""What a terminal shows of a comparison without --verbose: a table per kernel, noise and exclusions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pagewise.analysis.analysis import KernelResult
from pagewise.core.units import count_text, percent_text
from pagewise.report.model import Block, Cell, Column, Section, Table, Text
from pagewise.report.views import data
from pagewise.report.views.data import Entry
from pagewise.report.views.kernel import ratio_cell, speed_up_cell, verdict_cell
from pagewise.report.views.wording import pages_text

# A remedy is a command or a sentence: longer reasons are in the report.
_LONGEST = 160


def blocks(kernels: Sequence[KernelResult]) -> Iterator[Block]:
    """A table per kernel that fits a narrow terminal, the noise floors, and the excluded configurations."""
    for result in kernels:
        if entries := data.ranked([result]):
            yield Section(result.kernel.title, (_table(entries),))
    if text := _floors(kernels):
        yield Text(text, "Noise floor (A/A):")
    for count, reason, remedy in exclusions(kernels):
        more = f" Remedy: {remedy}." if remedy and len(remedy) <= _LONGEST else ""
        yield Text(f"{count_text(count, 'configuration')}: {reason[:_LONGEST]}.{more}", "Excluded:")


def _table(entries: Sequence[Entry]) -> Table:
    """Words wrap, and numbers are short: it fits any width that a terminal has."""
    kernel, has_memory = entries[0].kernel, any(entry.row.memory is not None for entry in entries)
    compiler = Column("compiler", merged=True, wrap=True, get="group.compiler")
    columns = [
        *([compiler] if kernel.is_sensitive_to("compiler") else []),
        Column("configuration", wrap=True, get="label"),
        Column("time", kind="seconds", unit=f"per {kernel.unit}", get="row.seconds"),
        Column("observed", unit="pages", get=lambda entry: pages_text(entry.row)),
        *([Column("memory", unit="ratio", kind="quotient", get="row.memory")] if has_memory else []),
        Column("time ratio", unit="95 % interval", kind="ratio", get=ratio_cell),
        Column("speed-up", kind="quotient", get=speed_up_cell),
        Column("verdict", wrap=True, get=_verdict),
    ]
    return Table.of("", columns, entries)


def _verdict(entry: Entry) -> Cell:
    shown = verdict_cell(entry)
    return Cell(shown.value, shown.style)


def _floors(kernels: Sequence[KernelResult]) -> str:
    """The noise floors of all comparisons in one sentence; empty without any."""
    floors = [group.floor for result in kernels for group in result.groups if group.floor is not None]
    if not floors:
        return ""
    ends = dict.fromkeys(percent_text(end) for end in (min(floors), max(floors)))
    return f"{' to '.join(ends)}; smaller differences are inconclusive."


def exclusions(kernels: Sequence[KernelResult]) -> list[tuple[int, str, str]]:
    """How many configurations are excluded for each kind of reason, with reason and remedy of the first."""
    by_code: dict[str, list[Entry]] = {}
    for entry in data.excluded(kernels):
        by_code.setdefault(entry.row.code or "", []).append(entry)
    firsts = ((len(those), those[0].row) for those in by_code.values())
    return [(count, row.invalid or "", row.remedy or "") for count, row in firsts]
