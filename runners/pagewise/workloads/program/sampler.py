"""Samples the memory of a program and of all its children from /proc while they run."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pagewise.session.launch import SCRIPT
from pagewise.session.processes import descendants, open_files
from pagewise.session.ranks import WRAPPER, Ranks
from pagewise.workloads.program.smaps import (
    Account,
    Usage,
    add_usages,
    by_kind,
    parse,
    parse_rollup,
    parse_status,
)

# The share of the time that sampling may take, after a credit at the beginning: a short program needs enough
# samples, and a large one (each sample walks its page tables) must not be disturbed.
SHARE, CREDIT_SECONDS = 0.01, 0.01
SHORTEST, LONGEST = 0.003, 1.0
_UNTIL_STARTED = 0.0005
_ALL_FULL, _FULL_EVERY = 16, 4
_PYTHON, _SHELL = (str(Path(name).resolve()) for name in (sys.executable, "/bin/sh"))


@dataclass(frozen=True)
class Sample:
    """The memory of all processes at a moment (seconds since sampling began).

    kinds: None if only the sum was read. counted: increase of the kernel's counter of huge pages (mTHP).
    account: the page tables of all processes, the highest peak so far of a process, and whether one refuses
    transparent huge pages.
    """

    seconds: float
    total: Usage
    kinds: Mapping[str, Usage] | None
    processes: int
    counted: int = 0
    account: Account = field(default_factory=Account)

    def kind(self, name: str) -> Usage:
        """The usage of a kind of memory."""
        return (self.kinds or {}).get(name, Usage())


@dataclass
class Samples:
    """The samples of a run, and what sampling cost."""

    samples: list[Sample] = field(default_factory=list)
    cost_seconds: float = 0.0
    wall_seconds: float = 0.0
    #: Whether the memory of a process could not be read by kind.
    has_hidden: bool = False
    #: By file of the program, the most that a process of it had in memory.
    images: dict[str, int] = field(default_factory=dict)
    #: By thread, the seconds for which it was ready and others had the CPUs; empty unless identified.
    queued: dict[str, float] = field(default_factory=dict)
    #: By pipe, the processes that had it open; empty unless identified.
    pipes: dict[str, set[int]] = field(default_factory=dict)

    def note(self, image: str, resident: int) -> None:
        """Notes that a process of the program of this file had this many bytes in memory."""
        self.images[image] = max(resident, self.images.get(image, 0))

    @property
    def exchanges(self) -> bool:
        """Whether processes had a pipe in common."""
        return any(len(pids) > 1 for pids in self.pipes.values())

    @property
    def full(self) -> list[Sample]:
        """Those with kinds."""
        return [sample for sample in self.samples if sample.kinds is not None]


class Sampler(threading.Thread):
    """Samples the descendants of a process until it is stopped.

    page: the page size asked for. interval: seconds between samples, None: as short as costs 1 %. launchers:
    programs that start the measured one, not sampled. counter: a file of the kernel's count of huge pages.
    cpus: where to sample, so as not to disturb the program. ranks: MPI ranks, sampled instead of the
    descendants, because a launcher such as srun has others start them. identify: look between samples, too,
    which programs run, how long they queue, and which pipes they have: for a run that is not timed.
    """

    def __init__(
        self,
        page: int,
        interval: float | None,
        launchers: Iterable[Path],
        counter: Path | None = None,
        cpus: Sequence[int] = (),
        *,
        ranks: Ranks | None = None,
        identify: bool = False,
    ) -> None:
        super().__init__(name="sampler", daemon=True)
        self._page, self._interval, self._cpus = page, interval, cpus
        self._launchers = {str(path.resolve()) for path in launchers}
        self._counter = counter
        self._before = self._count()
        self._root, self._itself = 0, list[int]()
        self._over = threading.Event()
        self._samples = Samples()
        self._ranks, self._identify = ranks, identify
        #: The samples of each MPI rank; their cost is in those of all.
        self.by_rank: dict[int, Samples] = {}

    def watch(self, root: int, *, itself: bool = False) -> None:
        """Starts to sample the descendants of this process, and the process itself if asked for."""
        self._root, self._itself = root, [root] if itself else []
        self.start()

    @contextmanager
    def watching(self, root: int) -> Iterator[None]:
        """Samples this process and its descendants in the block."""
        self.watch(root, itself=True)
        try:
            yield
        finally:
            self.finish()

    def finish(self) -> Samples:
        """Stops, and returns the samples."""
        self._over.set()
        if self.is_alive():
            self.join()
        for samples in self.by_rank.values():
            samples.wall_seconds = self._samples.wall_seconds
        return self._samples

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
                self._samples.samples.append(sample)
            self._samples.cost_seconds = time.thread_time() - spent_before
            self._rest(self._pause(at, began))
        self._samples.wall_seconds = time.monotonic() - began

    def _rest(self, seconds: float) -> None:
        until, step = time.monotonic() + seconds, SHORTEST if self._identify else seconds
        while not self._over.wait(min(step, seconds)) and (seconds := until - time.monotonic()) > 0:
            for pids in self._processes().values():
                list(self._running(pids))

    def _pause(self, at: float, began: float) -> float:
        now = time.monotonic()
        if not self._samples.samples:
            return _UNTIL_STARTED
        if self._interval is not None:
            return max(0.0, self._interval - (now - at))
        # Sleep until the time spent is within the budget again.
        until = (self._samples.cost_seconds - CREDIT_SECONDS) / SHARE
        return min(max(SHORTEST, until - (now - began)), LONGEST)

    def _sample(self, seconds: float) -> Sample | None:
        number = len(self._samples.samples)
        full = number < _ALL_FULL or number % _FULL_EVERY == 0
        observations = {rank: self._observe(pids, full) for rank, pids in self._processes().items()}
        for rank, of_rank in observations.items():
            if rank is not None and (sample := self._sum(seconds, of_rank, full)) is not None:
                self.by_rank.setdefault(rank, Samples()).samples.append(sample)
        return self._sum(
            seconds, [observation for of_rank in observations.values() for observation in of_rank], full
        )

    def _processes(self) -> Mapping[int | None, Sequence[int]]:
        """The processes by MPI rank; without ranks by None."""
        if self._ranks is None:
            return {None: [*self._itself, *descendants(self._root)]}
        return {rank: [pid, *descendants(pid)] for rank, pid in self._ranks.processes().items()}

    def _running(self, pids: Iterable[int]) -> Iterator[tuple[int, str]]:
        """These processes without launchers, with the file of the program of each, empty if unknown."""
        for pid in pids:
            image = _image(pid)
            if not self._is_launcher(pid, image):
                if self._identify:
                    self._samples.queued |= _queue_seconds(pid)
                    for pipe in (name for name in open_files(pid) if name.startswith("pipe:")):
                        self._samples.pipes.setdefault(pipe, set()).add(pid)
                yield pid, image

    def _observe(self, pids: Iterable[int], full: bool) -> list[Sample]:
        observations = []
        for pid, image in self._running(pids):
            if (observation := self._observe_process(pid, full)) is not None:
                observations.append(observation)
                # It may have executed another program since it was found.
                if program := _image(pid) or image:
                    self._samples.note(program, observation.total.resident)
        return observations

    def _sum(self, seconds: float, observations: Sequence[Sample], full: bool) -> Sample | None:
        if not observations:
            return None
        sharing = sum(observation.total.shared_pool > 0 for observation in observations)
        total = sum((observation.total for observation in observations), Usage()).shared_by(sharing)
        kinds = add_usages(observation.kinds or {} for observation in observations) if full else None
        if kinds is not None:
            kinds = {kind: usage.shared_by(sharing) for kind, usage in kinds.items()}
        accounts = [observation.account for observation in observations]
        account = Account(
            high_water=max(each.high_water for each in accounts),
            page_tables=sum(each.page_tables for each in accounts),
            refuses_thp=any(each.refuses_thp for each in accounts),
        )
        return Sample(seconds, total, kinds, len(observations), max(0, self._count() - self._before), account)

    def _is_launcher(self, pid: int, image: str) -> bool:
        if image in self._launchers:
            return True
        # A shell starts the run, Python a rank; they may also be the program.
        words = _text(pid, "cmdline").split("\0") if image in (_PYTHON, _SHELL) else []
        return (self._ranks is not None and WRAPPER in words) or any(
            word.endswith(f"/{SCRIPT}") for word in words
        )

    def _observe_process(self, pid: int, full: bool) -> Sample | None:
        """What is seen of a process; None if it has just ended or may not be read."""
        if full:
            kinds = by_kind(parse(_text(pid, "smaps")), self._page)
            total = sum(kinds.values(), Usage()) if kinds else None
        else:
            kinds, total = {}, parse_rollup(_text(pid, "smaps_rollup") or _text(pid, "smaps"))
        account = parse_status(_text(pid, "status"))
        if total is None and account.resident:
            # The memory of a program with other rights is hidden, except its size.
            self._samples.has_hidden, total = True, Usage(account.resident)
        return None if total is None else Sample(0.0, total, kinds, 1, account=account)

    def _count(self) -> int:
        try:
            return 0 if self._counter is None else int(self._counter.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0


def _text(pid: int, name: str) -> str:
    """A file of a process; empty if it has ended or the file may not be read."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _queue_seconds(pid: int) -> dict[str, float]:
    """By thread of a process, the seconds in queues of CPUs; none if the kernel does not count them."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return {}
    fields = {thread: _text(pid, f"task/{thread}/schedstat").split() for thread in threads}
    return {thread: 1e-9 * int(of_thread[1]) for thread, of_thread in fields.items() if of_thread}


def _image(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115
    except OSError:
        return ""
