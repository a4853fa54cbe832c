"""What changed from earlier sessions to a new one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pagewise.analysis.sessions import FEWEST_SESSIONS, Change
from pagewise.core.dimensions import values_of
from pagewise.core.result import Result
from pagewise.core.units import count_text
from pagewise.report.model import Cell, Column, Facts, Report, Section, Style, Table, Values
from pagewise.report.views.wording import reason_text
from pagewise.store.diff import Diff

# Sessions of one and the same baseline differ by as much now and then.
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


def view(diff: Diff, strict: bool) -> Report:
    """The report; `strict`: an inconclusive verdict is a negative finding."""
    headline, notes = _headline(diff), list(notes_of(diff))
    return Report(
        "pagewise results diff",
        headline,
        (
            Section("Sessions", (Facts(tuple(_sessions(diff))),)),
            *_differences(diff),
            *(_kernel(kernel, diff) for kernel in dict.fromkeys(one.kernel for one in diff.changes)),
        ),
        notes=tuple(notes),
        data={
            "schema": "pagewise.diff/1",
            "old": [one.folder for one in diff.olds],
            "new": diff.new.folder,
            "quantity": diff.quantity,
            "threshold": diff.threshold,
            "comparable": diff.judged,
            "exit_code": diff.exit_code(strict),
            "answer": headline,
            "differences": [
                {"part": one.part, "name": one.name, "old": one.old, "new": one.new, "forbids": one.forbids}
                for one in diff.differing
            ],
            "changes": [_change(one) for one in diff.changes],
        },
        faulty=diff.exit_code(strict) != 0,
    )


def _headline(diff: Diff) -> str:
    if not diff.judged:
        return (
            "Not comparable: the machine or the request differs, so a change of times is no regression. "
            "--across-machines judges anyway."
        )
    counts = {status: diff.count(status) for status in _STYLES if status != "baseline"}
    text = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return f"{'Regression' if counts['regression'] else 'No regression'} ({text or 'nothing to compare'})."


def _sessions(diff: Diff) -> Iterator[tuple[str, str]]:
    for number, old in enumerate(diff.olds, start=1):
        yield "OLD" if len(diff.olds) == 1 else f"OLD {number}", _session(old)
    yield "NEW", _session(diff.new)


def _session(result: Result) -> str:
    return f"{result.folder}, {result.manifest['created']}, {result.manifest['host']['hostname']}"


def _differences(diff: Diff) -> Iterator[Section]:
    columns = (
        Column("part", merged=True),
        Column("name"),
        *(Column(name, wrap=True) for name in ("old", "new")),
    )
    rows: tuple[Values, ...] = tuple(
        (one.part, Cell(one.name, "slower" if one.forbids else ""), one.old, one.new)
        for one in diff.differing
    )
    if rows:
        yield Section(
            "Differences", (Table("Machine, system, compilers, builds and sources", columns, rows),)
        )


def _kernel(kernel: str, diff: Diff) -> Section:
    of_ratio = diff.quantity == "ratio"
    unit = "time ratio" if of_ratio else "s per pass"
    columns = (
        Column("configuration"),
        Column("time NEW/OLD", kind="factor"),
        Column("OLD", unit=unit, kind="number"),
        Column("NEW", unit=unit, kind="number"),
        Column("change", unit="95 % interval", kind="ratio"),
        Column("noise floor", kind="percent"),
        Column("status"),
    )
    order = list(_STYLES)
    changes = [one for one in diff.changes if one.kernel == kernel]
    changes.sort(key=lambda one: order.index(one.status))
    return Section(kernel, (Table("", columns, tuple(_row(one, of_ratio) for one in changes)),))


def _row(one: Change, of_ratio: bool) -> Values:
    values = []
    for row in (one.old, one.new):
        ratio = None if row is None or row.time_ratio is None else row.time_ratio.median
        values.append(ratio if of_ratio else None if row is None else row.seconds)
    status = Cell(one.status, _STYLES[one.status], one.note or reason_text(one.reason))
    return (_name(one), one.time_ratio, *values, one.ratio, one.floor, status)


def _name(one: Change) -> str:
    return f"{one.cell.compiler}/{one.cell.measured.label}"


def notes_of(diff: Diff) -> Iterator[str]:
    """What else a reader must know."""
    if not diff.differing:
        yield "Machine, system, compilers and builds are the same."
    if diff.quantity == "time" and len(diff.olds) < FEWEST_SESSIONS:
        yield (
            "Times of two sessions also differ by where memory lay and what the machine did. Name "
            f"{FEWEST_SESSIONS} or more earlier results, whose spread then counts, or judge ratios."
        )
    moved = [one for one in diff.changes if one.status == "baseline" and _moved(one.time_ratio)]
    if moved:
        names = ", ".join(f"{one.kernel} {_name(one)} {one.time_ratio:.2f}" for one in moved)
        yield (
            f"The times of baselines changed (NEW/OLD: {names}). Ratios do not show what all configurations "
            "have in common; --of time with several OLD does."
        )
    if diff.new.manifest["created"] < diff.olds[-1].manifest["created"]:
        yield "NEW was measured before OLD. Check the order of the arguments."
    for result in (*diff.olds, diff.new):
        if result.skipped:
            lines = count_text(len(result.skipped), "line")
            yield f"{result.folder}: {lines} of the records were not valid: {result.skipped[0]}"
        if result.manifest["state"] != "complete":
            yield f"{result.folder}: this session is {result.manifest['state']}."


def _moved(time_ratio: float | None) -> bool:
    return time_ratio is not None and not 1.0 / _NOTABLE < time_ratio < _NOTABLE


def _change(one: Change) -> dict[str, object]:
    measured, ratio = one.cell.measured, one.ratio
    return {
        "kernel": one.kernel,
        "module": measured.module,
        **values_of(measured),
        "status": one.status,
        "reason": one.note or one.reason,
        "time_ratio_new_to_old": one.time_ratio,
        "change": None if ratio is None else ratio.median,
        "change_low": None if ratio is None else ratio.low,
        "change_high": None if ratio is None else ratio.high,
        "p_corrected": one.p,
        "noise_floor": one.floor,
    }
