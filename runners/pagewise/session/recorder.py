"""A session's result folder: the manifest before anything is measured, and all that is written."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pagewise.core.manifest import (
    BrokenModule,
    ChangedFile,
    Digest,
    Manifest,
    Modules,
    RecordsDigest,
    ResultKind,
    SessionState,
    Timing,
)
from pagewise.core.plan import Step, Subject
from pagewise.core.record import Record, RecordWriter, Skipped, digest_of
from pagewise.core.result import RECORDS, create_folder, keep_log, utc_text, write_manifest
from pagewise.core.signals import postpone_signals
from pagewise.machine.energy import find_meter
from pagewise.machine.host import read_host
from pagewise.machine.placement import Placement
from pagewise.session.options import SessionOptions
from pagewise.session.resume import Earlier, command_of, read_interrupted, set_aside
from pagewise.session.workload import Outcome
from pagewise.stack.catalog import Entry
from pagewise.stack.paths import checkout
from pagewise.stack.provenance import provenance
from pagewise.stack.setup import setup_facts


def new_manifest(
    options: SessionOptions,
    kind: ResultKind,
    *,
    entries: Collection[Entry],
    subjects: Sequence[Subject],
    placements: Sequence[Placement],
    tree: Path,
    software: Mapping[str, str | None],
    environment: str | None = None,
    broken: Iterable[BrokenModule] = (),
    sweep: bool = False,
    **more: Any,
) -> Manifest:
    """The manifest of a session that begins; `more` are further fields."""
    empty = digest_of(b"")
    return Manifest(
        kind=kind,
        id=secrets.token_hex(8),
        name=options.result.name,
        created=utc_text(),
        finished=None,
        state="running",
        command=command_of(sys.argv[1:]),
        started_in=str(Path.cwd()),
        seed=options.runs.seed,
        rounds=options.runs.rounds,
        rounds_done=0,
        aa=options.runs.aa,
        until=None,
        breaks=(),
        baseline=options.baseline,
        sweep=sweep,
        limit_seconds=options.runs.limit,
        placements=tuple(placement.planned_placement() for placement in placements),
        pool=None,
        prefetchers=None,
        software=dict(software),
        provenance=provenance(checkout(), environment, setup_facts()),
        modules=Modules(environment, str(tree)),
        configurations=tuple(entry.configuration for entry in entries),
        records=RecordsDigest(empty.lines, empty.sha256),
        files={},
        subjects=tuple(subject.planned_subject() for subject in subjects),
        broken_modules=tuple(broken),
        timing=None,
        energy=find_meter().part,
        host=read_host(),
        **more,
    )


@dataclass
class Recorder:
    """A session's result folder: the manifest, records.jsonl, and the output of failed runs."""

    manifest: Manifest
    folder: Path = Path()
    records: list[Record] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    runs: int = 0
    run_seconds: float = 0.0
    _writer: RecordWriter | None = None

    def note(self, **fields: Any) -> None:
        """Changes fields of the manifest, until `save` in memory only."""
        self.manifest = replace(self.manifest, **fields)

    def create(self, results: Path, name: str) -> None:
        """Makes the folder of a new session. Raises RefusedError, SelectionError."""
        now = datetime.now(timezone.utc)
        self.folder = create_folder(results, name, now)
        self.note(created=utc_text(now))

    def resume(self, folder: Path) -> Earlier:
        """Takes over an interrupted session; returns what it measured in complete rounds.

        The runs of an unfinished round, which is repeated, no longer count. Raises as read_interrupted does.
        """
        self.folder = folder
        self.manifest, earlier = read_interrupted(folder, self.manifest)
        set_aside(folder / RECORDS, earlier.rounds, self._announce_records)
        kept = earlier.complete()
        *breaks, last = self.manifest.breaks
        self.note(breaks=(*breaks, replace(last, aside=len(earlier.runs) - len(kept.runs))))
        self.records, self.skipped = list(kept.records), list(kept.skipped)
        self.runs, self.run_seconds = len(kept.runs), sum(run.wall_seconds or 0.0 for run in kept.runs)
        return kept

    def _announce_records(self, digest: Digest) -> None:
        """Writes the digest of records that are about to replace others."""
        before = self.manifest.records
        self._note_records(digest, Digest(before.lines, before.sha256))
        self.save()

    def _note_records(self, digest: Digest, replaced: Digest | None = None) -> None:
        self.note(records=RecordsDigest(digest.lines, digest.sha256, replaced))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """While open, no other program writes to the records."""
        with RecordWriter(self.folder / RECORDS) as self._writer:
            self._note_records(self._writer.digest)
            yield

    def keep(self, step: Step, outcome: Outcome) -> None:
        """Appends the records of a run, and keeps its output if it failed."""
        assert self._writer is not None
        self.runs += 1
        self.run_seconds += outcome.wall_seconds or 0.0
        self.skipped += outcome.skipped
        records = outcome.records
        if outcome.failed or outcome.skipped:
            name = f"{step.benchmark.name}-{step.group or step.series}-{step.round}-{step.position}.txt"
            log = keep_log(self.folder, name, outcome.output)
            if log is not None:
                records = [
                    replace(record, run=record.run and replace(record.run, log=log)) for record in records
                ]
        self.records += records
        with postpone_signals():
            self._writer.append(*records)
            self._note_records(self._writer.digest)

    def note_changed(self, files: Mapping[str, Sequence[Path]]) -> None:
        """Notes files that changed since the session began; each once."""
        known = {(entry.module, entry.file) for entry in self.manifest.changed_files}
        number = self.manifest.rounds_done + 1
        new = (
            ChangedFile(module, str(file), number)
            for module, changed in files.items()
            for file in changed
            if (module, str(file)) not in known
        )
        self.note(changed_files=(*self.manifest.changed_files, *new))

    def save(self) -> None:
        """Writes the manifest."""
        write_manifest(self.folder, self.manifest)

    def finish(self, state: SessionState, wall_seconds: float) -> None:
        """Writes how the session ended and the runner overhead."""
        overhead = (wall_seconds - self.run_seconds) / wall_seconds
        self.note(
            state=state,
            finished=self.manifest.finished or utc_text(),
            timing=Timing(round(wall_seconds, 3), round(self.run_seconds, 3), round(overhead, 4), self.runs),
        )
        self.save()
