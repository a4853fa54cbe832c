"""Looks into /proc while a program runs: the memory of the process and of all its children."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pagewise.workloads.program.smaps import Usage, by_kind, parse, parse_rollup

# What sampling may take of the time, beside what it may take at once at the beginning: a short program is
# to be seen often enough, and a large one (its page tables are walked each time) not to be disturbed.
SHARE, CREDIT_SECONDS = 0.01, 0.01
SHORTEST, LONGEST = 0.003, 1.0
_UNTIL_FOUND = 0.0005
_ALL_FULL, _FULL_EVERY = 16, 4
# Whether this kernel tells a thread's children.
_TOLD = Path("/proc/thread-self/children").exists()


@dataclass(frozen=True)
class Sample:
    """The memory of all processes at a moment (seconds since sampling began).

    `kinds` is None where only the sum was read. `given`: pages of the watched size (multi-size THP) that the
    machine had more than before.
    """

    seconds: float
    total: Usage
    kinds: Mapping[str, Usage] | None
    processes: int
    given: int = 0


@dataclass
class Samples:
    """What was seen of a run, and what the looking cost."""

    samples: list[Sample] = field(default_factory=list)
    cost_seconds: float = 0.0
    wall_seconds: float = 0.0
    denied: bool = False

    @property
    def full(self) -> list[Sample]:
        """Those that tell the kinds."""
        return [one for one in self.samples if one.kinds is not None]


class Sampler(threading.Thread):
    """Samples the descendants of a process until it is stopped.

    page: the page size that is hoped for. interval: seconds between samples, None: as often as costs 1 %.
    launchers: programs that start the one of interest, not looked at. watched: a gauge of pages in /sys.
    cpus: where to run, so as not to be in the way.
    """

    def __init__(
        self,
        page: int,
        interval: float | None,
        launchers: Iterable[Path],
        watched: Path | None = None,
        cpus: Sequence[int] = (),
    ) -> None:
        super().__init__(name="sampler", daemon=True)
        self._page, self._interval, self._cpus = page, interval, cpus
        self._launchers = {str(path.resolve()) for path in launchers}
        self._watched = watched
        self._before = 0 if watched is None else _number(watched)
        self._root = 0
        self._ready, self._over = threading.Event(), threading.Event()
        self.found = Samples()

    def watch(self, root: int) -> None:
        """Begins to look at the descendants of this process."""
        self._root = root
        self._ready.set()
        self.start()

    def finish(self) -> Samples:
        """Stops, and gives what was seen."""
        self._over.set()
        if self.is_alive():
            self.join()
        return self.found

    def run(self) -> None:
        """The thread."""
        if self._cpus:
            os.sched_setaffinity(0, self._cpus)
        began = time.monotonic()
        spent_before = time.thread_time()
        while not self._over.is_set():
            at = time.monotonic()
            sample = self._sample(at - began)
            if sample is not None:
                self.found.samples.append(sample)
            self.found.cost_seconds = time.thread_time() - spent_before
            self._over.wait(self._pause(at, began))
        self.found.wall_seconds = time.monotonic() - began

    def _pause(self, at: float, began: float) -> float:
        now = time.monotonic()
        if not self.found.samples:
            return _UNTIL_FOUND
        if self._interval is not None:
            return max(0.0, self._interval - (now - at))
        # Sleep until what was spent is again within the budget.
        until = (self.found.cost_seconds - CREDIT_SECONDS) / SHARE
        return min(max(SHORTEST, until - (now - began)), LONGEST)

    def _sample(self, seconds: float) -> Sample | None:
        number = len(self.found.samples)
        full = number < _ALL_FULL or number % _FULL_EVERY == 0
        total, processes = Usage(), 0
        kinds: dict[str, Usage] = {}
        for pid in descendants(self._root):
            if _image(pid) in self._launchers:
                continue
            told = self._look(pid, full)
            if told is None:
                continue
            processes += 1
            total += told[0]
            for kind, usage in told[1].items():
                kinds[kind] = kinds.get(kind, Usage()) + usage
        if not processes:
            return None
        given = 0 if self._watched is None else max(0, _number(self._watched) - self._before)
        return Sample(seconds, total, kinds if full else None, processes, given)

    def _look(self, pid: int, full: bool) -> tuple[Usage, dict[str, Usage]] | None:
        """The sum and the sums by kind of a process, None when it has just ended or may not be looked at."""
        if full:
            text = self._text(pid, "smaps")
            mappings = parse(text) if text else []
            if not mappings:
                return None
            kinds = by_kind(mappings, self._page)
            return sum(kinds.values(), Usage()), kinds
        text = self._text(pid, "smaps_rollup") or self._text(pid, "smaps")
        total = parse_rollup(text) if text else None
        return None if total is None else (total, {})

    def _text(self, pid: int, name: str) -> str | None:
        try:
            return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
        except PermissionError:
            self.found.denied = True
        except OSError:
            pass
        return None


def descendants(root: int, tasks: Callable[[int], list[str]] | None = None) -> list[int]:
    """The processes that a process started, and those that they started, and so on."""
    found: list[int] = []
    ahead = [root]
    while ahead:
        pid = ahead.pop()
        children = [int(word) for text in (tasks or _children)(pid) for word in text.split()]
        found += children
        ahead += children
    return found


def _children(pid: int) -> list[str]:
    """What each thread tells of its children (CONFIG_PROC_CHILDREN), else who tells it as its parent."""
    if not _TOLD:
        return [" ".join(_whose_parent(pid))]
    texts = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 a folder of /proc, read a hundred times a second
    except OSError:
        return []
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as stream:  # noqa: PTH123
                texts.append(stream.read())
        except OSError:
            continue
    return texts


def _whose_parent(pid: int) -> Iterator[str]:
    for name in os.listdir("/proc"):  # noqa: PTH208
        try:
            if name.isdigit() and int(_status(name).rpartition(")")[2].split()[1]) == pid:
                yield name
        except (OSError, ValueError, IndexError):
            continue


def _status(pid: str) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")


def _image(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115
    except OSError:
        return ""


def _number(file: Path) -> int:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
