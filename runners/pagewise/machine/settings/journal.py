"""The changes of a session in a file that outlives it: the file alone suffices to restore the settings.

All sessions of root share one folder (/run/pagewise), because only root may change most settings. Another
user may have the right to switch prefetchers; the sessions of that user have a folder below /tmp.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pagewise.core.errors import FormatError, RefusedError
from pagewise.core.structure import structured, unstructured
from pagewise.machine.host import read
from pagewise.machine.settings.kinds import Setting, described, setting_of

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
        return json.dumps(unstructured(_Entry(described(self.setting), self.before, self.now)))

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
                f"the journal names no setting of this machine: {fault}", where=self.setting.place
            ) from fault


@dataclass(frozen=True)
class _Entry:
    setting: dict[str, Any]
    before: str
    now: str | None = None


@dataclass(frozen=True)
class _Content:
    """The content of a journal's file."""

    schema: Literal["pagewise.journal/1"]
    session: Owner
    changes: tuple[_Entry, ...]


class JournalFolder:
    """The folder of locks and journal. Files that others own or may write to and links are refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as fault:
            if fault.errno == errno.ENOENT:
                raise
            raise _refused(path, fault) from fault
        _check_owner(self._descriptor, path)

    @classmethod
    def made(cls, path: Path) -> JournalFolder:
        """The folder, created if it is missing. Raises RefusedError."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o755, exist_ok=True)
        except OSError as fault:
            raise _refused(path, fault) from fault
        return cls(path)

    def close(self) -> None:
        """Closes the folder."""
        os.close(self._descriptor)

    def lock(self, name: str, how: int = fcntl.LOCK_EX) -> int:
        """The descriptor of a lock, which is held until all copies of the descriptor are closed.

        Raises HeldError with LOCK_NB, and RefusedError.
        """
        # Other users must not open it, because they could then hold the lock.
        descriptor = self.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError as fault:
            os.close(descriptor)
            raise HeldError from fault
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def open(self, name: str, flags: int, mode: int = 0o644) -> int:
        """A descriptor of a file. Raises FileNotFoundError and RefusedError."""
        try:
            descriptor = os.open(
                name, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, mode, dir_fd=self._descriptor
            )
        except FileNotFoundError:
            raise
        except OSError as fault:
            raise _refused(self.path / name, fault) from fault
        _check_owner(descriptor, self.path / name)
        return descriptor

    def replace(self, name: str, text: str) -> None:
        """Writes a file in one step. Raises RefusedError."""
        aside = name + ".new"
        try:
            with os.fdopen(self.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as stream:
                stream.write(text)
            os.replace(aside, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except OSError as fault:
            raise _refused(self.path / name, fault) from fault

    def remove(self, name: str) -> None:
        """Removes a file, if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)

    def names(self) -> list[str]:
        """The names of its files."""
        return sorted(os.listdir(self._descriptor))  # noqa: PTH208 by descriptor, not by path


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

    def __init__(
        self, folder: JournalFolder, owner: Owner = Owner(), changes: Iterable[SettingChange] = ()
    ) -> None:
        self.folder = folder
        self.owner = owner
        self.changes = list(changes)

    @staticmethod
    def name() -> str:
        """The file of this boot."""
        return f"{read(BOOT) or 'boot'}.json"

    @classmethod
    def load(cls, folder: JournalFolder) -> Journal:
        """The journal in this folder, or an empty one. Raises RefusedError."""
        try:
            with os.fdopen(folder.open(cls.name(), os.O_RDONLY), encoding="utf-8") as stream:
                # The guardian runs this without third-party packages, so without core.reading.
                content = structured(_Content, json.load(stream), ignored="null")
            changes = [
                SettingChange(setting_of(entry.setting), entry.before, entry.now) for entry in content.changes
            ]
        except FileNotFoundError:
            return cls(folder)
        except (FormatError, OSError, ValueError) as fault:
            raise RefusedError(
                f"the journal of changed settings cannot be read: {fault}",
                where=folder.path / cls.name(),
                remedy="restore the settings that it lists by hand, then remove it",
            ) from fault
        return cls(folder, content.session, changes)

    def begin(self) -> None:
        """Writes the empty journal and removes those of earlier boots. Raises RefusedError."""
        for name in self.folder.names():
            if name.endswith(".json") and name != self.name():
                self.folder.remove(name)
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
                faults.append(f"{self.changes[number].text} ({fault.what})")
                continue
            del self.changes[number]
            self._write()
        if faults:
            raise RefusedError(
                "these settings of the machine could not be restored:\n    " + "\n    ".join(faults),
                where=self.folder.path / self.name(),
                remedy="write these values by hand, then: pagewise doctor --restore; or restart the machine",
            )

    def end(self) -> None:
        """Removes the file, unless changes are left to undo."""
        if not self.changes:
            self.folder.remove(self.name())

    def _write(self) -> None:
        content = json.dumps(unstructured(_Content("pagewise.journal/1", self.owner, ())))
        # Of many CPUs there are many changes, and each is written often.
        entries = ", ".join(change.entry for change in self.changes)
        self.folder.replace(self.name(), f"{content.removesuffix(']}')}{entries}]}}\n")


def _check_owner(descriptor: int, path: Path) -> None:
    """Raises RefusedError, and closes the descriptor, unless only this user or root may write to it."""
    status = os.fstat(descriptor)
    plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    if plain and status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022:
        return
    os.close(descriptor)
    raise RefusedError(
        "another user owns this or may write to it, so it is not used",
        where=path,
        remedy="find out who created it, then remove it",
    )


def _refused(path: Path, fault: OSError) -> RefusedError:
    return RefusedError(
        f"the journal of changed settings cannot be written: {fault.strerror}",
        where=path,
        remedy="make this place writable: no setting is changed without a journal",
    )
