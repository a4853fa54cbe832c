"""Sessions that change settings of the machine: one at a time, with a guardian and a journal."""

from __future__ import annotations

import fcntl
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.errors import RefusedError
from pagewise.core.signals import postponed
from pagewise.machine.settings.guardian import Guardian
from pagewise.machine.settings.journal import (
    RESTORING,
    SESSION,
    Change,
    Folder,
    HeldError,
    Journal,
    Report,
    folder_path,
    shared_folder,
)

_current: Session | None = None


@dataclass
class Session:
    """What this process may change and has changed."""

    folder: Folder
    locks: list[int]
    journal: Journal
    guardian: Guardian | None = None

    def start_guardian(self) -> None:
        """Before anything is changed. Raises RefusedError."""
        try:
            self.guardian = Guardian(self.folder.path, self.locks[-1])
        except OSError as fault:
            raise RefusedError(
                f"the process that restores settings of the machine cannot be started: {fault}",
                remedy="see that this user may start processes; no setting is changed without it",
            ) from fault

    def end(self, report: Report) -> None:
        """Undoes what is left to undo, and ends the guardian, which tries again what is refused."""
        try:
            self.journal.undo(report)
        finally:
            self.journal.end()
            if self.guardian is not None:
                self.guardian.dismiss()

    def leave(self) -> None:
        """Closes in a child process what only the session may keep open."""
        if self.guardian is not None:
            self.guardian.leave()
        for lock in self.locks:
            os.close(lock)


@dataclass(frozen=True)
class Trace:
    """Settings that are not as they were: of a session that runs, or left behind by one that was killed."""

    changes: tuple[Change, ...]
    by: str
    running: bool


def to_stderr(text: str) -> None:
    """Reports to the user."""
    print(f"pagewise: {text}", file=sys.stderr)


@contextmanager
def session(root: Path = Path("/"), report: Report = to_stderr) -> Iterator[None]:
    """The right to change settings of the machine, which one session at a time has.

    First it restores what a killed session left. Whatever ends this one, what it changed is restored. Inside
    of a session this does nothing. Raises RefusedError, also while another session runs.
    """
    global _current  # noqa: PLW0603 one per process, like its locks
    if _current is not None:
        yield
        return
    with _claimed(root, report) as current:
        try:
            with postponed():
                current.start_guardian()
            _current = current
            yield
        finally:
            _current = None
            current.end(report)


@contextmanager
def kept(root: Path = Path("/"), report: Report = to_stderr) -> Iterator[Journal]:
    """Yields the journal; settings that its `change` sets in the block are as before at the end of the block.

    Outside of a session this begins one. Raises RefusedError.
    """
    with session(root, report):
        assert _current is not None
        journal = _current.journal
        first = len(journal.changes)
        try:
            yield journal
        finally:
            journal.undo(report, first)


def accompany(group: int) -> None:
    """Has a run's process group ended when this process is killed in a session; 0 when the run is over.

    Otherwise it would hold pages of a pool, and run beside whatever is measured next.
    """
    if _current is not None and _current.guardian is not None:
        _current.guardian.accompany(group)


def restore(root: Path = Path("/"), report: Report = to_stderr) -> None:
    """Restores what a killed session left. Raises RefusedError, also while a session runs."""
    with _claimed(root, report) as current:
        current.journal.end()


def traces(root: Path = Path("/")) -> list[Trace]:
    """What sessions have changed and not restored, those of root and of this user. Raises RefusedError."""
    traced = []
    for path in sorted({shared_folder(root), folder_path(root)}):
        try:
            folder = Folder(path)
        except FileNotFoundError:
            continue
        try:
            journal = Journal.load(folder)
            if journal.changes:
                traced.append(Trace(tuple(journal.changes), journal.by, _is_running(folder, journal)))
        finally:
            folder.close()
    return traced


@contextmanager
def _claimed(root: Path, report: Report) -> Iterator[Session]:
    """The locks, with nothing left behind by others."""
    folder, locks = Folder.made(folder_path(root)), []
    try:
        try:
            locks.append(folder.lock(SESSION, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except HeldError as fault:
            raise RefusedError(
                f"another session changes settings of this machine: {Journal.load(folder).by}",
                where=folder.path,
                remedy="wait until it ends",
            ) from fault
        # The guardian of a session that was killed may be at work.
        locks.append(folder.lock(RESTORING))
        journal = Journal.load(folder)
        journal.undo_left(report)
        journal.about = {"pid": os.getpid(), "command": shlex.join(["pagewise", *sys.argv[1:]])}
        journal.begin()
        yield Session(folder, locks, journal)
    finally:
        for lock in locks:
            os.close(lock)
        folder.close()


def _is_running(folder: Folder, journal: Journal) -> bool:
    try:
        os.close(folder.lock(SESSION, fcntl.LOCK_SH | fcntl.LOCK_NB))
    except HeldError:
        return True
    except RefusedError:
        # Only root may open root's lock.
        return Path("/proc", str(journal.about.get("pid"))).exists()
    return False


def _leave_session() -> None:
    global _current  # noqa: PLW0603 as above
    if _current is not None:
        _current.leave()
        _current = None


os.register_at_fork(after_in_child=_leave_session)
