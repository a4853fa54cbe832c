"""States of the node's memory that a comparison asks for: prepared before each run, and undone after it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from pagewise.core.errors import RefusedError
from pagewise.core.node_state import unusable_index
from pagewise.core.units import bytes_text
from pagewise.machine.host import read, size
from pagewise.machine.memory import available
from pagewise.machine.node_state import huge_order, read_state
from pagewise.machine.settings.kinds import Word
from pagewise.machine.settings.session import keep_journal
from pagewise.session.processes import Running, in_session

_HOLDER = Path(__file__).with_name("holder.py")
# Whether compaction may move locked pages.
_UNEVICTABLE = Path("/proc/sys/vm/compact_unevictable_allowed")
_COMPACT = Path("proc/sys/vm/compact_memory")
# A node with less free memory cannot run much next to the holder.
_LEAST_BYTES = 1 << 30
# The unusable free space index from which on memory counts as fragmented.
_AGED, _MOST_TRIES = 0.95, 3
_LONGEST_SECONDS, _LOOK_SECONDS = 300.0, 0.01


def check_states(states: Collection[str], root: Path = Path("/")) -> None:
    """Raises RefusedError unless this user may prepare these states, and the node has the memory for them."""
    if not states:
        return
    if root == Path("/") and os.geteuid() != 0:
        raise RefusedError(
            "only root may change the state of the node's memory",
            where="--vary node-state",
            remedy="run it as root, or compare the node as it is: omit --vary node-state",
        )
    if not (root / _COMPACT).exists():
        raise RefusedError(
            "this kernel cannot compact memory",
            where=root / _COMPACT,
            remedy="use a kernel with CONFIG_COMPACTION, or omit --vary node-state",
        )
    if "aged" in states:
        _check_memory(root)


def _check_memory(root: Path) -> None:
    free, left = size(root / "proc/meminfo", "MemFree") or 0, available(root)
    if huge_order(root) is None:
        raise RefusedError(
            "this kernel has no transparent huge pages",
            where="--vary node-state",
            remedy="use a kernel with THP, or omit the state aged",
        )
    if free < _LEAST_BYTES:
        raise RefusedError(
            f"the state aged needs {bytes_text(_LEAST_BYTES)} of free memory; {bytes_text(free)} are free",
            where="/proc/meminfo",
            remedy="end other programs, or free the page cache as root: "
            "sync; echo 3 > /proc/sys/vm/drop_caches",
        )
    if left is not None and left < free:
        raise RefusedError(
            f"a control group leaves {bytes_text(left)} to this process, and the node has {bytes_text(free)} "
            "of free memory: the rest would stay as it is",
            where="/proc/self/cgroup",
            remedy="run it outside of the control group, or with a higher memory limit",
        )


@dataclass
class NodeStates(AbstractContextManager["NodeStates"]):
    """Prepares states of the node's memory, one after the other; what holds memory ends with the block.

    If this process is killed, the guardian of its session ends the holder and restores the settings. most:
    how many blocks of the THP size the holder may take (default: all free ones).
    """

    scratch: Path
    most: int | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _holder: Running | None = None

    def enter(self, state: str | None) -> None:
        """Prepares a state for the next run; None: the node as it is. Raises RefusedError.

        A node that is fragmented already stays so, unless other programs freed much memory.
        """
        if state == "aged":
            self._age()
            return
        self.leave()
        if state == "fresh":
            compact()

    def _age(self) -> None:
        for _ in range(_MOST_TRIES):
            if self._holder is None:
                # Released in the reverse order; at last, what others allocated in between is compacted.
                self._stack.callback(compact)
                journal = self._stack.enter_context(keep_journal())
                journal.change(Word(_UNEVICTABLE), "0")
                self._holder = self._stack.enter_context(_holder(self.scratch, self.most))
            if self.most is not None or _unusable() >= _AGED:
                return
            self.leave()
        raise _failure("other programs free memory as fast as it is fragmented")

    def check(self) -> None:
        """Raises RefusedError when the kernel ended the holder during a run, because memory ran short."""
        if self._holder is not None and self._holder.process.poll() is not None:
            raise RefusedError(
                "memory ran short during a run, and the kernel ended the process that fragments it",
                where="--vary node-state=aged",
                remedy="compare a smaller case: half of the free memory is left to the program",
            )

    def leave(self) -> None:
        """Releases what is held, and restores the settings."""
        self._holder = None
        self._stack.close()

    def __exit__(self, *error: object) -> None:
        """Releases what is held."""
        self.leave()


def compact(root: Path = Path("/")) -> None:
    """Lets the kernel compact the memory of all NUMA nodes. Raises RefusedError."""
    try:
        (root / _COMPACT).write_text("1\n", encoding="ascii")
    except OSError as fault:
        raise RefusedError(
            f"the memory cannot be compacted: {fault.strerror}",
            where=root / _COMPACT,
            remedy="run as root, not in a container where /proc/sys is read-only",
        ) from fault


@contextmanager
def _holder(scratch: Path, most: int | None) -> Iterator[Running]:
    """The process that holds memory, when it is ready."""
    output_file = scratch / "holder.txt"
    command = [sys.executable, "-ISB", str(_HOLDER), str(huge_order())]
    command += [] if most is None else [str(most)]
    with in_session(command, output_file, os.environ, scratch, nullcontext()) as running:
        words = _answer(running, output_file)
        if words[:1] != ["ready"]:
            raise _failure(" ".join(words) or "no answer")
        yield running


def _unusable() -> float:
    state = read_state()
    index = None if state.huge_order is None else unusable_index(state.free_blocks, state.huge_order)
    return 1.0 if index is None else index


def _answer(running: Running, output_file: Path) -> list[str]:
    """The last line that the holder printed, when it is ready or has ended."""
    deadline = time.monotonic() + _LONGEST_SECONDS
    while time.monotonic() < deadline:
        has_ended = running.process.poll() is not None
        lines = (read(output_file) or "").splitlines()
        if has_ended or (lines and lines[-1].startswith("ready")):
            return lines[-1].split() if lines else []
        time.sleep(_LOOK_SECONDS)
    return []


def _failure(reason: str) -> RefusedError:
    return RefusedError(
        f"the state of the node cannot be prepared: {reason}",
        where="--vary node-state=aged",
        remedy="look at `pagewise doctor` and at the memory of other programs, or omit this state",
    )
