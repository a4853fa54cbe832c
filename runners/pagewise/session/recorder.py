"""Writes a session to its result folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pagewise.core.plan import Step
from pagewise.core.record import Record, RecordWriter, Skipped
from pagewise.core.result import RECORDS, create_folder, keep_log, utc_text, write_manifest
from pagewise.core.signals import postponed
from pagewise.session.origin import seal
from pagewise.session.resume import Earlier, continued, set_aside
from pagewise.session.workload import Outcome


@dataclass
class FolderRecorder:
    """A session's result folder: the manifest, records.jsonl, and the output of failed runs."""

    manifest: dict[str, Any]
    folder: Path = Path()
    records: list[Record] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    runs: int = 0
    run_seconds: float = 0.0
    _writer: RecordWriter | None = None

    def create(self, results: Path, name: str) -> None:
        """Makes the folder of a new session. Raises RefusedError, SelectionError."""
        now = datetime.now(timezone.utc)
        self.folder = create_folder(results, name, now)
        self.manifest["created"] = utc_text(now)
        if "seal" not in self.manifest:
            self.manifest["seal"] = seal(self.manifest)

    def take_up(self, folder: Path) -> Earlier:
        """Takes over an interrupted session; what it measured. Raises errors as `continued` does."""
        self.folder = folder
        self.manifest, earlier = continued(folder, self.manifest)
        return earlier

    def set_aside(self, steps: Sequence[Step], earlier: Earlier) -> Earlier:
        """Keeps what was measured before, without the runs of these steps, which are made again."""
        set_aside(self.folder / RECORDS, steps, self._announce_records)
        kept = earlier.without(steps)
        self.manifest["breaks"][-1]["aside"] = earlier.done.total() - kept.done.total()
        self.records, self.skipped = list(kept.records), list(kept.skipped)
        self.runs, self.run_seconds = kept.done.total(), kept.run_seconds
        return kept

    def _announce_records(self, digest: dict[str, Any]) -> None:
        """Writes the digest of records that are about to replace others."""
        known = self.manifest.get("records", digest)
        before = {name: known[name] for name in digest}
        self.manifest["records"] = {**digest, "replaced": before}
        self.save()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """While open, no other program writes to the records."""
        with RecordWriter(self.folder / RECORDS) as self._writer:
            self.manifest["records"] = self._writer.digest
            yield

    def keep(self, step: Step, outcome: Outcome) -> None:
        """Appends the records of a run, and keeps its output if it failed."""
        assert self._writer is not None
        self.runs += 1
        self.run_seconds += outcome.wall_seconds or 0.0
        self.skipped += outcome.skipped
        records = outcome.records
        if outcome.failed or outcome.skipped:
            name = f"{step.kernel.name}-{step.group or step.series}-{step.round}-{step.position}.txt"
            log = keep_log(self.folder, name, outcome.output)
            if log is not None:
                records = [replace(one, run=one.run and replace(one.run, log=log)) for one in records]
        self.records += records
        with postponed():
            self._writer.append(*records)
            self.manifest["records"] = self._writer.digest

    def note_changed(self, files: Mapping[str, Sequence[Path]]) -> None:
        """Notes files that are not what they were when the session began; each once."""
        noted = self.manifest.setdefault("changed_files", [])
        known = {(entry["module"], entry["file"]) for entry in noted}
        number = self.manifest["rounds_done"] + 1
        for module, changed in files.items():
            for file in map(str, changed):
                if (module, file) not in known:
                    noted.append({"module": module, "file": file, "round": number})

    def save(self) -> None:
        """Writes the manifest."""
        write_manifest(self.folder, self.manifest)

    def finish(self, state: str, wall_seconds: float) -> None:
        """Writes how the session ended and the runner overhead."""
        self.manifest |= {
            "state": state,
            "finished": self.manifest["finished"] or utc_text(),
            "timing": {
                "wall_seconds": round(wall_seconds, 3),
                "kernel_seconds": round(self.run_seconds, 3),
                "own_share": round((wall_seconds - self.run_seconds) / wall_seconds, 4),
                "runs": self.runs,
            },
        }
        self.save()
