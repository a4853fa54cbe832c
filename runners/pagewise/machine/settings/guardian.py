"""The guardian: a process beside a session that changes settings, and restores them when the session dies.

It is this file, started by `session` as a script with the folder of the journal and a socket whose other end
only the session has. The socket ends when the session does, by whatever signal; what is in the journal then
is undone. It holds the lock RESTORING until it ends, so the next session begins after that.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

READY = b"+"


class Guardian:
    """The process, as the session sees it."""

    def __init__(self, folder: Path, lock: int) -> None:
        """Starts it and waits until it is ready. Raises OSError."""
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                # Isolated: neither the caller's environment nor its folder decides what code this runs.
                [sys.executable, "-ISB", __file__, str(folder), str(theirs.fileno())],
                pass_fds=(theirs.fileno(), lock),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                # Not in the group that Ctrl-C and job control reach.
                start_new_session=True,
            )
        if self._socket.recv(1) != READY:
            self.dismiss()
            raise OSError(f"it ended with exit code {self.process.returncode}")

    def leave(self) -> None:
        """Closes the session's end in a child process, which must not keep it open."""
        self._socket.close()

    def dismiss(self) -> None:
        """Ends it; what is still in the journal it undoes before."""
        self._socket.close()
        self.process.wait()


def main(folder: Path, descriptor: int) -> None:
    """Waits for the end of the session, then undoes what it left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        # Where memory runs short, this process must outlive the session.
        Path("/proc/self/oom_score_adj").write_text("-1000", encoding="ascii")
    from pagewise.errors import RefusedError
    from pagewise.machine.settings.journal import Folder, Journal

    opened = Folder(folder)
    with socket.socket(fileno=descriptor) as session:
        session.send(READY)
        session.recv(1)
    try:
        journal = Journal.load(opened)
        journal.undo_left(_report)
        journal.end()
    except RefusedError as fault:
        _report(f"error: {fault}")


def _report(text: str) -> None:
    # The terminal or the reader of a dead session may be gone.
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), f"pagewise: {text}\n".encode())


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    main(Path(sys.argv[1]), int(sys.argv[2]))
