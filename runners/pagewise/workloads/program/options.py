"""What the user asked a comparison of a program for."""

from __future__ import annotations

from dataclasses import dataclass

from pagewise.session.options import SessionOptions


@dataclass(frozen=True, kw_only=True)
class ProgramOptions(SessionOptions):
    """Page policies, and how the memory of runs is sampled; see `pagewise compare --help`."""

    policies: tuple[str, ...] = ()
    interval: float | None = None
    enough: float = 0.8
    pool_memory: int | None = None
