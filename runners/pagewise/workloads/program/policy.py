"""The page policies that need no rebuild: their names, and what each is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pagewise.core.errors import SelectionError
from pagewise.core.node_state import ProcessThp
from pagewise.core.page_policy import PagePolicy, size_name
from pagewise.core.suggestions import choose_of
from pagewise.workloads.program.table import PARTS, POOL_PARTS

DEFAULT = ("none", "thp", "malloc", "hugetlbfs", "text", "bss", "reuse", "reuse+malloc")
#: The policies with a module that applies them (production.py).
IN_MODULES = (
    *("none", "thp", "malloc", "hugetlbfs", "text", "bss", "shared"),
    *("reuse", "reuse+thp", "reuse+malloc", "advised", "hugetlbfs-data", "hugetlbfs-shared"),
)


@dataclass(frozen=True)
class Policy:
    """A page policy: its parts in order (`reuse`, `thp`), and the page size that it names, in bytes."""

    parts: tuple[str, ...]
    size: int | None

    @property
    def name(self) -> str:
        """As it is written: `reuse+thp:64k`."""
        return "+".join(self.parts) + ("" if self.size is None else f":{size_name(self.size)}")

    @property
    def targets(self) -> tuple[tuple[str, ...], ...]:
        """For each part that puts memory on huge pages, the kinds of that memory."""
        return tuple(PARTS[part].targets for part in self.parts if PARTS[part].targets)

    @property
    def thp(self) -> ProcessThp:
        """What PR_SET_THP_DISABLE leaves to the program: nothing if no part uses huge pages."""
        if "advised" in self.parts:
            return "advised"
        return "allowed" if self.targets else "refused"

    @property
    def from_pool(self) -> bool:
        """Whether it takes pages of a hugetlb pool."""
        return not POOL_PARTS.isdisjoint(self.parts)

    @property
    def meaning(self) -> str:
        """The meaning of each part."""
        return "; ".join(PARTS[part].meaning for part in self.parts)

    @property
    def module(self) -> str | None:
        """The module that applies it to all programs of a job; None without one."""
        return f"pagewise-pages/{self.name}" if self.name in IN_MODULES else None


def parse_policy(text: str) -> Policy:
    """Reads `thp`, `hugetlbfs:1g`, `reuse+malloc`. Raises SelectionError."""
    sizes = {}
    where = f"--policies {text}"
    words = text.split("+")
    for word in words:
        kind = PagePolicy(word).kind
        if kind not in PARTS:
            known = "malloc, the new name of glibc" if kind == "glibc" else choose_of(kind, PARTS)
            raise SelectionError(
                f"there is no page policy {word!r}",
                where="--policies",
                remedy=f"{known}; joined as in reuse+thp, with a size as in hugetlbfs:1g",
            )
        try:
            sizes[kind] = PagePolicy(word).size
        except ValueError as fault:
            raise SelectionError(
                f"{word!r} names no page size", where="--policies", remedy="write it like thp:64k"
            ) from fault
        if sizes[kind] is not None and not PARTS[kind].is_sized:
            sized = ", ".join(name for name, part in PARTS.items() if part.is_sized)
            raise SelectionError(
                f"{kind} has no size", where=where, remedy=f"write {kind}; these take a size: {sized}"
            )
    if clash := _clash([PagePolicy(word).kind for word in words]):
        raise SelectionError(clash, where=where, remedy="measure them one after the other")
    given = {size for size in sizes.values() if size is not None}
    if len(given) > 1:
        raise SelectionError("a policy has one page size", where=where, remedy="name one size")
    size = next(iter(given), None)
    return Policy(tuple(part for part in PARTS if part in sizes), size)


def _clash(parts: Sequence[str]) -> str | None:
    serving_malloc = [part for part in parts if "heap" in PARTS[part].targets]
    if len(set(parts)) < len(parts):
        return "a part of this policy is named twice"
    if "none" in parts and len(parts) > 1:
        return "none refuses huge pages: it stands alone"
    if len(serving_malloc) > 1:
        return f"malloc cannot be served by {' and '.join(serving_malloc)} at once"
    return None
