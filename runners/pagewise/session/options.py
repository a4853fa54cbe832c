"""What the user asked a session for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pagewise.machine.placement import Where


@dataclass(frozen=True)
class Options:
    """What the user asked for; see `pagewise compare --help`."""

    environment: str
    modules: Path | None
    kernels: tuple[str, ...]
    configurations: tuple[str, ...]
    rounds: int
    threads: int | None
    reserve: bool
    baseline: str
    sweep: bool
    seed: int
    name: str
    results: Path
    limit: float
    pages: tuple[str, ...] = ()
    set_thp_sizes: bool = False
    prefetchers: tuple[str, ...] = ()
    aa: int = 1
    until: float | None = None
    budget: float = 600.0
    resume: Path | None = None
    where: Where = field(default_factory=Where)
    end_leftovers: bool = False
