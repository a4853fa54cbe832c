"""Records: JSON lines of schema pagewise.record/1, appended as they are measured."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pagewise.core.errors import RefusedError
from pagewise.core.fields import Amount, FiniteNumber, SomeText, Utc
from pagewise.core.manifest import Digest
from pagewise.core.manifest_parts import Simulated
from pagewise.core.reading import parse_json, read_file
from pagewise.core.record_parts import (
    BuildReport,
    Failure,
    Option,
    PageFaults,
    PageUse,
    ProblemSize,
    ProgramMemory,
    RankUse,
    RecordedHost,
    RegionCounts,
    RunOf,
    ThreadPlaces,
    Times,
    Traffic,
    Validation,
)
from pagewise.core.structure import Limits, StructureError, document, to_data
from pagewise.core.text import command_text

Status = Literal["ok", "check_failed", "pages_unavailable", "failed"]
CounterSource = Literal["papi", "perf_event", "software"]
#: The largest file of records, in bytes: about a million.
LARGEST = 4 << 30
# What a run that was measured has if it is valid.
_OF_VALID = ("seconds", "metrics", "validation", "pages", "placement", "host")
# A link that lies in the folder of a result from elsewhere leads out of it.
_APPENDED = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK


def _check_counters(counters: Mapping[str, float | str]) -> None:
    """Raises ValueError unless it has counts, or only the reason why they are unavailable."""
    texts = [name for name, count in counters.items() if isinstance(count, str)]
    if ("unavailable" in counters or texts) and not list(counters) == texts == ["unavailable"]:
        raise ValueError("counts are numbers, and `unavailable` is alone")


@dataclass(frozen=True, kw_only=True)
class Record:
    """A run of a kernel or program at one size; the kernel writes all but `run`.

    A record of the status `ok` has seconds, metrics, validation, pages, placement and host, or is simulated.
    """

    # Of earlier versions.
    IGNORED: ClassVar = ("power_over_time",)
    schema: Literal["pagewise.record/1"] = "pagewise.record/1"
    kernel: SomeText
    started: Utc
    status: Annotated[Status, "failed: a crash, a timeout, or another exit code than 0, 1 and 3"]
    failure: Failure | None = None
    configuration: BuildReport
    options: Mapping[str, Option] | None = None
    sizes: ProblemSize | None = None
    seconds: Times | None = None
    passes_per_repetition: Annotated[int, Limits(1, 10**15)] | None = None
    traffic: Traffic | None = None
    metrics: Mapping[str, FiniteNumber] | None = None
    validation: Validation | None = None
    pages: PageUse | None = None
    page_faults: PageFaults | None = None
    counters: Annotated[Mapping[str, FiniteNumber | str], _check_counters] | None = None
    counters_source: Annotated[CounterSource, "software: of the operating system"] | None = None
    counters_refused: Annotated[Mapping[str, str], "events not counted, with the reason"] | None = None
    regions: tuple[RegionCounts, ...] | None = None
    region_cost_seconds: Annotated[Amount, "of an empty region; not subtracted"] | None = None
    simulated: Simulated | None = None
    placement: ThreadPlaces | None = None
    host: RecordedHost | None = None
    program: ProgramMemory | None = None
    ranks: Annotated[tuple[RankUse, ...], "absent: it ran without a launcher"] = ()
    run: RunOf | None = None

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """What a record of its status has too little or too much."""
        needed: dict[str, object] = {}
        if self.simulated is not None:
            measured = {"seconds": self.seconds, "metrics": self.metrics, "counters": self.counters}
            yield from (
                ("", f"{name!r} is not simulated") for name, part in measured.items() if part is not None
            )
        elif self.status == "ok":
            needed = {name: getattr(self, name) for name in _OF_VALID}
        if self.status == "ok" and self.failure is not None:
            yield "", "'failure' contradicts the status ok"
        if self.status != "ok":
            needed["failure"] = self.failure
        turns = None if self.run is None else self.run.turns
        if turns is not None and self.repetitions and len(turns.baseline_seconds) != len(self.repetitions):
            yield "run", "'turns' are not those of 'seconds'"
        yield from (("", f"{name!r} is missing") for name, part in needed.items() if part is None)

    @property
    def repetitions(self) -> tuple[float, ...]:
        """Seconds per repetition; empty for a run that failed."""
        return () if self.seconds is None else self.seconds.repetitions

    @property
    def passes(self) -> int:
        """Passes per repetition."""
        return self.passes_per_repetition or 1

    @property
    def figures(self) -> Mapping[str, float]:
        """Its metrics; none for a run that failed."""
        return self.metrics or {}

    @property
    def counts(self) -> dict[str, float]:
        """What was counted, by the events' native names; empty where counters are unavailable."""
        return {name: n for name, n in (self.counters or {}).items() if not isinstance(n, str)}

    @property
    def series(self) -> str | None:
        """The series that its run belongs to; None for a record without a session."""
        return None if self.run is None else self.run.series

    @property
    def round(self) -> int:
        """The round that its run belongs to; 0 for a record without a session."""
        return 0 if self.run is None else self.run.round

    @property
    def of_kernel(self) -> str:
        """The kernel whose comparison it belongs to: a program may serve several."""
        return (self.run and self.run.kernel) or self.kernel


@dataclass(frozen=True)
class Skipped:
    """A line that is not a valid record: its number in the file, from 1, and what is wrong."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        """As it is shown: file, line, reason."""
        return f"{self.file}, line {self.line}: {self.reason}"


def read_records(file: Path) -> tuple[list[Record], list[Skipped]]:
    """All valid records of a file in order, and the lines that had to be skipped, each with its reason.

    Raises RefusedError when the file cannot be read.
    """
    content = read_lines(file)
    records: list[Record] = []
    skipped: list[Skipped] = []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        record, reason = parse_record(line) if line.strip() else (None, None)
        if record is not None:
            records.append(record)
        elif reason is not None:
            cut = "" if number < len(lines) else "the line is cut short (a crash or a full disk?): "
            skipped.append(Skipped(file.name, number, cut + reason))
    return records, skipped


def read_lines(file: Path) -> bytes:
    """The content of a records file. Raises RefusedError when it cannot be read."""
    try:
        return read_file(file, LARGEST)
    except OSError as fault:
        raise RefusedError(
            f"the records cannot be read: {fault.strerror}", where=file, remedy="let this user read it"
        ) from fault


def parse_record(line: bytes) -> tuple[Record | None, str | None]:
    """A record and None, or None and what is wrong with the line."""
    try:
        data = parse_json(line)
    except ValueError as fault:
        return None, f"not JSON: {fault}"
    try:
        return document(Record, data), None
    except StructureError as fault:
        return None, "; ".join(fault.texts[:5])


class RecordWriter(AbstractContextManager["RecordWriter"]):
    """Appends records to a file: those of a run are on the disk before `append` returns, or none of them.

    As long as it is open, no other writes to the file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self._descriptor = os.open(file, _APPENDED, 0o644)
        except OSError as fault:
            raise RefusedError(
                f"the records cannot be written: {fault.strerror}",
                where=file,
                remedy="name another --output folder",
            ) from fault
        try:
            lock(self._descriptor, file)
        except RefusedError:
            os.close(self._descriptor)
            raise
        # A device has no size, and no content of pagewise.
        content = read_lines(file) if os.fstat(self._descriptor).st_size else b""
        self._lines, self._sha256 = content.count(b"\n"), hashlib.sha256(content)

    @property
    def digest(self) -> Digest:
        """What was written so far, for the manifest."""
        return Digest(self._lines, self._sha256.hexdigest())

    def append(self, *records: Record) -> None:
        """Writes the records of a run. Raises RefusedError when the disk is full; what was written stays."""
        line = b"".join(dump_record(record) + b"\n" for record in records)
        before = os.fstat(self._descriptor).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
            os.fdatasync(self._descriptor)
        except OSError as fault:
            # A device such as /dev/full cannot be cut; the reader then reports the half line.
            with suppress(OSError):
                os.ftruncate(self._descriptor, before)
            raise RefusedError(
                f"a record cannot be written: {fault.strerror}; all records before it are kept",
                where=self.file,
                remedy="free some space, then: "
                + command_text(("pagewise", "report", str(self.file.parent))),
            ) from fault
        self._lines += len(records)
        self._sha256.update(line)

    def __exit__(self, *_: object) -> None:
        """Closes the file."""
        os.close(self._descriptor)


def digest_of(content: bytes) -> Digest:
    """Number of lines and SHA-256 of the content of a records file."""
    return Digest(content.count(b"\n"), hashlib.sha256(content).hexdigest())


def dump_record(record: Record) -> bytes:
    """A record as its line in the file, without the line's end."""
    # A byte of an argument that is not UTF-8 is escaped, which is JSON, too.
    return json.dumps(to_data(record), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        errors="backslashreplace"
    )


def lock(descriptor: int, file: Path) -> None:
    """Locks the file for writing until it is closed. Raises RefusedError while another program locks it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as fault:
        # Some network file systems do not support locks.
        if fault.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise RefusedError(
                "another session is writing to this result",
                where=file,
                remedy="wait for its end, or end it",
            ) from fault
