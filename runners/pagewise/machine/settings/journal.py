"""What a session changed, in a file that outlives it: from it alone the settings can be restored.

The folder is one for the machine (/run/pagewise), like the settings, which root alone may change. Another
user may be allowed to switch prefetchers; such sessions use a folder of this user.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pagewise.core.errors import FormatError, RefusedError
from pagewise.machine.host import read
from pagewise.machine.settings.kinds import Setting, described, setting_of

SCHEMA = "pagewise.journal/1"
_SHARED = Path("run/pagewise")
BOOT = Path("/proc/sys/kernel/random/boot_id")
#: Held by a session while it runs; no other process inherits it. Where it is free, no session runs.
SESSION = "session.lock"
#: Held by a session and by its guardian. Where it is free, the guardian has restored what it could.
RESTORING = "restoring.lock"

Report = Callable[[str], None]


class HeldError(Exception):
    """Another process holds the lock."""


@dataclass(frozen=True)
class Change:
    """A setting, its value before, and the value that it was found to have after the change.

    `now` is None until the change is complete: the setting may then have any value between the two.
    """

    setting: Setting
    before: str
    now: str | None = None

    @property
    def text(self) -> str:
        """The setting and its value before, for people."""
        return f"{self.setting.place}: {self.before}"

    def undo(self, report: Report) -> None:
        """Restores the value before, unless somebody else has set another one since. Raises RefusedError."""
        value = self.setting.get()
        if self.now not in (None, value) and value != self.before:
            report(f"left as it is: {self.text} before, set to {self.now}, changed by others to {value}")
        elif value != self.before:
            self.setting.put(self.before)


class Folder:
    """The folder of locks and journal. What others own or may write to is refused, and no link followed."""

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
    def made(cls, path: Path) -> Folder:
        """The folder, made where it is missing. Raises RefusedError."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o755, exist_ok=True)
        except OSError as fault:
            raise _refused(path, fault) from fault
        return cls(path)

    def close(self) -> None:
        """Ends its use."""
        os.close(self._descriptor)

    def lock(self, name: str, how: int = fcntl.LOCK_EX) -> int:
        """The descriptor of a lock, which is held until all copies of it are closed.

        Raises HeldError with LOCK_NB, and RefusedError.
        """
        # Nobody else may open it: whoever may could hold it.
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
        """Removes a file, if it is there."""
        try:
            os.unlink(name, dir_fd=self._descriptor)
        except FileNotFoundError:
            return

    def names(self) -> list[str]:
        """The files in it."""
        return sorted(os.listdir(self._descriptor))  # noqa: PTH208 not by its path


def shared_folder(root: Path = Path("/")) -> Path:
    """The folder of sessions of root."""
    return root / _SHARED


def folder_path(root: Path = Path("/")) -> Path:
    """The folder of sessions of this user. `root` stands for / (tests give another)."""
    if os.geteuid() == 0 or root != Path("/"):
        return shared_folder(root)
    return Path("/tmp", f"pagewise-settings-{os.geteuid()}")


class Journal:
    """The changes of a session that are not undone yet, oldest first, in the folder's file for this boot.

    Settings do not survive a restart, so a journal of an earlier boot is void. For the same reason nothing is
    flushed to the disk: what ends the kernel ends the settings too.
    """

    def __init__(self, folder: Folder, about: dict[str, Any]) -> None:
        self.folder = folder
        self.about = about
        self.changes: list[Change] = []

    @staticmethod
    def name() -> str:
        """The file of this boot."""
        return f"{read(BOOT) or 'boot'}.json"

    @classmethod
    def load(cls, folder: Folder) -> Journal:
        """The journal that is there, or an empty one. Raises RefusedError."""
        try:
            with os.fdopen(folder.open(cls.name(), os.O_RDONLY), encoding="utf-8") as stream:
                data = json.load(stream)
            journal = cls(folder, dict(data["session"]))
            journal.changes = [
                Change(setting_of(one["setting"]), str(one["before"]), one["now"]) for one in data["changes"]
            ]
            if data["schema"] != SCHEMA:
                raise ValueError(data["schema"])
        except FileNotFoundError:
            return cls(folder, {})
        except (FormatError, OSError, KeyError, TypeError, ValueError) as fault:
            raise RefusedError(
                f"the journal of changed settings cannot be read: {fault}",
                where=folder.path / cls.name(),
                remedy="restore what it lists by hand, then remove it",
            ) from fault
        return journal

    def begin(self) -> None:
        """Writes it while it is empty; those of earlier boots are removed. Raises RefusedError."""
        for name in self.folder.names():
            if name.endswith(".json") and name != self.name():
                self.folder.remove(name)
        self._write()

    def change(self, setting: Setting, value: str, before: str | None = None) -> None:
        """Sets a value, after the one before was written down. Raises RefusedError.

        before: for a setting that cannot be read, the value that restores it.
        """
        before = setting.get() if before is None else before
        if value == before:
            return
        self.changes.append(Change(setting, before))
        self._write()
        setting.put(value)
        self.changes[-1] = replace(self.changes[-1], now=setting.get())
        self._write()

    @property
    def by(self) -> str:
        """The session that writes it, or did."""
        return f"process {self.about.get('pid', 'unknown')}, {self.about.get('command', 'unknown command')}"

    def undo_left(self, report: Report) -> None:
        """Undoes what a session that is dead left, and reports that. Raises RefusedError."""
        for change in self.changes:
            report(f"restoring {change.text}; it was changed by {self.by}, which was killed")
        self.undo(report)

    def undo(self, report: Report, first: int = 0) -> None:
        """Undoes the changes from the last to number `first`; one that is refused does not stop the others.

        It can be called again after any interruption. Raises RefusedError with all that was refused, which
        stays in the journal.
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
        """Removes the file, unless something is left to undo."""
        if not self.changes:
            self.folder.remove(self.name())

    def _write(self) -> None:
        changes = [
            {"setting": described(one.setting), "before": one.before, "now": one.now} for one in self.changes
        ]
        data = {"schema": SCHEMA, "session": self.about, "changes": changes}
        self.folder.replace(self.name(), json.dumps(data) + "\n")


def _check_owner(descriptor: int, path: Path) -> None:
    """Raises RefusedError, and closes it, unless only its owner may write to it: this user or root."""
    status = os.fstat(descriptor)
    plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    if plain and status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022:
        return
    os.close(descriptor)
    raise RefusedError(
        "this is not used: another user owns it or may write to it",
        where=path,
        remedy="look at who made it, then remove it",
    )


def _refused(path: Path, fault: OSError) -> RefusedError:
    return RefusedError(
        f"the journal of changed settings cannot be written: {fault.strerror}",
        where=path,
        remedy="allow writing there: no setting is changed without it",
    )
