"""The options of a session, whatever it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pagewise.machine.placement import Where


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """The options of every session; workloads add further fields. See `pagewise compare --help`.

    prefetchers, clocks: one setting for all runs, or several to compare, each of its parts.
    """

    environment: str | None
    modules: Path | None
    rounds: int
    threads: int | None
    baseline: str
    seed: int
    name: str
    results: Path
    limit: float
    reserve: bool = False
    set_thp_sizes: bool = False
    aa: int = 1
    until: float | None = None
    budget: float = 600.0
    resume: Path | None = None
    where: Where = field(default_factory=Where)
    end_leftovers: bool = False
    node_states: tuple[str, ...] = ()
    prefetchers: tuple[tuple[str, ...], ...] = ()
    clocks: tuple[tuple[str, ...], ...] = ()
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
