"""What `pagewise-exec` writes: a record per process (--record), and its answer on a policy (--check)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pagewise.core.fields import Natural, OptionalText, Share
from pagewise.core.node_state import ProcessThp
from pagewise.core.structure import Limits


@dataclass(frozen=True)
class KindRow:
    """Memory of a kind. eligible_bytes: aligned and large enough for huge pages."""

    resident_bytes: Natural
    huge_bytes: Natural
    eligible_bytes: Natural


@dataclass(frozen=True)
class ExecRecord:
    """The pages of a process at its end (exec --record), one object per line."""

    schema: Literal["pagewise.exec/1"]
    policy: str
    program: Annotated[str, "the program file of the process"]
    host: str
    process: Annotated[int, Limits(1)]
    rank: Annotated[Natural | None, "the MPI rank, null without one"]
    seconds: Annotated[float, Limits(0)]
    page_size_bytes: Annotated[int, Limits(1), "of the policy's huge pages"]
    met: Annotated[bool | None, "80 % on huge pages, for none and reuse none; null: unobserved"]
    coverage: Annotated[Share, "of the policy's memory on huge pages, of several parts the least"]
    peak_bytes: Natural
    observed_bytes: Annotated[Natural, "in memory at the moment for which the kinds are"]
    kinds: Mapping[Literal["heap", "anonymous", "bss", "data", "stack", "text", "file", "shared"], KindRow]
    unobserved_processes: Annotated[Natural, "with memory, ended by a signal: without a record"] = 0


@dataclass(frozen=True)
class CheckedPart:
    """A part of a page policy. source: what the system must provide. kinds: of memory on huge pages."""

    name: str
    source: Literal["thp", "shared", "pool"] | None
    size_bytes: Annotated[Natural, "the page size that the policy names for this part, or 0"]
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class CheckedSettings:
    """What is set for the program: variables (null: removed), preloaded libraries, their actions.

    removed: the caller's settings that are page policies. is_advised: whether only programs that ask get
    transparent huge pages.
    """

    environment: Mapping[str, OptionalText]
    removed: Mapping[str, str]
    preloads: tuple[str, ...]
    actions: tuple[str, ...]
    is_advised: bool


@dataclass(frozen=True)
class CheckDocument:
    """What a page policy does for a program; after wrong usage only why it is unavailable."""

    schema: Literal["pagewise.check/1"]
    policy: Annotated[OptionalText, "its name, with the parts in their order"]
    available: bool
    reason: Annotated[OptionalText, "why it is unavailable"]
    remedy: OptionalText
    missing: Annotated[Literal["thp", "pool"] | None, "the assumption (--assume) that removes this obstacle"]
    thp: Annotated[ProcessThp, "that it leaves to the program"] | None = None
    page_size_bytes: Annotated[int, Limits(1), "of its huge pages"] | None = None
    thp_size_bytes: Annotated[int, Limits(1), "of the node's transparent huge pages"] | None = None
    parts: tuple[CheckedPart, ...] = ()
    allocator: Annotated[OptionalText, "what serves malloc, null for the C library"] = None
    settings: CheckedSettings | None = None
