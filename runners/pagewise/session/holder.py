"""Holds memory of the node: `session.node_states` starts this file as a script, and ends it.

    holder.py ORDER [COUNT]

It takes the free blocks of 2^ORDER base pages, the size of a transparent huge page; at most COUNT of them.
It then returns every second base page, and keeps the others locked. No such block is free any more, and with
vm.compact_unevictable_allowed=0 the kernel cannot make one by moving what is kept. It prints `ready` and the
blocks taken. It ends with the process that started it, and is the first to be ended when memory runs short.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
# mlock2(2): locks the pages that are there, and does not fill the holes.
_MLOCK_ONFAULT = 1
# madvise(2): of a part of a huge page, the kernel first splits it. Since Linux 5.4.
_MADV_COLD = 20
# Left in the first pass, so that other programs need not wait for memory: later passes take these blocks.
_MARGIN_BYTES = 32 << 20
_MOST_PASSES = 4


def main(order: int, most: int) -> None:
    """Takes the blocks, reports, and waits for its end."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    page = mmap.PAGESIZE << order
    margin = max(1, _MARGIN_BYTES // page)
    kept, taken = [], 0
    for number in range(_MOST_PASSES):
        count = min(obtainable(order) - (margin if number == 0 else 0), most - taken)
        if count <= 0:
            break
        kept.append(take(count, page))
        taken += count
        fragment(*kept[-1], count, page)
    print("ready", taken, flush=True)
    signal.pause()


def obtainable(order: int) -> int:
    """How many blocks programs would get now."""
    from pagewise.core.node_state import obtainable_blocks, parse_buddyinfo, parse_reserves

    free, reserves = (Path("/proc", name).read_text(encoding="ascii") for name in ("buddyinfo", "zoneinfo"))
    return obtainable_blocks(parse_buddyinfo(free), parse_reserves(reserves), order)


def take(count: int, page: int) -> tuple[mmap.mmap, int]:
    """A mapping with `count` huge pages, each touched once, and where the first one begins in it."""
    memory = mmap.mmap(-1, (count + 1) * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    begin = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % page
    memory.madvise(mmap.MADV_HUGEPAGE, begin, count * page)
    for at in range(begin, begin + count * page, page):
        memory[at] = 1
    return memory, begin


def fragment(memory: mmap.mmap, begin: int, count: int, page: int) -> None:
    """Splits the huge pages of a mapping, returns every second base page, and locks the others."""
    step = mmap.PAGESIZE
    # Else khugepaged could join them again.
    memory.madvise(mmap.MADV_NOHUGEPAGE, begin, count * page)
    # When it splits a huge page, Linux 6.12 frees base pages that contain zeros only.
    memory[begin : begin + count * page : 2 * step] = b"\1" * (count * page // (2 * step))
    for huge in range(begin, begin + count * page, page):
        memory.madvise(_MADV_COLD, huge, step)
        for at in range(huge + step, huge + page, 2 * step):
            memory.madvise(mmap.MADV_DONTNEED, at, step)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory, begin))
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlock2(ctypes.c_void_p(address), ctypes.c_size_t(count * page), _MLOCK_ONFAULT) != 0:
        sys.exit(f"mlock2: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else sys.maxsize)
