"""Our kernels against peer benchmarks: speed-up, interval and target of each comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite

from pagewise.core.errors import FormatError
from pagewise.core.result import Result
from pagewise.report.model import Block, Cell, Column, Report, Section, Style, Table, Text, Value, data_table
from pagewise.report.views import session
from pagewise.workloads.peers.analysis import Row, judged, rows
from pagewise.workloads.peers.plan import read_match
from pagewise.workloads.peers.sample import samples

_STYLES: Mapping[str, Style] = {"met": "faster", "not met": "slower", "inconclusive": "inconclusive"}
_COLUMNS = (
    Column("level"),
    Column("size", kind="bytes"),
    Column("compiler"),
    Column("ours", kind="number"),
    Column("theirs", kind="number"),
    Column("speed-up", unit="95 % interval", kind="ratio"),
    Column("target"),
    Column("noise floor", kind="percent"),
    Column("answer"),
)
_FIELDS = (
    *("comparison", "kernel", "against", "working_set_bytes", "threads", "scope", "unit", "better", "ours"),
    *("ours_candidate", "theirs", "theirs_candidate", "speedup", "speedup_low", "speedup_high", "pairs"),
    *("noise_floor", "target_least", "target_most", "answer", "missing", "notes"),
)
_READING = (
    Text(
        "ours over theirs (theirs over ours where lower is better), paired by round: above 1 ours is better.",
        "Speed-up",
    ),
    Text(
        "met: the median reaches the target, and no end of its interval misses it by more than the noise "
        "floor (at most 5 %). Not met: the interval misses it, and the median by more than the noise floor.",
        "Answer",
    ),
)


def view(result: Result) -> Report:
    """The report. Raises FormatError where the matches of the manifest cannot be read."""
    manifest, rows = result.manifest, _rows(result)
    table, faults = data_table(_FIELDS, [_fields(row) for row in rows]), _faults(result, rows)
    return Report(
        "pagewise: our kernels against peer benchmarks",
        _headline(rows),
        (*sections(rows), *missing(rows), *session.sections(manifest)),
        (),
        tuple(session.facts(manifest)),
        (*(f"not measured as asked: {fault}" for fault in faults), *session.notes(result)),
        _READING,
        {"peers.csv": table},
        {
            "schema": "pagewise.peer-verdicts/1",
            "folder": result.folder,
            **{name: manifest[name] for name in ("state", "rounds", "rounds_done")},
            "comparisons": table,
        },
        bool(faults),
    )


def _rows(result: Result) -> list[Row]:
    manifest, taken = result.manifest, samples(result.records, result.manifest)
    found: list[Row] = []
    for data in manifest["peers"]["matches"]:
        try:
            match = read_match(data)
        except ValueError as fault:
            raise FormatError(
                f"a match cannot be read: {fault}",
                where=result.folder,
                remedy="copy the result again from where it was made, or measure again: pagewise peers",
            ) from fault
        of_match = [sample for sample in taken if sample.match == match.name]
        found += rows(match, of_match, data["missing"], manifest["seed"])
    return judged(found)


def _faults(result: Result, rows: Iterable[Row]) -> list[str]:
    """What could not be measured as asked; a missed target is not a fault."""
    manifest = result.manifest
    faults = [f"{entry['module']}: {entry['file']} changed" for entry in manifest.get("changed_files", ())]
    if manifest["state"] == "complete":
        missing = {data["name"]: data["missing"] for data in manifest["peers"]["matches"]}
        absent = [row for row in rows if row.missing and missing[row.match.name] is None]
        faults += [f"{row.match.name} ({row.scope}): {row.missing}" for row in absent]
    return faults


def _headline(rows: Sequence[Row]) -> str:
    measured: list[str] = [row.answer for row in rows if row.missing is None]
    counts = ", ".join(f"{measured.count(answer)} {answer}" for answer in _STYLES)
    return f"Of {len(measured)} targets {counts}." if measured else "Nothing was compared."


def sections(rows: Iterable[Row]) -> Iterator[Section]:
    """A section for each kernel, other side and unit, with the best candidates and notes."""
    together: dict[str, list[Row]] = {}
    for row in rows:
        if row.missing is None:
            title = f"{row.match.ours.kernel} against {row.match.against} [{row.match.unit}]"
            together.setdefault(title, []).append(row)
    for title, several in together.items():
        blocks: list[Block] = [Table("", _COLUMNS, tuple(map(_cells, several)))]
        for name, notes in _notes(several).items():
            blocks.append(Text("; ".join(notes), f"{name}:", "dim"))
        yield Section(title, tuple(blocks))


def _cells(row: Row) -> tuple[Value | Cell, ...]:
    return (
        row.match.setting,
        row.match.working_set,
        row.scope,
        None if row.ours is None else row.ours.median,
        None if row.theirs is None else row.theirs.median,
        row.speedup,
        row.target.text(),
        row.floor,
        Cell(row.answer, _STYLES[row.answer]),
    )


def _notes(rows: Sequence[Row]) -> dict[str, list[str]]:
    """By comparison: the best candidates and further notes, each once."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        notes = found.setdefault(row.match.name, {})
        for side, best in (("ours", row.ours), ("theirs", row.theirs)):
            if best is not None:
                notes[f"{side}: {best.candidate.label}"] = None
        notes |= dict.fromkeys(row.notes)
    return {name: list(notes) for name, notes in found.items() if notes}


def missing(rows: Iterable[Row]) -> Iterator[Section]:
    """What was not measured and why; comparisons with one reason together."""
    reasons: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.missing is not None:
            reasons.setdefault("; ".join((row.missing, *row.notes)), {})[row.match.name] = None
    if reasons:
        texts = tuple(Text(reason, f"{', '.join(names)}:") for reason, names in reasons.items())
        yield Section("Not measured", texts)


def _fields(row: Row) -> dict[str, Value]:
    speedup, ours, theirs = row.speedup, row.ours, row.theirs
    return {
        "comparison": row.match.name,
        "kernel": row.match.ours.kernel,
        "against": row.match.against,
        "working_set_bytes": row.match.working_set,
        "threads": row.match.threads,
        "scope": row.scope,
        "unit": row.match.unit,
        "better": row.match.better,
        "ours": ours.median if ours else None,
        "ours_candidate": ours.candidate.label if ours else None,
        "theirs": theirs.median if theirs else None,
        "theirs_candidate": theirs.candidate.label if theirs else None,
        "speedup": speedup.median if speedup else None,
        "speedup_low": speedup.low if speedup else None,
        "speedup_high": speedup.high if speedup else None,
        "pairs": speedup.pairs if speedup else None,
        "noise_floor": row.floor,
        "target_least": row.target.least,
        "target_most": row.target.most if isfinite(row.target.most) else None,
        "answer": row.answer,
        "missing": row.missing,
        "notes": "; ".join(row.notes),
    }
