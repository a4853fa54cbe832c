"""Errors for users: what failed, where, and what to do; printed without a traceback."""

from __future__ import annotations

import sys


class PagewiseError(Exception):
    """An error with a place and a remedy.

    what: one sentence. where: the file, module or option concerned, or None. remedy: what to do, or None.
    """

    exit_code = 4

    def __init__(self, what: str, *, where: object = None, remedy: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = None if where is None else str(where)
        self.remedy = remedy

    def __str__(self) -> str:
        """The text of the error: sentence, place, remedy."""
        lines = [self.what]
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
