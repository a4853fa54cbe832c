"""How a process's memory is placed on NUMA nodes: the policy that is asked for, set, and read back."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pagewise.core.cpus import list_text
from pagewise.core.errors import RefusedError, SelectionError, SetupError
from pagewise.machine.host import read

# set_mempolicy(2): the modes, and how numa_maps tells those that name no nodes.
_MODES = {"first-touch": 0, "bind": 2, "interleave": 3, "local": 4}
_TOLD = {"first-touch": "default", "local": "local"}
POLICIES = tuple(_MODES)
_MOST_NODES = 1024
_WORD_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)
Nodes: TypeAlias = tuple[int, ...]
_Mask = ctypes.c_ulong * (_MOST_NODES // _WORD_BITS)


@dataclass(frozen=True)
class Memory:
    """A policy: its name as it is asked for, how the kernel tells it in numa_maps, and what sets it.

    `mode` is that of set_mempolicy(2), None to leave the policy as it was found; `nodes` are those it names.
    """

    name: str
    told: str
    mode: int | None = None
    nodes: tuple[int, ...] = ()

    @property
    def binds(self) -> bool:
        """Whether memory is had of these nodes alone."""
        return self.mode == _MODES["bind"]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The calling thread has this policy while the block lasts: what it starts there inherits it.

        Raises RefusedError when the kernel does not let it.
        """
        if self.mode is None:
            yield
            return
        before = _get()
        _set(self.mode, self.nodes)
        try:
            yield
        finally:
            _put(*before)


def asked(text: str, local: Nodes, spread: Nodes, here: Nodes) -> Memory:
    """Reads `first-touch`, `local`, `bind`, `interleave`, `bind:0,2-3`.

    Without a list, bind is to the `local` nodes and interleave over those to `spread` over; `here` are all
    that this process may use. Raises SelectionError.
    """
    policy, colon, listed = text.partition(":")
    if policy not in _MODES or (colon and policy in _TOLD):
        raise SelectionError(
            f"{text!r} is no policy for memory",
            where="--memory",
            remedy="first-touch, local, bind, interleave; with nodes as bind:0 or interleave:0-3",
        )
    if policy in _TOLD:
        return Memory(text, _TOLD[policy], _MODES[policy])
    nodes = tuple(parse_list(listed, "--memory")) if colon else local if policy == "bind" else spread
    missing = sorted(set(nodes) - set(here))
    if missing:
        raise SelectionError(
            f"this process may have no memory of NUMA node {list_text(missing)}",
            where=f"--memory {text}",
            remedy=f"it may have that of {list_text(here)}; `lstopo` shows which node is where",
        )
    if policy == "interleave" and not colon and len(nodes) < 2:
        raise SelectionError(
            "there is one NUMA node here: nothing to interleave over",
            where="--memory interleave",
            remedy="leave it out; to interleave over one node all the same, name it: "
            f"--memory interleave:{list_text(here)}",
        )
    return Memory(text, f"{policy}:{list_text(nodes)}", _MODES[policy], nodes)


def inherited() -> Memory:
    """The policy that this process has, from numactl or a batch system: what it starts has it too."""
    told = policy_of(os.getpid()) or "default"
    return Memory("first-touch" if told == "default" else told, told)


def policy_of(pid: int) -> str | None:
    """A process's policy as the kernel tells it; None for one that is gone, or without NUMA in the kernel.

    numa_maps shows the process's policy for all memory that was given none of its own, as the program's text.
    """
    try:
        with Path(f"/proc/{pid}/numa_maps").open(encoding="utf-8") as file:
            words = file.readline().split()
    except OSError:
        return None
    return words[1] if len(words) > 1 else None


def allowed_nodes(root: Path = Path("/")) -> tuple[int, ...]:
    """The NUMA nodes whose memory this process may have (cpusets)."""
    told = re.search(r"^Mems_allowed_list:\s*(\S+)", read(root / "proc/self/status") or "", re.MULTILINE)
    return tuple(parse_list(told[1], "/proc/self/status")) if told else (0,)


def parse_list(text: str, where: str) -> list[int]:
    """The numbers of `0-3,8` in that order. Raises SelectionError."""
    found: list[int] = []
    for part in text.split(","):
        ends = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part.strip())
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if first > last:
            raise SelectionError(f"{text!r} is no list of numbers", where=where, remedy="write it like 0-3,8")
        found += range(first, last + 1)
    return found


def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libnuma.so.1", use_errno=True)
    except OSError as fault:
        raise SetupError(
            "libnuma is not here, and memory is bound through it",
            where="--memory",
            remedy="apt-get install libnuma1, dnf install numactl-libs",
        ) from fault


def _get() -> tuple[int, ctypes.Array[ctypes.c_ulong]]:
    mode, mask = ctypes.c_int(), _Mask()
    _check(_library().get_mempolicy(ctypes.byref(mode), mask, ctypes.c_ulong(_MOST_NODES + 1), None, 0))
    return mode.value, mask


def _set(mode: int, nodes: Iterable[int]) -> None:
    mask = _Mask()
    for node in nodes:
        mask[node // _WORD_BITS] |= 1 << node % _WORD_BITS
    _put(mode, mask)


def _put(mode: int, mask: ctypes.Array[ctypes.c_ulong]) -> None:
    named = mask if any(mask) else None
    _check(_library().set_mempolicy(mode, named, ctypes.c_ulong(_MOST_NODES + 1 if named else 0)))


def _check(code: int) -> None:
    if code != 0:
        raise RefusedError(
            f"the kernel does not let the memory be placed: {os.strerror(ctypes.get_errno())}",
            where="--memory",
            remedy="in a container allow it: --cap-add SYS_NICE; on a kernel without NUMA leave --memory out",
        )
