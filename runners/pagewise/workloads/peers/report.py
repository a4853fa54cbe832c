"""Reports of comparisons with peers: tables on the terminal, peers.csv and peers.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagewise.core.errors import FormatError, RefusedError
from pagewise.core.files import table_text, write_inside
from pagewise.core.result import Result
from pagewise.core.units import bytes_text, number_text, percent_text
from pagewise.session.processes import left_by, left_text
from pagewise.workloads.peers.analysis import Best, Row, judged, rows
from pagewise.workloads.peers.plan import read_match
from pagewise.workloads.peers.sample import samples

_STYLES = {"met": "bold green", "not met": "bold red", "inconclusive": "dim"}
_RIGHT = ("ours", "theirs", "speedup", "noise")
_HEADS = ("level", "size", "compiler", *_RIGHT[:3], "95 % interval", "target", "noise", "answer")
_COLUMNS = (
    "comparison",
    "kernel",
    "against",
    "working_set_bytes",
    "threads",
    "scope",
    "unit",
    "better",
    "ours",
    "ours_candidate",
    "theirs",
    "theirs_candidate",
    "speedup",
    "speedup_low",
    "speedup_high",
    "pairs",
    "noise_floor",
    "target_least",
    "target_most",
    "answer",
    "missing",
    "notes",
)


@dataclass(frozen=True)
class Figures:
    """What is reported: the rows, what could not be measured as asked, what processes were left."""

    rows: list[Row]
    faults: list[str]
    left: str | None
    manifest: Mapping[str, Any]
    folder: Path

    @property
    def faulty(self) -> bool:
        """Whether something could not be measured as asked; a missed target is not a fault."""
        return bool(self.faults)

    @property
    def data(self) -> dict[str, Any]:
        """Schema pagewise.peer-verdicts/1: the rows of peers.csv."""
        return {
            "schema": "pagewise.peer-verdicts/1",
            "folder": str(self.folder),
            **{name: self.manifest[name] for name in ("state", "rounds", "rounds_done")},
            "comparisons": [_csv_row(row) for row in self.rows],
        }


def figures(result: Result) -> Figures:
    """The rows of a result, from its records. Raises FormatError where its matches cannot be read."""
    manifest = result.manifest
    taken = samples(result.records, manifest)
    missing = {data["name"]: data["missing"] for data in manifest["peers"]["matches"]}
    try:
        matches = [read_match(data) for data in manifest["peers"]["matches"]]
    except ValueError as fault:
        raise FormatError(
            f"a match cannot be read: {fault}",
            where=result.folder,
            remedy="copy the result again from where it was made, or measure again: pagewise peers",
        ) from fault
    found = judged(
        [
            row
            for match in matches
            for row in rows(
                match,
                [sample for sample in taken if sample.match == match.name],
                missing[match.name],
                manifest["seed"],
            )
        ]
    )
    faults = [f"{entry['module']}: {entry['file']} changed" for entry in manifest.get("changed_files", ())]
    if manifest["state"] == "complete":
        absent = [row for row in found if row.missing and missing[row.match.name] is None]
        faults += [f"{row.match.name} ({row.scope}): {row.missing}" for row in absent]
    return Figures(found, faults, left_text(left_by(result.records)), manifest, result.folder)


def show(console: Console, found: Figures) -> None:
    """Prints the tables, and what could not be measured as asked."""
    print_rows(console, found.rows)
    notes = [f"not measured as asked: {fault}" for fault in found.faults]
    for note in (*notes, *([found.left] if found.left else [])):
        console.print(note, style="yellow", highlight=False, soft_wrap=True)


def print_rows(console: Console, rows: Sequence[Row]) -> None:
    """Prints a table for each kernel and peer, which candidates were the best, and what is missing."""
    for title, those in _grouped(rows).items():
        table = Table(
            title=Text(title, style="bold cyan"),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            show_edge=False,
            padding=(0, 1),
        )
        for head in _HEADS:
            table.add_column(head, justify="right" if head in _RIGHT else "left", no_wrap=True)
        for row in those:
            *cells, last = _cells(row)
            table.add_row(*cells, Text(last, style=_STYLES[row.answer]))
        console.print()
        console.print(table)
        for name, lines in _notes(those).items():
            console.print(Text(name, style="bold"))
            for line in lines:
                console.print(Text(f"  {line}", style="dim"), soft_wrap=True)
    for line in _lacking(rows):
        console.print(Text.assemble(("no figure: ", "yellow"), line), soft_wrap=True)


def write_files(folder: Path, found: Figures) -> Path:
    """Writes peers.csv and peers.md, and returns the path of the latter. Raises RefusedError."""
    table = ([cells.get(name) for name in _COLUMNS] for cells in map(_csv_row, found.rows))
    try:
        write_inside(folder, "peers.csv", table_text(_COLUMNS, table))
        return write_inside(folder, "peers.md", markdown(found.rows, found.manifest))
    except OSError as fault:
        raise RefusedError(
            f"the report cannot be written: {fault.strerror}", where=folder, remedy="free some space"
        ) from fault


def markdown(rows: Sequence[Row], told: Mapping[str, Any]) -> str:
    """The table for docs, with the machine and the best candidates."""
    host = told["host"]
    lines = [
        f"{host['cpu']}, {host['cpus']} CPUs, Linux {host['kernel']}"
        + (f", virtual machine ({host['virtual_machine']})" if host["virtual_machine"] else "")
        + f"; {told['created']}, {told['rounds_done']} of {told['rounds']} rounds."
    ]
    for title, those in _grouped(rows).items():
        heads = [" --- " if head not in _RIGHT else " ---: " for head in _HEADS]
        lines += ["", f"{title}:", "", f"| {' | '.join(_HEADS)} |", f"|{'|'.join(heads)}|"]
        lines += ["| " + " | ".join(_cells(row)) + " |" for row in those]
        lines += [""]
        for name, told_lines in _notes(those).items():
            lines += [f"- {name}", *(f"    - {line}" for line in told_lines)]
    lacking = [f"- {line}" for line in _lacking(rows)]
    lines += ["", "No figure:", "", *lacking] if lacking else []
    return "\n".join(lines) + "\n"


def _grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows that have figures, by kernel, other side and unit."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.missing is None:
            title = f"{row.match.ours.kernel} against {row.match.against} [{row.match.unit}]"
            found.setdefault(title, []).append(row)
    return found


def _lacking(rows: Iterable[Row]) -> list[str]:
    """What has no figure and why, each once; comparisons with one reason together."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.missing is not None:
            names = reasons.setdefault("; ".join((row.missing, *row.notes)), [])
            if row.match.name not in names:
                names.append(row.match.name)
    return [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]


def _cells(row: Row) -> list[str]:
    speedup, interval = "-", "-"
    if row.speedup is not None:
        speedup = f"{row.speedup.median:.3f}"
        if row.speedup.low is not None and row.speedup.high is not None:
            interval = f"{row.speedup.low:.3f}–{row.speedup.high:.3f}"
    return [
        row.match.setting,
        bytes_text(row.match.working_set),
        row.scope,
        _number(row.ours),
        _number(row.theirs),
        speedup,
        interval,
        row.target.text(),
        "-" if row.floor is None else percent_text(row.floor),
        row.answer,
    ]


def _notes(rows: Sequence[Row]) -> dict[str, list[str]]:
    """By comparison: the best candidates, and what else is to be said; each line once."""
    found: dict[str, list[str]] = {}
    for row in rows:
        lines = found.setdefault(row.match.name, [])
        for side, best in (("ours", row.ours), ("theirs", row.theirs)):
            if best is not None:
                lines.append(f"{side}: {best.candidate.label}")
    for row in rows:
        found[row.match.name] += row.notes
    return {name: list(dict.fromkeys(lines)) for name, lines in found.items() if lines}


def _csv_row(row: Row) -> dict[str, object]:
    measured = row.speedup
    return {
        "comparison": row.match.name,
        "kernel": row.match.ours.kernel,
        "against": row.match.against,
        "working_set_bytes": row.match.working_set,
        "threads": row.match.threads,
        "scope": row.scope,
        "unit": row.match.unit,
        "better": row.match.better,
        "ours": row.ours.median if row.ours else None,
        "ours_candidate": row.ours.candidate.label if row.ours else None,
        "theirs": row.theirs.median if row.theirs else None,
        "theirs_candidate": row.theirs.candidate.label if row.theirs else None,
        "speedup": measured.median if measured else None,
        "speedup_low": measured.low if measured else None,
        "speedup_high": measured.high if measured else None,
        "pairs": measured.pairs if measured else None,
        "noise_floor": row.floor,
        "target_least": row.target.least,
        "target_most": None if row.target.most == float("inf") else row.target.most,
        "answer": row.answer,
        "missing": row.missing,
        "notes": "; ".join(row.notes),
    }


def _number(best: Best | None) -> str:
    return "-" if best is None else number_text(best.median)
