"""Transparent huge pages: switched on for a comparison when the user asks, or refused to what is started."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.errors import RefusedError
from pagewise.core.page_policy import policy_kind, policy_size
from pagewise.machine.host import read
from pagewise.machine.settings.kinds import Switch
from pagewise.machine.settings.session import kept

_FOLDER = Path("sys/kernel/mm/transparent_hugepage")
_ON = "madvise"
# prctl(2). PR_GET_THP_DISABLE returns 0, or 1 plus the flags that were the third argument of
# PR_SET_THP_DISABLE (Linux 6.18: 2, refused unless advised).
_SET, _GET, _REFUSED = 41, 42, 1


@dataclass(frozen=True)
class Switched:
    """What was done to a switch."""

    file: str
    before: str
    now: str


def switches_needed(policies: Iterable[str], root: Path = Path("/")) -> list[Switch]:
    """The switches that refuse one of these page policies: those of its size, where it has one.

    Since Linux 6.8 each size has its own, which rules unless it says `inherit`. Raises RefusedError for a
    size that this kernel does not have.
    """
    above = Switch(root / _FOLDER / "enabled")
    needed = []
    for policy in sorted(set(policies)):
        if policy_kind(policy) != "thp":
            continue
        size = policy_size(policy) or int(read(root / _FOLDER / "hpage_pmd_size") or 0)
        switch = Switch(root / _FOLDER / f"hugepages-{size // 1024}kB" / "enabled")
        if policy_size(policy) is None and not switch.file.exists():
            switch = above
        word = switch.get()
        if "never" in (word, above.get() if word == "inherit" else word):
            needed.append(switch)
    return needed


@contextmanager
def switched_on(policies: Iterable[str], root: Path = Path("/")) -> Iterator[list[Switched]]:
    """The sizes of these policies are given to programs that ask for them while the block lasts.

    Raises RefusedError when this is not root.
    """
    needed = switches_needed(policies, root)
    if needed and root == Path("/") and os.geteuid() != 0:
        commands = "; ".join(f"echo {_ON} > {switch.file}" for switch in needed)
        raise RefusedError(
            "only root may switch transparent huge pages",
            where="--set-thp-sizes",
            remedy=f"run it as root; or leave it out, and have root do: {commands}",
        )
    with kept(root) as journal:
        before = [switch.get() for switch in needed]
        for switch in needed:
            journal.change(switch, _ON)
        pairs = zip(needed, before, strict=True)
        yield [Switched(str(switch.file), word, switch.get()) for switch, word in pairs]


@contextmanager
def refused(wanted: bool) -> Iterator[None]:
    """Programs started in the block refuse transparent huge pages or accept them, whatever was inherited.

    The setting belongs to this process, is inherited and survives exec. At the end it is what it was before,
    its flags included. Raises RefusedError.
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    # Kernels or emulators without the call return -1: nothing was inherited then.
    before = max(prctl(_GET, 0, 0, 0, 0), 0)
    _set_refused(prctl, _REFUSED if wanted else 0)
    try:
        yield
    finally:
        _set_refused(prctl, before)


def _set_refused(prctl: Callable[..., int], value: int) -> None:
    if prctl(_SET, value & _REFUSED, value & ~_REFUSED, 0, 0) != 0:
        raise RefusedError(
            f"prctl(PR_SET_THP_DISABLE) failed: {os.strerror(ctypes.get_errno())}",
            remedy="allow this call, which a container's seccomp profile may forbid",
        )
