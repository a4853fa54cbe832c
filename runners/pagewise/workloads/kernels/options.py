"""What the user asked a comparison of kernels for."""

from __future__ import annotations

from dataclasses import dataclass

from pagewise.session.options import SessionOptions


@dataclass(frozen=True, kw_only=True)
class KernelOptions(SessionOptions):
    """Which kernels and configurations are measured, and how; see `pagewise compare --help`."""

    environment: str
    kernels: tuple[str, ...]
    configurations: tuple[str, ...]
    sweep: bool
    pages: tuple[str, ...] = ()
    prefetchers: tuple[str, ...] = ()
