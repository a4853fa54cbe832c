"""Errors for users: what failed, where, and what to do; printed without a traceback."""

from __future__ import annotations

import errno
import sys

_MORE_SPACE = ("the disk, or its quota", "free some space")
# Errors of the system that are not of a single file: what they are of, and the remedy.
_CAUSES = {
    errno.E2BIG: ("arguments and environment: ulimit -s", "shorten them"),
    errno.EAGAIN: ("processes: ulimit -u, or pids.max of the control group", "end some, or allow more"),
    errno.EMFILE: ("open files: ulimit -n", "allow more"),
    errno.ENFILE: ("open files of the system: fs.file-max", "close some, or allow more"),
    errno.ENOMEM: ("memory: ulimit -v, or the job's", "allow more"),
    errno.ENOSPC: _MORE_SPACE,
    errno.EDQUOT: _MORE_SPACE,
}
# Of getcwd(2).
_NO_FOLDER = ("the current folder, which was removed", "change to another folder: cd")
_NO_TEMPORARY_FOLDER = "No usable temporary directory"
_LONGEST_NAME = 300


class PagewiseError(Exception):
    """An error with a place and a remedy.

    what: one sentence. where: the file, module or option concerned, or None. remedy: what to do, or None.
    """

    exit_code = 4

    def __init__(self, message: str, *, where: object = None, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = None if where is None else str(where)
        self.remedy = remedy

    def __str__(self) -> str:
        """The text of the error: sentence, place, remedy."""
        lines = [self.message]
        if self.where is not None:
            lines.append(f"  where:  {self.where}")
        if self.remedy is not None:
            lines.append(f"  remedy: {self.remedy}")
        return "\n".join(lines)


class SelectionError(PagewiseError):
    """A name or filter on the command line matches nothing (exit code 2)."""

    exit_code = 2


class SetupError(PagewiseError):
    """A prerequisite of the runner is missing: modules, Lmod, hyperfine (exit code 3)."""

    exit_code = 3


def missing_package(fault: BaseException) -> SetupError | None:
    """The error that shows that a third-party package is missing or unreadable; None for other faults."""
    if not isinstance(fault, ModuleNotFoundError) or (fault.name or "pagewise").split(".")[0] == "pagewise":
        return None
    return SetupError(
        f"the Python package {fault.name} is missing, or you may not read it",
        where=sys.executable,
        remedy="make setup; of a pagewise that Spack installed: spack install pagewise +store +cluster; "
        "in a checkout of another user, ask its owner to let others read it",
    )


class FormatError(PagewiseError):
    """A file of pagewise does not follow its schema (exit code 3)."""

    exit_code = 3


class RefusedError(PagewiseError):
    """The system refused an operation: on a folder, the disk, a hugetlb pool (exit code 4)."""

    exit_code = 4


def refused_by_system(fault: OSError) -> RefusedError | None:
    """The error that the system reports, with its place and what to do; None for an error of pagewise."""
    text, cause = fault.strerror or str(fault), _CAUSES.get(fault.errno or 0)
    if fault.filename is None:
        if text.startswith(_NO_TEMPORARY_FOLDER):
            return RefusedError(
                "temporary files cannot be written",
                where="TMPDIR",
                remedy="set TMPDIR to a folder with free space that this user may write to",
            )
        if cause is None and fault.errno in (errno.ENOENT, errno.ESTALE):
            cause = _NO_FOLDER
        if cause is None:
            return None
        return RefusedError(f"the system refused this: {text}", where=cause[0], remedy=cause[1])
    name = str(fault.filename)
    name = name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + " ..."
    if cause is not None:
        return RefusedError(f"the system refused this: {text}", where=f"{name} ({cause[0]})", remedy=cause[1])
    return RefusedError(
        f"cannot access this file or folder: {text}",
        where=name,
        remedy="name another one, or give this user access to it",
    )


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP: unwind, restore settings, report what was measured.

    Like KeyboardInterrupt it is not an Exception, so that handlers of exceptions do not catch it.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number

    @property
    def exit_code(self) -> int:
        """128 + the signal's number, as in shells."""
        return 128 + self.signal_number
