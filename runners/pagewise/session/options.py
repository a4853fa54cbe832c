"""The options of a session, whatever it runs: one type per panel of `pagewise compare --help`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

from pagewise.core.page_policy import PagePolicy
from pagewise.core.units import parse_bytes
from pagewise.machine.placement import NOWHERE, Where

#: `auto`: in turns where that is valid, else whole runs one after the other.
Method = Literal["auto", "turns", "runs"]
_Options = TypeVar("_Options", bound="SessionOptions")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How often runs are made, in which order, and how long each may take.

    until: the relative width of intervals to reach within the budget; None: the given number of rounds.
    clear_suffices: whether clear differences need no narrow interval.
    limit: seconds per run. aa: additional runs of each baseline per round. method: whether runs take turns.
    """

    rounds: int = 1
    until: float | None = None
    clear_suffices: bool = False
    budget: float = 600.0
    aa: int = 1
    seed: int = 1
    limit: float = 300.0
    end_leftovers: bool = False
    method: Method = "auto"


@dataclass(frozen=True)
class PoolRequest:
    """Free huge pages to have in a hugetlb pool: a number of them, or bytes to cover.

    node: the NUMA node of the pool; None: shared equally among the nodes of the runs.
    """

    page_bytes: int
    amount: int
    in_bytes: bool = False
    node: int | None = None

    @property
    def pages(self) -> int:
        """How many pages."""
        return -(-self.amount // self.page_bytes) if self.in_bytes else self.amount


@dataclass(frozen=True)
class PagesToPrepare:
    """The huge pages that the user permits to prepare for the session.

    pools, thp: whether pages are reserved and THP sizes switched on as the compared policies need them.
    requests: what is reserved in any case. sizes: policies such as thp:64k that are switched on in any case.
    """

    pools: bool = True
    thp: bool = True
    requests: tuple[PoolRequest, ...] = ()
    sizes: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> PagesToPrepare:
        """Parses `all`, `pools`, `thp`, `2M:512`, `1G:4GiB@0`, `thp:64k`, with commas. Raises ValueError."""
        words = [word.strip().lower() for word in text.split(",")]
        requests, sizes = [], []
        for word in words:
            size, _, rest = word.partition(":")
            match = re.fullmatch(r"([0-9.]+ *(?:[kmgt]i?b)|[1-9]\d{0,9})(?:@(\d{1,4}))?", rest)
            if size == "thp" and rest and PagePolicy(word).size:
                sizes.append(word)
            elif match is not None and (page_bytes := PagePolicy(f"hugetlbfs:{size}").size):
                node = None if match[2] is None else int(match[2])
                requests.append(PoolRequest(page_bytes, parse_bytes(match[1]), not match[1].isdigit(), node))
            elif word not in ("all", "pools", "thp"):
                raise ValueError(f"{word!r} is not one of all, pools, thp, thp:64k, 2M:512, 2M:4GiB, 1G:2@0")
        given = set(words)
        return cls(
            bool({"all", "pools"} & given), bool({"all", "thp"} & given), tuple(requests), tuple(sizes)
        )

    @property
    def provided(self) -> tuple[str, ...]:
        """What programs may be assumed to have then, in the words of pagewise-exec: `thp`, `pool`."""
        return ("thp",) * bool(self.thp or self.sizes) + ("pool",) * bool(self.pools or self.requests)


@dataclass(frozen=True, kw_only=True)
class MachineOptions:
    """Settings of the machine that the session changes and restores.

    prefetchers, clocks: one setting for all runs, or several to compare, each of its parts.
    """

    prepare: PagesToPrepare | None = None
    node_states: tuple[str, ...] = ()
    prefetchers: tuple[tuple[str, ...], ...] = ()
    clocks: tuple[tuple[str, ...], ...] = ()

    @property
    def changes(self) -> bool:
        """Whether a setting is changed."""
        return bool(self.prepare or self.node_states or self.prefetchers or self.clocks)

    @property
    def provided(self) -> tuple[str, ...]:
        """What is provided before runs, in the words of pagewise-exec."""
        return () if self.prepare is None else self.prepare.provided


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """Where the result goes: a new folder below `results`, or that of an interrupted session."""

    results: Path = Path("results")
    name: str = ""
    resume: Path | None = None


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """The options of every session; workloads add what they run.

    environment, modules: where modules are looked up. settings: values of environment variables to compare.
    """

    environment: str | None = None
    modules: Path | None = None
    baseline: str = ""
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    runs: RunOptions = RunOptions()
    where: Where = NOWHERE
    machine: MachineOptions = MachineOptions()
    result: ResultOptions = ResultOptions()

    def with_defaults_of_name(self: _Options, name: str) -> _Options:
        """The options with this name of the result, unless the user named it."""
        return replace(self, result=replace(self.result, name=self.result.name or name))
