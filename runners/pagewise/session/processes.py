"""Starts the program of a run, and ends what it started: stopped, deaf to signals, or detached from it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pagewise.core.reading import read_end
from pagewise.core.record import Record
from pagewise.core.record_parts import LeftProcess
from pagewise.core.signals import postpone_signals, shell_code
from pagewise.core.units import count_text
from pagewise.machine.settings.session import accompany

GRACE_SECONDS = 2.0
#: The standard input of programs that get none.
NOTHING = Path(os.devnull)
# A helper of the run that ends by itself just after it is not left behind.
_SETTLING_SECONDS, _LOOK_SECONDS = 0.2, 0.01
_SET_SUBREAPER, _GET_SUBREAPER = 36, 37  # prctl(2)
_LONGEST_COMMAND, _LONGEST_OUTPUT = 200, 10_000
# Whether this kernel lists a thread's children (CONFIG_PROC_CHILDREN).
_LISTS_CHILDREN = Path("/proc/thread-self/children").exists()
#: Processes that runs left behind and that were not ended: they are reaped when they end.
_left: set[int] = set()
#: The groups of the programs that run now: a service, and what loads it.
_groups: list[int] = []


@dataclass
class Running:
    """The program of a run. `left` is known when the run's block is over.

    others: children of this process that are not of the run. began, elapsed: when it was started by the
    monotonic clock, and how long it ran, in seconds; known when it was waited for.
    """

    process: subprocess.Popen[bytes]
    began: float
    others: frozenset[int] = frozenset()
    is_ended_by_us: bool = False
    elapsed: float = 0.0
    left: list[LeftProcess] = field(default_factory=list)

    @property
    def pid(self) -> int:
        """The number of its process, and of its group."""
        return self.process.pid

    @property
    def left_behind(self) -> tuple[LeftProcess, ...] | None:
        """For the `run` of a record; None when nothing was left."""
        return tuple(self.left) or None

    @property
    def exit_code(self) -> int:
        """Its exit code, as a shell reports it; it is over."""
        return shell_code(self.process.returncode)

    def wait(self, limit: float) -> bool:
        """Waits until the run is over, ends it after `limit` seconds; whether it was too long."""
        # A thread and a plain wait: subprocess's own timeout polls, and would add up to 50 ms to every run.
        over = threading.Event()
        thread = threading.Thread(target=self._end_after, args=(limit, over), daemon=True)
        thread.start()
        try:
            self.process.wait()
        finally:
            over.set()
            self.elapsed = time.monotonic() - self.began
        return self.is_ended_by_us

    def _end_after(self, limit: float, over: threading.Event) -> None:
        if over.wait(limit):
            return
        self.is_ended_by_us = True
        self.send(signal.SIGTERM)
        if not over.wait(GRACE_SECONDS):
            self.send(signal.SIGKILL)

    def end(self) -> None:
        """Ends what is left of the run's process group, politely first, and waits for it."""
        if self.process.poll() is None:
            self.is_ended_by_us = True
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self._is_there():
                return
            self.send(number)
            deadline = time.monotonic() + GRACE_SECONDS
            while self._is_there() and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)

    def _is_there(self) -> bool:
        self.process.poll()
        _reap(_children() - self.others - {self.pid})
        return self.send(0)

    def send(self, number: int) -> bool:
        """Sends a signal (0: none) to the run's process group; whether there still is one."""
        return _send(os.killpg, self.pid, number)


@contextmanager
def in_session(
    arguments: Sequence[str],
    output_file: Path,
    environment: Mapping[str, str],
    folder: Path,
    within: AbstractContextManager[Any],
    *,
    end_leftovers: bool = False,
    given: Path = NOTHING,
) -> Iterator[Running]:
    """A program that runs, at the longest until the block is left; then what is left of its group is ended.

    It runs in a separate session: Ctrl-C at the terminal reaches only us, and we end the group. It is started
    `within` a context, whose settings it inherits. Its input is the file `given`, its output goes to the file
    `output_file`. Processes that left its group are reported in `left`, and ended with `end_leftovers`, or
    when the run itself was ended by us. Raises OSError.
    """
    running: Running | None = None
    with _subreaper():
        others = frozenset(_children())
        try:
            # An interrupt between its start and our knowing of it would leave it running.
            with postpone_signals(), within, given.open("rb") as entered, output_file.open("wb") as output:
                began = time.monotonic()
                running = Running(
                    subprocess.Popen(
                        arguments,
                        env=environment,
                        cwd=folder,
                        stdin=entered,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    ),
                    began,
                    others,
                )
                _groups.append(running.pid)
                accompany(*_groups)
            yield running
        finally:
            if running is not None:
                with postpone_signals():
                    running.end()
                    _groups.remove(running.pid)
                    accompany(*_groups)
                    ending = end_leftovers or running.is_ended_by_us
                    running.left = _leftovers(others | {running.pid}, ending)


@dataclass
class Shell(AbstractContextManager["Shell"]):
    """Runs shell commands around a run, in its folder, while the block is open.

    What `run` starts may last until the block is left; it then ends as what a run leaves behind, and `left`
    lists it. scratch: a folder for files. end_leftovers: as in `in_session`.
    """

    folder: Path
    environment: Mapping[str, str]
    scratch: Path
    end_leftovers: bool = False
    left: list[LeftProcess] = field(default_factory=list)
    _commands: list[Running] = field(default_factory=list)
    _open: ExitStack = field(default_factory=ExitStack)

    def __exit__(self, *error: object) -> None:
        """Ends what is left of the commands."""
        self._open.close()
        self.left += (process for command in self._commands for process in command.left)

    def run(self, command: str, limit: float) -> tuple[int | None, str]:
        """The exit code of a command, None if it took over `limit` seconds; and the end of its output."""
        # What an earlier command started may still write to the file of that command.
        output_file = self.scratch / f"shell-output-{len(self._commands)}.txt"
        self._commands.append(self._open.enter_context(self._start(command, output_file, NOTHING)))
        return _ending(self._commands[-1], output_file, limit)

    def run_alone(self, command: str, limit: float, text: str = "") -> tuple[int | None, str]:
        """The same of a command that reads a text and leaves nothing running: a check, a question."""
        given, output_file = self.scratch / "shell-input.txt", self.scratch / "shell-output.txt"
        given.write_text(text, encoding="utf-8", errors="surrogateescape")
        with self._start(command, output_file, given) as running:
            ending = _ending(running, output_file, limit)
        self.left += running.left
        return ending

    def _start(self, command: str, output_file: Path, given: Path) -> AbstractContextManager[Running]:
        words, ends = ["/bin/sh", "-c", command], self.end_leftovers
        return in_session(
            words, output_file, self.environment, self.folder, nullcontext(), end_leftovers=ends, given=given
        )


def _ending(running: Running, output_file: Path, limit: float) -> tuple[int | None, str]:
    is_late = running.wait(limit)
    return None if is_late else running.process.returncode, read_end(output_file, _LONGEST_OUTPUT)


def left_by(records: Iterable[Record]) -> list[LeftProcess]:
    """What the runs of these records left behind; several records of a run have the same."""
    runs = (record.run for record in records if record.run is not None)
    return list(dict.fromkeys(process for run in runs for process in run.left_behind or ()))


def left_text(left: Sequence[LeftProcess]) -> str | None:
    """What runs left behind and what to do about it in a sentence, None when nothing."""
    if not left:
        return None
    commands = ", ".join(dict.fromkeys(process.command for process in left))
    text = f"Runs left {count_text(len(left), 'process', 'processes')} behind ({commands})"
    if all(process.ended for process in left):
        return f"{text}; they were ended after each run."
    return f"{text}, still running; they will disturb later runs. Use --end-leftovers."


def _leftovers(others: frozenset[int], ending: bool) -> list[LeftProcess]:
    """The processes that came to this one from a run that is over; ended if asked for."""
    _reap(_left)
    deadline = time.monotonic() + _SETTLING_SECONDS
    while (living := _living(_children() - others)) and not ending and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
    if not ending:
        _left.update(living)
        return [LeftProcess(pid, command, False) for pid, command in living.items()]
    seen = dict(living)
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + GRACE_SECONDS
        asked: set[int] = set()
        while (living := _living(_children() - others)) and time.monotonic() < deadline:
            # The children of one that ended come to this process. One that ends has lost its command.
            seen = living | seen
            for pid in living.keys() - asked:
                _send(os.kill, pid, number)
            asked |= living.keys()
            time.sleep(_LOOK_SECONDS)
    _left.update(living)
    return [LeftProcess(pid, command, pid not in living) for pid, command in seen.items()]


def _send(kill: Callable[[int, int], None], pid: int, number: int) -> bool:
    """Sends a signal to a process or group; whether it exists. It may be another user's."""
    try:
        kill(pid, number)
        if number == signal.SIGTERM:
            # What is stopped acts on no other signal but SIGKILL.
            kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


@contextmanager
def _subreaper() -> Iterator[None]:
    """Processes whose parents end become children of this one in the block, not of init: they can be seen."""
    library = ctypes.CDLL(None, use_errno=True)
    before = ctypes.c_int(0)
    library.prctl(_GET_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    library.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        library.prctl(_SET_SUBREAPER, before.value, 0, 0, 0)


def descendants(root: int) -> list[int]:
    """The processes that a process started, those that they started, and so on."""
    started: list[int] = []
    remaining = [root]
    while remaining:
        children = _children(remaining.pop())
        started += children
        remaining += children
    return started


def _children(pid: int | None = None) -> set[int]:
    """The children of a process (default: this one) and its threads, ended ones too."""
    pid = pid or os.getpid()
    if not _LISTS_CHILDREN:
        return set(_with_parent(pid))
    children: set[int] = set()
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 read a hundred times a second
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as stream:  # noqa: PTH123
                children.update(map(int, stream.read().split()))
    return children


def _with_parent(parent: int) -> Iterator[int]:
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(file.read_bytes().rpartition(b")")[2].split()[1]) == parent:
                yield int(file.parent.name)


def open_files(pid: int) -> set[str]:
    """What a process has open, as the kernel names it: a path, `pipe:[7]`, `socket:[8]`."""
    names = set()
    with suppress(OSError):
        for descriptor in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 read for all processes at once
            with suppress(OSError):
                names.add(os.readlink(f"/proc/{pid}/fd/{descriptor}"))  # noqa: PTH115
    return names


def state_of(pid: int) -> str:
    """The state of a process as a letter (proc_pid_stat(5)); t: stopped by its debugger. Raises OSError."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]


def _living(pids: Iterable[int]) -> dict[int, str]:
    """Those that still run, with their commands; others are reaped."""
    _reap(set(pids))
    living = {}
    for pid in pids:
        with suppress(OSError):
            state = state_of(pid)
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            name = Path(f"/proc/{pid}/comm").read_bytes().decode(errors="replace").strip()
            if state != "Z":
                living[pid] = (" ".join(words).strip() or name)[:_LONGEST_COMMAND]
    return living


def _reap(pids: set[int]) -> None:
    """Takes note of the end of those that have ended, and forgets them."""
    for pid in tuple(pids):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended = pid
        if ended:
            pids.discard(pid)
