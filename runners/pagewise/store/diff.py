"""Compares results of several sessions: reads them, judges, and says it as a table or as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagewise.analysis.result import excluding
from pagewise.analysis.sessions import FEWEST_SESSIONS, Change, Quantity, changes, session
from pagewise.core.dimensions import values_of
from pagewise.core.errors import SelectionError
from pagewise.core.result import Result, check_unaltered, read_result
from pagewise.core.units import count_text, percent_text
from pagewise.report.views.wording import reason_text
from pagewise.store.differences import Difference, differences

REGRESSION, INCOMPLETE, INCOMPARABLE, UNCLEAR = 1, 5, 6, 7
# Sessions of one and the same baseline differ by as much now and then.
_WORTH_A_WORD = 1.1
_STYLES = {"regression": "bold red", "improvement": "bold green", "invalid": "red", "missing": "red"}
_ORDER = (
    *("regression", "invalid", "missing", "improvement", "inconclusive", "unchanged"),
    *("new", "still invalid", "other", "baseline"),
)


@dataclass(frozen=True)
class Diff:
    """What changed from the earlier results to the new one."""

    olds: tuple[Result, ...]
    new: Result
    quantity: Quantity
    threshold: float
    differing: tuple[Difference, ...]
    judged: bool
    changes: tuple[Change, ...]

    def count(self, status: str) -> int:
        """How many cells it is true of."""
        return sum(one.status == status for one in self.changes)

    def exit_code(self, strict: bool) -> int:
        """0, or what is the matter, the worst first; docs/diff.md has the list."""
        if not self.judged:
            return INCOMPARABLE
        if self.count("regression"):
            return REGRESSION
        if self.count("invalid") or self.count("missing"):
            return INCOMPLETE
        return UNCLEAR if strict and (self.count("inconclusive") or self.count("other")) else 0

    def sentence(self) -> str:
        """The answer in a sentence."""
        if not self.judged:
            return "Cannot be compared: the machine, or what was asked of it, is another one."
        counted = {status: self.count(status) for status in _ORDER}
        told = [f"{count} {status}" for status, count in counted.items() if count and status != "baseline"]
        return f"{'A regression' if counted['regression'] else 'No regression is shown'} ({', '.join(told)})."


def compare(
    folders: Sequence[Path], quantity: Quantity, threshold: float, across_machines: bool, seed: int
) -> Diff:
    """Reads the results and judges. Raises FormatError, SelectionError."""
    *olds, new = [_readable(folder) for folder in folders]
    differing = list(dict.fromkeys(one for old in olds for one in differences(old, new)))
    judged = across_machines or not any(one.forbids for one in differing)
    sessions = [session(one.subjects, one.records, seed, excluding(one)) for one in (*olds, new)]
    found = changes(sessions[:-1], sessions[-1], quantity, threshold, judged)
    return Diff(tuple(olds), new, quantity, threshold, tuple(differing), judged, tuple(found))


def _readable(folder: Path) -> Result:
    if (folder / "peers.json").is_file():
        raise SelectionError(
            "this holds figures of peers, which are no comparison of configurations",
            where=folder,
            remedy="name results of compare",
        )
    result = check_unaltered(read_result(folder))
    if result.manifest["kind"] == "counters":
        raise SelectionError(
            "this holds counts of events, whose runs are not timed against each other",
            where=folder,
            remedy="name results of compare",
        )
    return result


def print_diff(console: Console, diff: Diff) -> None:
    """Differences of machine, system, compiler and build first, then the table, then the answer."""
    for number, old in enumerate(diff.olds, start=1):
        name = "OLD" if len(diff.olds) == 1 else f"OLD {number}"
        console.print(f"{name:<6} {_told(old)}", highlight=False, soft_wrap=True)
    console.print(f"{'NEW':<6} {_told(diff.new)}\n", highlight=False, soft_wrap=True)
    for one in diff.differing:
        style = "bold red" if one.forbids and not diff.judged else "yellow"
        text = f"{one.part + ':':<9} {one.name}: {_short(one.old)} -> {_short(one.new)}"
        console.print(Text(text, style), soft_wrap=True)
    if not diff.differing:
        console.print("Machine, system, compilers and builds are the same.")
    if not diff.judged:
        console.print(
            Text(
                "So a change of times is no regression, and none is told; --across-machines judges anyway.",
                "bold",
            )
        )
    for kernel in dict.fromkeys(one.kernel for one in diff.changes):
        found = [one for one in diff.changes if one.kernel == kernel]
        console.print(_table(kernel, [one for one in found if _is_measured(one)], diff))
        for status, why in dict.fromkeys((one.status, one.note) for one in found if not _is_measured(one)):
            alike = [one for one in found if (one.status, one.note) == (status, why)]
            text = f"{status}: {', '.join(map(_name, alike))}: {why}"
            console.print(Text(text, _STYLES.get(status, "")), soft_wrap=True)
    for note in _notes(diff):
        console.print(note, highlight=False, soft_wrap=True)
    console.print(Text(diff.sentence(), "bold"))


def _is_measured(one: Change) -> bool:
    """Whether both sessions have times of it."""
    return one.time_ratio is not None


def _name(one: Change) -> str:
    return f"{one.cell.compiler}/{one.cell.measured.label}"


def _table(kernel: str, found: Sequence[Change], diff: Diff) -> Table:
    table = Table(title=kernel, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("configuration", no_wrap=True)
    for name in ("time NEW/OLD", "OLD", "NEW", "change", "95 % interval", "noise"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    table.caption = (
        "OLD and NEW: time_ratio to the baseline of their own session"
        if diff.quantity == "ratio"
        else "OLD and NEW: seconds a pass"
    )
    for one in sorted(found, key=lambda change: _ORDER.index(change.status)):
        table.add_row(*_cells(one, diff))
    return table


def _cells(one: Change, diff: Diff) -> Iterator[Text | str]:
    yield _name(one)
    yield f"{one.time_ratio:.3f}"
    for row in (one.old, one.new):
        ratio = None if row is None or row.time_ratio is None else row.time_ratio.median
        value = ratio if diff.quantity == "ratio" else None if row is None else row.seconds
        yield "-" if value is None else f"{value:.4g}"
    if one.ratio is None:
        yield from ("-", "-")
    else:
        low, high = one.ratio.low, one.ratio.high
        yield f"{one.ratio.median - 1.0:+.1%}"
        yield "-" if low is None or high is None else f"{low - 1.0:+.1%} to {high - 1.0:+.1%}"
    yield "-" if one.floor is None else percent_text(one.floor)
    why = one.note or reason_text(one.reason)
    yield Text(": ".join(filter(None, (one.status, why))), _STYLES.get(one.status, ""))


def _notes(diff: Diff) -> Iterator[str]:
    if diff.quantity == "time" and len(diff.olds) < FEWEST_SESSIONS:
        yield (
            "Times of one session and of another also differ by where memory lay and what the machine did; "
            f"give {FEWEST_SESSIONS} or more earlier results, whose spread then counts, or judge ratios."
        )
    moved = [one for one in diff.changes if one.status == "baseline" and _moved(one.time_ratio)]
    if moved:
        names = ", ".join(f"{one.kernel} {_name(one)} {one.time_ratio:.2f}" for one in moved)
        yield (
            f"Baselines took other times than in OLD (NEW/OLD: {names}). Ratios do not show what all "
            "configurations have in common; --of time with several OLD does."
        )
    if diff.new.manifest["created"] < diff.olds[-1].manifest["created"]:
        yield "NEW was measured before OLD: are they the right way round?"
    for result in (*diff.olds, diff.new):
        if result.skipped:
            yield f"{result.folder}: {count_text(len(result.skipped), 'line')} left out: {result.skipped[0]}"
        if result.manifest["state"] != "complete":
            yield f"{result.folder}: this comparison is {result.manifest['state']}"


def as_data(diff: Diff, strict: bool) -> dict[str, Any]:
    """The same as data."""
    return {
        "schema": "pagewise.diff/1",
        "old": [str(one.folder) for one in diff.olds],
        "new": str(diff.new.folder),
        "quantity": diff.quantity,
        "threshold": diff.threshold,
        "comparable": diff.judged,
        "exit_code": diff.exit_code(strict),
        "answer": diff.sentence(),
        "differences": [
            {"part": one.part, "name": one.name, "old": one.old, "new": one.new, "forbids": one.forbids}
            for one in diff.differing
        ],
        "changes": [_change(one) for one in diff.changes],
    }


def _change(one: Change) -> dict[str, Any]:
    cell, found = one.cell.measured, one.ratio
    return {
        "kernel": one.kernel,
        "module": cell.module,
        **values_of(cell),
        "status": one.status,
        "reason": one.note or one.reason,
        "time_ratio_new_to_old": one.time_ratio,
        "change": None if found is None else found.median,
        "change_low": None if found is None else found.low,
        "change_high": None if found is None else found.high,
        "p_corrected": one.p,
        "noise_floor": one.floor,
    }


def _told(result: Result) -> str:
    manifest = result.manifest
    return f"{result.folder}  {manifest['created']}  {manifest['host']['hostname']}"


def _moved(time_ratio: float | None) -> bool:
    return time_ratio is not None and not 1.0 / _WORTH_A_WORD < time_ratio < _WORTH_A_WORD


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:100] + " ..."
