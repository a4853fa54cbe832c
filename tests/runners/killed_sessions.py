"""Sessions that change settings of a synthetic machine, killed by SIGKILL at random lines of their code.

killed_sessions.py FOLDER COUNT alone|both: prints how many lines a session runs and, as JSON, what was not
restored. `both` kills the guardian too, and restores from the journal as `pagewise doctor --restore` does.
It is a process with one thread, so each session is a fork of it.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "runners"))

from pagewise.machine import settings
from pagewise.machine.settings.journal import RESTORING, Folder, Journal, shared_folder
from pagewise.machine.settings.kinds import Attribute, Msr, Pool, Switch
from pagewise.machine.settings.session import kept, restore, session

Work = Callable[[Path, dict[str, Any]], None]
CODE = str(Path(settings.__file__).parent)
SEED = 17


def machine(root: Path) -> dict[str, Any]:
    """The settings of a machine in a folder, each with a value; a value is what `state` reads."""
    pool = root / "sys/kernel/mm/hugepages/hugepages-2048kB"
    files = {
        "pool": pool / "nr_hugepages",
        "switch": root / "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
        "attribute": root / "sys/devices/system/cpu/cpu0/cache/index0/enable",
        "msr": root / "dev/cpu/0/msr",
    }
    for file, text in zip(files.values(), ("10\n", "[never] madvise\n", "1\n", ""), strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (pool / "free_hugepages").write_text("4\n")
    register = Msr(files["msr"], 0x1A4, 0b1111)
    register.write(0x42)
    return {
        "pool": Pool(pool),
        "switch": Switch(files["switch"]),
        "attribute": Attribute(files["attribute"], 1),
        "msr": register,
    }


def state(there: dict[str, Any]) -> dict[str, Any]:
    """What the machine's files hold; of a switch the word, since a plain file moves no brackets."""
    return {
        "pool": there["pool"].total(),
        "switch": there["switch"].file.read_text().split()[0].strip("[]"),
        "attribute": there["attribute"].read(),
        "msr": there["msr"].read(),
    }


def change_all(root: Path, there: dict[str, Any]) -> None:
    """Like a comparison: a session, in it settings for its whole length, and in these others for one run."""
    with session(root), kept(root) as journal:
        journal.change(there["pool"], "144")
        journal.change(there["msr"], "0xf")
        with kept(root) as inner:
            inner.change(there["attribute"], "0x0")
            inner.change(there["pool"], "150")


def change_switch(root: Path, there: dict[str, Any]) -> None:
    """The same with a switch, whose file has to look as the kernel's does after each write."""

    class Kernel(Switch):
        def put(self, value: str) -> None:
            self.file.write_text(" ".join(f"[{w}]" if w == value else w for w in ("never", "madvise")) + "\n")

    with kept(root) as journal:
        journal.change(Kernel(there["switch"].file), "madvise")


def forked(work: Callable[[], None]) -> int:
    """How a fork of this process that does the work ends, as waitpid returns it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


def lines_of(work: Callable[[], None], reached: Callable[[int], None]) -> None:
    """Does the work, and calls `reached` with the number of each line of the settings' code."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(CODE):
            return None
        if event == "line":
            count += 1
            reached(count)
        return trace

    sys.settrace(trace)
    work()
    sys.settrace(None)


def kill_at(point: int, guardian: bool, number: int) -> None:
    """Ends this process at this point, and before that the guardian, its only child, where it is to."""
    if number != point:
        return
    if guardian:
        for child in Path("/proc/thread-self/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def guardian_of(session: int) -> int:
    """The process that guards another one."""
    for child in Path(f"/proc/{session}/task/{session}/children").read_text().split():
        if b"guardian.py" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise LookupError(session)


def settle(root: Path) -> None:
    """Waits until the guardian is done."""
    try:
        folder = Folder(shared_folder(root))
    except FileNotFoundError:
        return
    os.close(folder.lock(RESTORING, fcntl.LOCK_EX))
    folder.close()


def left_of(root: Path) -> list[str]:
    """What is in the journal."""
    try:
        return [change.text for change in Journal.load(Folder(shared_folder(root))).changes]
    except FileNotFoundError:
        return []


def left_by(work: Work, root: Path, count: int, both: bool) -> list[dict[str, Any]]:
    """What was left after each of so many kills of sessions that do the work."""
    there = machine(root)
    before = state(there)
    seen = root / "lines"
    whole = partial(work, root, there)
    assert forked(partial(lines_of, whole, lambda number: seen.write_text(str(number)))) == 0
    total = int(seen.read_text())
    left = []
    for point in random.Random(SEED).sample(range(1, total + 1), min(count, total)):
        ended = forked(partial(lines_of, whole, partial(kill_at, point, both)))
        if both:
            restore(root)
        settle(root)
        if state(there) != before or left_of(root) or ended != signal.SIGKILL:
            left.append({"point": point, "state": state(there), "ended": ended})
        machine(root)
    print(f"{work.__name__}: {count} of {total} lines")
    return left


def main(folder: Path, count: int, both: bool) -> int:
    """Prints what was left; the exit code."""
    third = count // 3
    left = left_by(change_all, folder / "all", count - third, both)
    left += left_by(change_switch, folder / "switch", third, both)
    print(json.dumps(left))
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "both"))
