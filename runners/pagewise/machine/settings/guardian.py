"""The guardian: a process that ends a run, removes its files and restores settings when the session dies.

`session` starts this file as a script, with the folder of the journal and a socket whose other end only the
session has. The socket closes when the session ends, by any signal. Then the guardian ends a run that is
still active, which frees its pages, removes its temporary folder, and undoes the changes in the journal. It
holds the lock RESTORING until it ends, so the next session begins after that. A session that changes no
settings has no journal and no lock.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

READY = b"+"
# The first byte of a message: the process groups of a run, or the folder with its files.
_GROUPS, _FOLDER = b"g", b"f"
_NUMBER_BYTES, _LONGEST_MESSAGE = 4, 1 << 13
_MOST_SECONDS_TO_END, _POLL_SECONDS = 2.0, 0.01


class Guardian:
    """The process, as the session sees it."""

    def __init__(self, folder: Path | None = None, lock: int | None = None) -> None:
        """Starts the process and waits until it is ready. Raises OSError.

        folder, lock: of the journal; None: no settings are changed.
        """
        self._socket, child_end = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with child_end:
            self.process = subprocess.Popen(
                # Isolated: neither the caller's environment nor its folder changes the code that this runs.
                [sys.executable, "-ISB", __file__, str(child_end.fileno()), str(folder or "")],
                pass_fds=(child_end.fileno(), *(() if lock is None else (lock,))),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                # Not in the group that Ctrl-C and job control reach.
                start_new_session=True,
            )
        if self._socket.recv(1) != READY:
            self.dismiss()
            raise OSError(f"it ended with exit code {self.process.returncode}")

    def accompany(self, *groups: int) -> None:
        """Sets the process groups that are ended too when the session dies: a run, and a service of it."""
        self._send(_GROUPS + b"".join(group.to_bytes(_NUMBER_BYTES, "little") for group in groups))

    def remove(self, folder: Path | None) -> None:
        """Sets the folder that is removed too when the session dies; None: no folder."""
        self._send(_FOLDER + (b"" if folder is None else os.fsencode(folder)))

    def _send(self, message: bytes) -> None:
        # A guardian that was stopped or killed must not block the session.
        with contextlib.suppress(OSError):
            self._socket.send(message, socket.MSG_DONTWAIT)

    def leave(self) -> None:
        """Closes the session's end of the socket in a child process, which must not keep it open."""
        self._socket.close()

    def dismiss(self) -> None:
        """Ends the process, which first undoes the changes left in the journal; runs and files stay."""
        self.accompany()
        self.remove(None)
        self._socket.close()
        # A stopped process would not end.
        self.process.send_signal(signal.SIGCONT)
        self.process.wait()


def main(descriptor: int, folder: str) -> None:
    """Waits for the end of the session, then ends its run, removes its files and undoes its changes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        # When memory runs short, this process must outlive the session.
        Path("/proc/self/oom_score_adj").write_text("-1000", encoding="ascii")
    from pagewise.core.errors import RefusedError
    from pagewise.machine.settings.journal import Journal

    known = {_GROUPS: b"", _FOLDER: b""}
    with socket.socket(fileno=descriptor) as session:
        # The session may have been killed before.
        with contextlib.suppress(BrokenPipeError):
            session.send(READY)
        while message := session.recv(_LONGEST_MESSAGE):
            known[message[:1]] = message[1:]
    numbers = known[_GROUPS]
    for place in range(0, len(numbers), _NUMBER_BYTES):
        if group := int.from_bytes(numbers[place : place + _NUMBER_BYTES], "little"):
            _end(group)
    if known[_FOLDER]:
        shutil.rmtree(os.fsdecode(known[_FOLDER]), ignore_errors=True)
    if not folder:
        return
    try:
        journal = Journal.load(Path(folder))
        journal.undo_left(_report)
        journal.end()
    except RefusedError as fault:
        _report(f"error: {fault}")


def _end(group: int) -> None:
    """Kills a run, and waits until its memory is free."""
    deadline = time.monotonic() + _MOST_SECONDS_TO_END
    members = {group}
    while (members := _members(members)) and time.monotonic() < deadline:
        for pid in members:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _members(known: set[int]) -> set[int]:
    """The processes of these groups, and what they started, that hold memory: a zombie does not.

    What left the group may be stopped, too, and would stay so.
    """
    parents, living = dict[int, int](), set[int]()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent, group, *_ = file.read_bytes().rpartition(b")")[2].split()
            if state != b"Z":
                pid = int(file.parent.name)
                parents[pid] = int(parent)
                if pid in known or int(group) in known:
                    living.add(pid)
    while started := {pid for pid, parent in parents.items() if parent in living and pid not in living}:
        living |= started
    return living


def _report(text: str) -> None:
    # The dead session's terminal or reader may have closed.
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), f"pagewise: {text}\n".encode())


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    main(int(sys.argv[1]), sys.argv[2])
