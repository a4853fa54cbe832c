"""Memory policies of NUMA nodes: parsed from options, set, and read back."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pagewise.core.errors import RefusedError, SelectionError, SetupError
from pagewise.core.fields import cpu_list, list_text
from pagewise.machine.host import field

# set_mempolicy(2): the modes, and what numa_maps shows for those without nodes.
_MODES = {"first-touch": 0, "first-thread": 1, "membind": 2, "interleave": 3, "local": 4}
_WITHOUT_NODES = {"first-touch": "default", "local": "local"}
POLICIES = tuple(_MODES)
_MOST_NODES = 1024
_WORD_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)
Nodes: TypeAlias = tuple[int, ...]
_Mask = ctypes.c_ulong * (_MOST_NODES // _WORD_BITS)


@dataclass(frozen=True)
class MemoryPolicy:
    """A memory policy: its name as an option, what the kernel reports for it in numa_maps, and how it is set.

    `mode` is that of set_mempolicy(2), None to keep the inherited policy; `nodes` are those that it names.
    """

    name: str
    reported: str
    mode: int | None = None
    nodes: tuple[int, ...] = ()

    @property
    def binds(self) -> bool:
        """Whether memory can come from these nodes only."""
        return self.mode == _MODES["membind"]

    @contextmanager
    def apply_policy(self) -> Iterator[None]:
        """Sets the policy of the calling thread during the block; processes started in it inherit it.

        Raises RefusedError when the kernel refuses.
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


def parse_policy(text: str, local: Nodes, spread: Nodes, allowed: Nodes) -> MemoryPolicy:
    """Parses `first-touch`, `first-thread`, `local`, `membind`, `interleave`, `membind:0,2-3`.

    local: the nodes of `membind` without a list; the first is that of `first-thread`, as if the first thread
    alone had touched all memory first: other nodes only when that is full. spread: those of `interleave`
    without a list. allowed: all that this process may use. Raises SelectionError.
    """
    policy, colon, listed = text.partition(":")
    without_nodes = (*_WITHOUT_NODES, "first-thread")
    if policy not in _MODES or (colon and policy in without_nodes):
        raise SelectionError(
            f"{text!r} is not a memory policy",
            where="--bind",
            remedy=f"{', '.join(POLICIES)}; the last two with nodes as membind:0 or interleave:0-3",
        )
    if policy in _WITHOUT_NODES:
        return MemoryPolicy(text, _WITHOUT_NODES[policy], _MODES[policy])
    if policy == "first-thread":
        return MemoryPolicy(text, f"prefer:{local[0]}", _MODES[policy], local[:1])
    nodes = tuple(parse_list(listed, "--bind")) if colon else local if policy == "membind" else spread
    missing = sorted(set(nodes) - set(allowed))
    if missing:
        raise SelectionError(
            f"this process may not use memory of NUMA node {list_text(missing)}",
            where=f"--bind {text}",
            remedy=f"it may use that of {list_text(allowed)}; `lstopo` shows where each node is",
        )
    if policy == "interleave" and not colon and len(nodes) < 2:
        raise SelectionError(
            "this node has one NUMA node: there is nothing to interleave over",
            where="--bind interleave",
            remedy=f"omit it, or name the node: --bind interleave:{list_text(allowed)}",
        )
    return MemoryPolicy(text, f"{policy.removeprefix('mem')}:{list_text(nodes)}", _MODES[policy], nodes)


def inherited_policy() -> MemoryPolicy:
    """The policy that this process has, from numactl or a batch system, and that its children inherit."""
    reported = policy_of(os.getpid()) or "default"
    return MemoryPolicy("first-touch" if reported == "default" else reported, reported)


def policy_of(pid: int) -> str | None:
    """A process's policy as the kernel reports it; None if the process ended or the kernel has no NUMA.

    The first line of numa_maps, the program's text, shows the process's policy.
    """
    try:
        with Path(f"/proc/{pid}/numa_maps").open(encoding="utf-8") as file:
            words = file.readline().split()
    except OSError:
        return None
    return words[1] if len(words) > 1 else None


def allowed_nodes(root: Path = Path("/")) -> Nodes:
    """The NUMA nodes whose memory this process may use (cpusets)."""
    listed = field(root / "proc/self/status", "Mems_allowed_list")
    return tuple(cpu_list(listed)) if listed else (0,)


def parse_list(text: str, where: str) -> list[int]:
    """The numbers of `0-3,8` in that order, each once. Raises SelectionError."""
    try:
        if numbers := cpu_list(text.replace(" ", "")):
            return numbers
    except ValueError:
        pass
    raise SelectionError(
        f"{text!r} is not a list of numbers, each of them once", where=where, remedy="write it like 0-3,8"
    )


def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libnuma.so.1", use_errno=True)
    except OSError as fault:
        raise SetupError(
            "libnuma, which sets memory policies, is missing",
            where="--bind",
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
            f"the kernel refused the memory policy: {os.strerror(ctypes.get_errno())}",
            where="--bind",
            remedy="in a container allow it: --cap-add SYS_NICE; on a kernel without NUMA omit it",
        )
