"""Sessions that change settings of a synthetic machine, killed by SIGKILL at random lines of their code.

killed_sessions.py FOLDER COUNT alone|both: prints the number of lines that a session runs and, as JSON, the
settings that were not restored. `both` also kills the guardian, and restores from the journal like `pagewise
doctor --restore`. This process has one thread, so each session can be a fork of it.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "runners"))

from pagewise.machine import settings
from pagewise.machine.settings.journal import RESTORING, Journal, lock, shared_folder
from pagewise.machine.settings.kinds import Msr, Pool, Word
from pagewise.machine.settings.session import keep_journal, restore, session

CODE = str(Path(settings.__file__).parent)
SEED = 17


def machine(root: Path) -> dict[str, Any]:
    """Create a machine's settings in a folder, each with the value that `state` reads."""
    pool = root / "sys/kernel/mm/hugepages/hugepages-2048kB"
    settings = {
        "pool": Pool(pool),
        "switch": Word(root / "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled"),
        "attribute": Word(root / "sys/devices/system/cpu/cpu0/cache/index0/enable"),
        "msr": Msr(root / "dev/cpu/0/msr", 0x1A4, 0b1111),
    }
    files = (pool / "nr_hugepages", *(settings[name].file for name in ("switch", "attribute", "msr")))
    for file, text in zip(files, ("10\n", "[never] madvise\n", "1\n", ""), strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (pool / "free_hugepages").write_text("4\n")
    settings["msr"].write(0x42)
    return settings


def state(settings: dict[str, Any]) -> dict[str, Any]:
    """The values in the machine's files."""
    return {
        "pool": settings["pool"].total(),
        "switch": settings["switch"].get(),
        "attribute": int(settings["attribute"].get()),
        "msr": settings["msr"].read(),
    }


def change_all(root: Path, settings: dict[str, Any]) -> None:
    """Like a comparison: settings for the whole session, and within it others for one run."""
    with session(root), keep_journal(root) as journal:
        journal.change(settings["pool"], "144")
        journal.change(settings["switch"], "madvise")
        journal.change(settings["msr"], "0xf")
        with keep_journal(root) as inner:
            inner.change(settings["attribute"], "0")
            inner.change(settings["pool"], "150")


def forked(work: Callable[[], None]) -> int:
    """Do the work in a fork of this process; returns its status from waitpid."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


def lines_of(work: Callable[[], None], reached: Callable[[int], None]) -> None:
    """Do the work, and call `reached` with the number of each executed line of the settings' code."""
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
    """Kill this process at this point, and before that the guardian, its only child, if requested."""
    if number != point:
        return
    if guardian:
        for child in Path("/proc/thread-self/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def guardian_of(session: int) -> int:
    """The guardian process of a session."""
    for child in Path(f"/proc/{session}/task/{session}/children").read_text().split():
        if b"guardian.py" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise LookupError(session)


def settle(root: Path) -> None:
    """Wait until the guardian has finished."""
    with suppress(FileNotFoundError):
        os.close(lock(shared_folder(root) / RESTORING, fcntl.LOCK_EX))


def left_of(root: Path) -> list[str]:
    """The changes in the journal."""
    return [change.text for change in Journal.load(shared_folder(root)).changes]


def left_by(root: Path, count: int, both: bool) -> list[dict[str, Any]]:
    """The settings left changed after killing `count` sessions at random points."""
    machine_settings = machine(root)
    before = state(machine_settings)
    seen = root / "lines"
    task = partial(change_all, root, machine_settings)
    assert forked(partial(lines_of, task, lambda number: seen.write_text(str(number)))) == 0
    total = int(seen.read_text())
    print(f"{count} of {total} lines")
    left = []
    for point in random.Random(SEED).sample(range(1, total + 1), min(count, total)):
        ended = forked(partial(lines_of, task, partial(kill_at, point, both)))
        if both:
            restore(root)
        settle(root)
        if state(machine_settings) != before or left_of(root) or ended != signal.SIGKILL:
            left.append({"point": point, "state": state(machine_settings), "ended": ended})
        machine(root)
    return left


if __name__ == "__main__":
    left = left_by(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "both")
    print(json.dumps(left))
    sys.exit(1 if left else 0)
