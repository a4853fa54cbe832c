"""What changed from earlier sessions to a new one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pagewise.analysis.sessions import FEWEST_SESSIONS, Change
from pagewise.core.units import count_text
from pagewise.report.documents import ChangeRow, DiffDocument
from pagewise.report.model import Column, Facts, Report, Section, Style, Table, TableCell, output_of
from pagewise.report.views.data import reason_text
from pagewise.store.diff import Diff

# Times of the same baseline sometimes differ by as much between sessions.
_NOTABLE = 1.1
# The order of rows, and how they are shown.
_STYLES: Mapping[str, Style] = {
    "regression": "slower",
    "invalid": "excluded",
    "missing": "excluded",
    "improvement": "faster",
    "inconclusive": "inconclusive",
    "unchanged": "",
    "new": "",
    "still invalid": "excluded",
    "other": "reference",
    "baseline": "baseline",
}
_DIFFERENCES = (
    Column("part", merged=True),
    Column("name", get=lambda difference: TableCell(difference.name, "slower" if difference.forbids else "")),
    Column("old", wrap=True),
    Column("new", wrap=True),
)


def view(diff: Diff, strict: bool) -> Report:
    """The report; `strict`: an inconclusive verdict is a negative finding."""
    headline, several = _headline(diff), len(diff.olds) > 1
    names = [f"OLD {number}" if several else "OLD" for number in range(1, len(diff.olds) + 1)]
    sessions = tuple(
        (name, f"{result.folder}, {result.manifest.created}, {result.manifest.host.hostname}")
        for name, result in zip((*names, "NEW"), (*diff.olds, diff.new), strict=True)
    )
    differences = Table.of("Machine, system, compilers, builds and sources", _DIFFERENCES, diff.differing)
    return Report(
        "pagewise results diff",
        headline,
        (
            Section("Sessions", (Facts(sessions),)),
            *differences.section("Differences"),
            *(_kernel(kernel, diff) for kernel in dict.fromkeys(change.kernel for change in diff.changes)),
        ),
        notes=tuple(notes_of(diff)),
        data=DiffDocument(
            schema="pagewise.diff/1",
            old=tuple(str(old.folder) for old in diff.olds),
            new=str(diff.new.folder),
            quantity=diff.quantity,
            threshold=diff.threshold,
            comparable=diff.judged,
            exit_code=diff.exit_code(strict),
            answer=headline,
            differences=diff.differing,
            changes=tuple(output_of(ChangeRow, change) for change in diff.changes),
        ),
        faulty=diff.exit_code(strict) != 0,
    )


def _headline(diff: Diff) -> str:
    if not diff.judged:
        return (
            "Not comparable: machine or request differ, so other times are not evidence of a regression. "
            "--across-machines judges anyway."
        )
    counts = {status: diff.count(status) for status in _STYLES if status != "baseline"}
    text = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return f"{'Regression' if counts['regression'] else 'No regression'} ({text or 'nothing to compare'})."


def _kernel(kernel: str, diff: Diff) -> Section:
    of_ratio = diff.quantity == "ratio"
    value, unit = ("time_ratio.median", "time ratio") if of_ratio else ("seconds", "s per pass")
    columns = (
        Column("configuration", get=_name),
        Column("time NEW/OLD", kind="factor", get="time_ratio"),
        Column("OLD", unit=unit, kind="number", get=f"old.{value}"),
        Column("NEW", unit=unit, kind="number", get=f"new.{value}"),
        Column("change", unit="95 % interval", kind="ratio", get="ratio"),
        Column("noise floor", kind="percent", get="floor"),
        Column("status", get=_status),
    )
    order = list(_STYLES)
    changes = [change for change in diff.changes if change.kernel == kernel]
    changes.sort(key=lambda change: order.index(change.status))
    return Section(kernel, (Table.of("", columns, changes),))


def _status(change: Change) -> TableCell:
    return TableCell(change.status, _STYLES[change.status], change.note or reason_text(change.reason))


def _name(change: Change) -> str:
    return f"{change.cell.compiler}/{change.cell.measured.label}"


def notes_of(diff: Diff) -> Iterator[str]:
    """What else a reader must know."""
    if not diff.differing:
        yield "Machine, system, compilers and builds are the same."
    if diff.quantity == "time" and len(diff.olds) < FEWEST_SESSIONS:
        yield (
            "Times of two sessions also differ by where memory lay and what the machine did. Name "
            f"{FEWEST_SESSIONS} or more earlier results, whose spread then counts, or judge ratios."
        )
    moved = [
        change for change in diff.changes if change.status == "baseline" and _is_moved(change.time_ratio)
    ]
    if moved:
        names = ", ".join(f"{change.kernel} {_name(change)} {change.time_ratio:.2f}" for change in moved)
        yield (
            f"The times of baselines changed (NEW/OLD: {names}). Ratios do not show what all configurations "
            "have in common; --of time with several OLD does."
        )
    if diff.new.manifest.created < diff.olds[-1].manifest.created:
        yield "NEW was measured before OLD. Check the order of the arguments."
    for result in (*diff.olds, diff.new):
        if result.skipped:
            lines = count_text(len(result.skipped), "line")
            yield f"{result.folder}: {lines} of the records were not valid: {result.skipped[0]}"
        if result.manifest.state != "complete":
            yield f"{result.folder}: this session is {result.manifest.state}."


def _is_moved(time_ratio: float | None) -> bool:
    return time_ratio is not None and not 1.0 / _NOTABLE < time_ratio < _NOTABLE
