"""The changes of a session in a file that outlives it: the file alone suffices to restore the settings.

All sessions of root share one folder (/run/pagewise), because only root may change most settings. Another
user may have the right to switch prefetchers; the sessions of that user have a folder below /tmp.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from pagewise.core.errors import RefusedError
from pagewise.core.files import is_private
from pagewise.core.structure import from_data, to_data
from pagewise.machine.host import read
from pagewise.machine.settings.kinds import Setting

_SHARED = Path("run/pagewise")
BOOT = Path("/proc/sys/kernel/random/boot_id")
#: Held by a session while it runs; no other process inherits it. If it is free, no session runs.
SESSION = "session.lock"
#: Held by a session and by its guardian. If it is free, the guardian has restored what it could.
RESTORING = "restoring.lock"

Warn = Callable[[str], None]


class HeldError(Exception):
    """Another process holds the lock."""


@dataclass(frozen=True)
class Owner:
    """The session that writes a journal."""

    pid: int | None = None
    command: str = "unknown command"

    def __str__(self) -> str:
        """In messages."""
        return f"process {self.pid or 'unknown'}, {self.command}"


@dataclass(frozen=True)
class SettingChange:
    """A setting, its value before the change, and the value that it was observed to have after the change.

    `now` is None until the change is complete: until then the setting may have either value.
    """

    setting: Setting
    before: str
    now: str | None = None

    @property
    def text(self) -> str:
        """The setting and its value before, in messages."""
        return f"{self.setting.place}: {self.before}"

    @cached_property
    def entry(self) -> str:
        """It in the journal's file."""
        return json.dumps(to_data(self))

    def undo(self, report: Warn) -> None:
        """Restores the value before, unless another process has changed it since. Raises RefusedError."""
        try:
            value = self.setting.get()
            if self.now not in (None, value) and value != self.before:
                report(f"not restored: {self.text} before, set to {self.now}, changed by others to {value}")
            elif value != self.before:
                self.setting.put(self.before)
        except (OSError, ValueError) as fault:
            raise RefusedError(
                f"the journal does not name a setting of this machine: {fault}", where=self.setting.place
            ) from fault


@dataclass(frozen=True)
class _Content:
    """The content of a journal's file."""

    schema: Literal["pagewise.journal/1"]
    session: Owner
    changes: tuple[SettingChange, ...]


def lock(file: Path, how: int = fcntl.LOCK_EX) -> int:
    """The descriptor of a lock, which is held until all copies of the descriptor are closed.

    Raises HeldError with LOCK_NB, and RefusedError.
    """
    # Other users must not open it, because they could then hold the lock.
    descriptor = _open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, how)
    except BaseException as fault:
        os.close(descriptor)
        if isinstance(fault, BlockingIOError):
            raise HeldError from fault
        raise
    return descriptor


def _open(file: Path, flags: int, mode: int = 0o644) -> int:
    """A descriptor of a file of a journal's folder. Raises FileNotFoundError and RefusedError.

    Links are refused, and what others own or may write to.
    """
    for place in (file.parent, file):
        if place.is_symlink() or (place.exists() and not is_private(place)):
            raise RefusedError(
                "another user owns this or may write to it, so it is not used",
                where=place,
                remedy="find out who created it, then remove it",
            )
    try:
        return os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, mode)
    except FileNotFoundError:
        raise
    except OSError as fault:
        raise _refusal(file, fault) from fault


def make_folder(folder: Path) -> None:
    """Creates the folder of locks and journal, if it is missing. Raises RefusedError."""
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as fault:
        raise _refusal(folder, fault) from fault


def shared_folder(root: Path = Path("/")) -> Path:
    """The folder of sessions of root."""
    return root / _SHARED


def folder_path(root: Path = Path("/")) -> Path:
    """The folder of sessions of this user. `root` stands for / (tests give another)."""
    if os.geteuid() == 0 or root != Path("/"):
        return shared_folder(root)
    return Path("/tmp", f"pagewise-settings-{os.geteuid()}")


class Journal:
    """The changes of a session that are not undone yet, oldest first, in the folder's file of this boot.

    Settings do not survive a restart, so a journal of an earlier boot is void. For the same reason nothing is
    flushed to the disk: what ends the kernel ends the settings too.
    """

    def __init__(self, folder: Path, owner: Owner = Owner(), changes: Iterable[SettingChange] = ()) -> None:
        self.folder = folder
        self.owner = owner
        self.changes = list(changes)

    @property
    def file(self) -> Path:
        """The file of this boot."""
        return self.folder / f"{read(BOOT) or 'boot'}.json"

    @property
    def is_running(self) -> bool:
        """Whether its session runs."""
        try:
            os.close(lock(self.folder / SESSION, fcntl.LOCK_SH | fcntl.LOCK_NB))
        except HeldError:
            return True
        except RefusedError:
            # Only root may open root's lock.
            return Path("/proc", str(self.owner.pid)).exists()
        return False

    @classmethod
    def load(cls, folder: Path) -> Journal:
        """The journal in this folder, or an empty one. Raises RefusedError."""
        journal = cls(folder)
        try:
            with os.fdopen(_open(journal.file, os.O_RDONLY), encoding="utf-8") as stream:
                # The guardian runs this without third-party packages, so without core.reading.
                content = from_data(_Content, json.load(stream), ignored="null")
        except FileNotFoundError:
            return journal
        except (OSError, ValueError) as fault:
            raise RefusedError(
                f"the journal of changed settings cannot be read: {fault}",
                where=journal.file,
                remedy="restore the settings that it lists by hand, then remove it",
            ) from fault
        return cls(folder, content.session, content.changes)

    def begin(self) -> None:
        """Writes the empty journal and removes those of earlier boots. Raises RefusedError."""
        for file in self.folder.glob("*.json"):
            if file != self.file:
                file.unlink()
        self._write()

    def change(self, setting: Setting, value: str, before: str | None = None) -> None:
        """Writes the current value to the file, then sets the new one. Raises RefusedError.

        before: the value that restores a setting which cannot be read.
        """
        before = setting.get() if before is None else before
        if value == before:
            return
        self.changes.append(SettingChange(setting, before))
        self._write()
        setting.put(value)
        self.changes[-1] = replace(self.changes[-1], now=setting.get())
        self._write()

    def keep(self, settings: Iterable[Setting]) -> None:
        """Restores these at the end, because the kernel may change them with one that is changed next."""
        self.changes += [SettingChange(setting, setting.get()) for setting in settings]
        self._write()

    def undo_left(self, report: Warn) -> None:
        """Undoes and reports the changes that a killed session left. Raises RefusedError."""
        for change in self.changes:
            report(f"restoring {change.text}; it was changed by {self.owner}, which was killed")
        self.undo(report)

    def undo(self, report: Warn, first: int = 0) -> None:
        """Undoes the changes from the last to number `first`; after a refused one, the others follow.

        It can be called again after any interruption. Raises RefusedError that lists the refused changes,
        which stay in the journal.
        """
        faults = []
        for number in reversed(range(first, len(self.changes))):
            try:
                self.changes[number].undo(report)
            except RefusedError as fault:
                faults.append(f"{self.changes[number].text} ({fault.message})")
                continue
            del self.changes[number]
            self._write()
        if faults:
            raise RefusedError(
                "these settings of the machine could not be restored:\n    " + "\n    ".join(faults),
                where=self.file,
                remedy="write these values by hand, then: pagewise doctor --restore; or restart the machine",
            )

    def end(self) -> None:
        """Removes the file, unless changes are left to undo."""
        if not self.changes:
            self.file.unlink(missing_ok=True)

    def _write(self) -> None:
        content = json.dumps(to_data(_Content("pagewise.journal/1", self.owner, ())))
        # Of many CPUs there are many changes, and each is written often.
        entries = ", ".join(change.entry for change in self.changes)
        aside = self.file.with_suffix(".new")
        try:
            with os.fdopen(_open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as stream:
                stream.write(f"{content.removesuffix(']}')}{entries}]}}\n")
            aside.replace(self.file)
        except OSError as fault:
            raise _refusal(self.file, fault) from fault


def _refusal(path: Path, fault: OSError) -> RefusedError:
    return RefusedError(
        f"the journal of changed settings cannot be written: {fault.strerror}",
        where=path,
        remedy="make this place writable: no setting is changed without a journal",
    )
