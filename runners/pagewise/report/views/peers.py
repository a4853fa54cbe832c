"""Our kernels compared with peer benchmarks: speed-up, interval and target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from pagewise.core.errors import FormatError
from pagewise.core.result import Result
from pagewise.report.model import Block, Cell, Column, Getter, Report, Section, Style, Table, Text
from pagewise.report.views import session
from pagewise.workloads.peers.analysis import Row, judged, rows, samples
from pagewise.workloads.peers.plan import read_match

_STYLES: Mapping[str, Style] = {"met": "faster", "not met": "slower", "inconclusive": "inconclusive"}
_COLUMNS = (
    Column("level", get="match.setting"),
    Column("size", kind="bytes", get="match.working_set"),
    Column("compiler", get="scope"),
    Column("ours", kind="number", get="ours.median"),
    Column("theirs", kind="number", get="theirs.median"),
    Column("speed-up", unit="95 % interval", kind="ratio", get="speedup"),
    Column("target", get=lambda row: row.target.text()),
    Column("noise floor", kind="percent", get="floor"),
    Column("answer", get=lambda row: Cell(row.answer, _STYLES[row.answer])),
)
_FIELDS: Mapping[str, Getter] = {
    "comparison": "match.name",
    "kernel": "match.ours.kernel",
    "against": "match.against",
    "working_set_bytes": "match.working_set",
    "threads": "match.threads",
    "scope": "scope",
    "unit": "match.unit",
    "better": "match.better",
    "ours": "ours.median",
    "ours_candidate": "ours.candidate.label",
    "theirs": "theirs.median",
    "theirs_candidate": "theirs.candidate.label",
    "speedup": "speedup.median",
    "speedup_low": "speedup.low",
    "speedup_high": "speedup.high",
    "pairs": "speedup.pairs",
    "noise_floor": "floor",
    "target_least": "target.least",
    "target_most": lambda row: row.target.most if isfinite(row.target.most) else None,
    "answer": "answer",
    "missing": "missing",
    "notes": lambda row: "; ".join(row.notes),
}


def view(result: Result) -> Report:
    """The report. Raises FormatError where the matches of the manifest cannot be read."""
    manifest, rows = result.manifest, _rows(result)
    table, faults = Table.of_fields(_FIELDS, rows), _faults(result, rows)
    return Report(
        "pagewise: our kernels against peer benchmarks",
        _headline(rows),
        (*sections(rows), *missing(rows), *session.sections(result)),
        facts=tuple(session.facts(result)),
        notes=(*(f"not measured as requested: {fault}" for fault in faults), *session.notes(result)),
        reading="peers",
        tables={"peers.csv": table},
        data={
            "schema": "pagewise.peer-verdicts/1",
            "folder": result.folder,
            **{name: getattr(manifest, name) for name in ("state", "rounds", "rounds_done")},
            "comparisons": table,
        },
        faulty=bool(faults),
    )


def _rows(result: Result) -> list[Row]:
    measured = samples(result.records, result.manifest.changed_files)
    all_rows: list[Row] = []
    for data in _matches(result):
        try:
            match = read_match(data)
        except ValueError as fault:
            raise FormatError(
                f"a match cannot be read: {fault}",
                where=result.folder,
                remedy="copy the result again from where it was made, or measure again: pagewise peers",
            ) from fault
        of_match = [sample for sample in measured if sample.match == match.name]
        all_rows += rows(match, of_match, data["missing"], result.manifest.seed)
    return judged(all_rows)


def _matches(result: Result) -> tuple[Mapping[str, Any], ...]:
    assert result.manifest.peers is not None
    return result.manifest.peers.matches


def _faults(result: Result, rows: Iterable[Row]) -> list[str]:
    """What could not be measured as requested; a missed target is not a fault."""
    manifest = result.manifest
    faults = [f"{entry.module}: {entry.file} changed" for entry in manifest.changed_files]
    if manifest.state == "complete":
        missing = {data["name"]: data["missing"] for data in _matches(result)}
        absent = [row for row in rows if row.missing and missing.get(row.match.name) is None]
        faults += [f"{row.match.name} ({row.scope}): {row.missing}" for row in absent]
    return faults


def _headline(rows: Sequence[Row]) -> str:
    measured: list[str] = [row.answer for row in rows if row.missing is None]
    counts = ", ".join(f"{measured.count(answer)} {answer}" for answer in _STYLES)
    return f"Of {len(measured)} targets {counts}." if measured else "Nothing was compared."


def sections(rows: Iterable[Row]) -> Iterator[Section]:
    """A section for each kernel, other side and unit, with the best candidates and notes."""
    by_title: dict[str, list[Row]] = {}
    for row in rows:
        if row.missing is None:
            title = f"{row.match.ours.kernel} against {row.match.against} [{row.match.unit}]"
            by_title.setdefault(title, []).append(row)
    for title, several in by_title.items():
        blocks: list[Block] = [Table.of("", _COLUMNS, several)]
        for name, notes in _notes(several).items():
            blocks.append(Text("; ".join(notes), f"{name}:", "dim"))
        yield Section(title, tuple(blocks))


def _notes(rows: Sequence[Row]) -> dict[str, list[str]]:
    """By comparison: the best candidates and further notes, each once."""
    notes: dict[str, dict[str, None]] = {}
    for row in rows:
        sides = (("ours", row.ours), ("theirs", row.theirs))
        bests = [f"{side}: {best.candidate.label}" for side, best in sides if best is not None]
        notes.setdefault(row.match.name, {}).update(dict.fromkeys((*bests, *row.notes)))
    return {name: list(texts) for name, texts in notes.items() if texts}


def missing(rows: Iterable[Row]) -> Iterator[Section]:
    """What was not measured and why; comparisons with one reason together."""
    reasons: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.missing is not None:
            reasons.setdefault("; ".join((row.missing, *row.notes)), {})[row.match.name] = None
    if reasons:
        texts = tuple(Text(reason, f"{', '.join(names)}:") for reason, names in reasons.items())
        yield Section("Not measured", texts)
