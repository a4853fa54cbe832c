"""How data of an older schema is made into the next: a step for each version, in order.

A step takes what is valid by the schema before it and gives what is valid by its own; what was not known then
is said to be unknown, never invented.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Step:
    """The change to version `to`."""

    to: int
    change: Callable[[Mapping[str, Any]], Mapping[str, Any]]


def _manifest_2(old: Mapping[str, Any]) -> Mapping[str, Any]:
    """Results got an id and digests of their programs; what had come in beside became a rule."""
    absent = {"id": None, "started_in": None, "rerun_of": None, "programs": []}
    return {**absent, "aa": 1, "until": None, "breaks": [], "prefetchers": None, **old}


STEPS: dict[str, tuple[Step, ...]] = {"manifest": (Step(2, _manifest_2),)}
