"""Transparent huge pages: switched on during a comparison if the user requests it, or refused to programs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pagewise.core.errors import RefusedError
from pagewise.core.manifest import Switched
from pagewise.core.node_state import ProcessThp
from pagewise.core.page_policy import PagePolicy
from pagewise.machine.host import THP, thp_size
from pagewise.machine.settings.kinds import Word
from pagewise.machine.settings.session import keep_journal, switch

# What gives pages to programs that ask: private memory, shared memory.
_ON, _ON_SHARED = "madvise", "advise"
# prctl(2). PR_GET_THP_DISABLE returns 0, or 1 plus the flags that were the third argument of
# PR_SET_THP_DISABLE (Linux 6.18: 2, refused unless advised).
_SET, _GET, _REFUSED, _UNLESS_ADVISED = 41, 42, 1, 2
_prctl = ctypes.CDLL(None, use_errno=True).prctl


def switches_needed(policies: Iterable[str], root: Path = Path("/")) -> list[Word]:
    """The switches that refuse one of these policies: that of its size, if it names one, or of shared memory.

    Since Linux 6.8 each size has a switch, which decides unless it is on `inherit`. Raises RefusedError for a
    size that this kernel does not have.
    """
    for_all = _switch(root / THP / "enabled")
    needed = []
    for policy in map(PagePolicy, sorted(set(policies))):
        if policy.kind == "shared":
            of_shared = _switch(root / THP / "shmem_enabled")
            needed += [of_shared] if of_shared.get() in ("never", "deny") else []
        if policy.kind != "thp":
            continue
        size = policy.size or thp_size(root) or 0
        file = root / THP / f"hugepages-{size // 1024}kB" / "enabled"
        switch = for_all if policy.size is None and not file.exists() else _switch(file)
        word = switch.get()
        if "never" in (word, for_all.get() if word == "inherit" else word):
            needed.append(switch)
    return needed


def _switch(file: Path) -> Word:
    """A switch of this kernel. Raises RefusedError if it has none."""
    if not file.exists():
        raise RefusedError(
            "there are no transparent huge pages of this size",
            where=file,
            remedy="mount /sys if it is missing; else name a size that `pagewise doctor` lists, or omit "
            "--prepare-pages",
        )
    return Word(file)


@contextmanager
def switched_on(policies: Iterable[str], root: Path = Path("/")) -> Iterator[list[Switched]]:
    """Gives programs that ask for them pages of these policies' sizes during the block.

    Raises RefusedError for users other than root.
    """
    needed = switches_needed(policies, root)
    if needed and root == Path("/") and os.geteuid() != 0:
        commands = "; ".join(f"echo {_word(switch)} > {switch.file}" for switch in needed)
        raise RefusedError(
            "only root may switch transparent huge pages",
            where="--prepare-pages",
            remedy=f"run it as root; or omit it, and ask root to run: {commands}",
        )
    with keep_journal(root) as journal:
        yield switch(journal, [(switch, _word(switch)) for switch in needed])


def _word(switch: Word) -> str:
    return _ON_SHARED if switch.file.name == "shmem_enabled" else _ON


def pages_in_use(size: int) -> Path:
    """The file in which the kernel counts the transparent huge pages of this size that are in use."""
    return Path("/") / THP / f"hugepages-{size // 1024}kB" / "stats" / "nr_anon"


@contextmanager
def only_size(size: int | None) -> Iterator[None]:
    """Programs that ask get transparent huge pages of this size and no larger one in the block (root).

    Does nothing without a size. Raises RefusedError.
    """
    if size is None:
        yield
        return
    if os.geteuid() != 0:
        raise RefusedError(
            "only root may switch transparent huge pages",
            where="--prepare-pages",
            remedy="run it as root, or omit it: sizes that are switched on do not need it",
        )
    switches = {
        int(folder.name[10:-2]) * 1024: Word(folder / "enabled")
        for folder in (Path("/") / THP).glob("hugepages-*kB")
        if (folder / "enabled").exists()
    }
    with keep_journal() as journal:
        for of_size, switch in sorted(switches.items()):
            if of_size >= size:
                journal.change(switch, "madvise" if of_size == size else "never")
        yield


@contextmanager
def refused_to_programs() -> Iterator[None]:
    """Refuses transparent huge pages to programs that are started in the block.

    The setting belongs to this process, is inherited and survives exec. At the end of the block it is as
    before, with its flags. Raises RefusedError.
    """
    before = _refusal()
    _set_refusal(_REFUSED)
    try:
        yield
    finally:
        _set_refusal(before)


def process_thp() -> ProcessThp:
    """What PR_SET_THP_DISABLE leaves to this process; systemd sets it for a unit with MemoryTHP=."""
    setting = _refusal()
    if setting == 0:
        return "allowed"
    return "advised" if setting & _UNLESS_ADVISED else "refused"


def _refusal() -> int:
    # Kernels or emulators without the call return -1: then nothing was inherited.
    return int(max(_prctl(_GET, 0, 0, 0, 0), 0))


def _set_refusal(value: int) -> None:
    if _prctl(_SET, value & _REFUSED, value & ~_REFUSED, 0, 0) != 0:
        raise RefusedError(
            f"prctl(PR_SET_THP_DISABLE) failed: {os.strerror(ctypes.get_errno())}",
            remedy="allow this call; a container's seccomp profile may forbid it",
        )
