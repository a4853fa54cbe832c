"""Sessions that change settings of the machine: one at a time, with a guardian and a journal."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.errors import RefusedError
from pagewise.core.manifest import Switched
from pagewise.core.signals import postpone_signals
from pagewise.core.text import command_text
from pagewise.machine.settings.guardian import Guardian
from pagewise.machine.settings.journal import (
    RESTORING,
    SESSION,
    HeldError,
    Journal,
    Owner,
    Warn,
    folder_path,
    lock,
    make_folder,
    shared_folder,
)
from pagewise.machine.settings.kinds import Word

_current: SettingsSession | None = None
#: The guardians of this process: of changed settings, and of files.
_guardians: list[Guardian] = []


@dataclass
class SettingsSession:
    """The locks and the journal of this process's session."""

    locks: list[int]
    journal: Journal


def to_stderr(text: str) -> None:
    """Prints a message to stderr."""
    print(f"pagewise: {text}", file=sys.stderr)


@contextmanager
def session(root: Path = Path("/"), report: Warn = to_stderr) -> Iterator[None]:
    """Claims the right to change settings of the machine; one session at a time has it.

    First it restores the settings that a killed session left changed. However this session ends, its changes
    are undone. Inside a session this does nothing. Raises RefusedError, also while another session runs.
    """
    global _current  # noqa: PLW0603 one per process, like its locks
    if _current is not None:
        yield
        return
    with _claim(root, report) as current, ExitStack() as stack:
        try:
            with postpone_signals():
                stack.callback(_dismiss, _start_guardian(current.journal.folder, current.locks[-1]))
        except OSError as fault:
            raise RefusedError(
                f"the process that restores settings of the machine cannot be started: {fault}",
                remedy="let this user start processes; no setting is changed without a guardian",
            ) from fault
        try:
            _current = current
            yield
        finally:
            _current = None
            # The guardian, which ends then, tries refused changes again.
            current.journal.undo(report)


@contextmanager
def keep_journal(root: Path = Path("/"), report: Warn = to_stderr) -> Iterator[Journal]:
    """Yields the journal; changes by its `change` are undone at the end of the block.

    Outside a session this begins one. Raises RefusedError.
    """
    with session(root, report):
        assert _current is not None
        journal = _current.journal
        first = len(journal.changes)
        try:
            yield journal
        finally:
            journal.undo(report, first)


def switch(journal: Journal, wanted: Sequence[tuple[Word, str]]) -> list[Switched]:
    """Sets words, and returns each file with its values. Raises RefusedError."""
    before = [word.get() for word, _ in wanted]
    for word, value in wanted:
        journal.change(word, value)
    return [Switched(word.place, old, word.get()) for (word, _), old in zip(wanted, before, strict=True)]


def accompany(*groups: int) -> None:
    """Lets the guardian end these process groups, those of a run, if this process is killed; none: no run.

    A run that survives would hold pages of a pool and disturb the next measurement.
    """
    for guardian in _guardians:
        guardian.accompany(*groups)


@contextmanager
def removed_if_killed(folder: Path) -> Iterator[None]:
    """If this process is killed in the block, a guardian ends its run and removes this temporary folder."""
    guardian = None
    # Without a process more, as under a limit of processes, nothing is lost but this.
    with suppress(OSError), postpone_signals():
        guardian = _start_guardian()
        guardian.remove(folder)
    try:
        yield
    finally:
        if guardian is not None:
            _dismiss(guardian)


def _start_guardian(folder: Path | None = None, lock: int | None = None) -> Guardian:
    """A new guardian. Raises OSError."""
    _guardians.append(Guardian(folder, lock))
    return _guardians[-1]


def _dismiss(guardian: Guardian) -> None:
    _guardians.remove(guardian)
    guardian.dismiss()


def restore(root: Path = Path("/"), report: Warn = to_stderr) -> None:
    """Restores what a killed session left changed. Raises RefusedError, also while a session runs."""
    with _claim(root, report):
        pass


def traces(root: Path = Path("/")) -> list[Journal]:
    """The journals of root's and of this user's sessions with changes that are not undone.

    Their sessions run, or were killed before they restored the settings. Raises RefusedError.
    """
    journals = map(Journal.load, sorted({shared_folder(root), folder_path(root)}))
    return [journal for journal in journals if journal.changes]


@contextmanager
def _claim(root: Path, report: Warn) -> Iterator[SettingsSession]:
    """Takes the locks and undoes the changes of killed sessions."""
    folder, locks = folder_path(root), []
    make_folder(folder)
    try:
        try:
            locks.append(lock(folder / SESSION, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except HeldError as fault:
            raise RefusedError(
                f"another session changes settings of this machine: {Journal.load(folder).owner}",
                where=folder,
                remedy="wait until it ends",
            ) from fault
        # The guardian of a session that was killed may be at work.
        locks.append(lock(folder / RESTORING))
        journal = Journal.load(folder)
        journal.undo_left(report)
        journal.owner = Owner(os.getpid(), command_text(["pagewise", *sys.argv[1:]]))
        journal.begin()
        try:
            yield SettingsSession(locks, journal)
        finally:
            journal.end()
    finally:
        for descriptor in locks:
            os.close(descriptor)


def _leave_session() -> None:
    """Closes, in a child process, the descriptors that only the session may keep open."""
    global _current  # noqa: PLW0603 as above
    while _guardians:
        _guardians.pop().leave()
    for descriptor in _current.locks if _current is not None else ():
        os.close(descriptor)
    _current = None


os.register_at_fork(after_in_child=_leave_session)
