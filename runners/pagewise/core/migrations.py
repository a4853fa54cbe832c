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


def newest(name: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Data that is valid by the schema it names, as the current version of that has it."""
    version = int(data["schema"].rpartition("/")[2])
    for step in STEPS.get(name, ()):
        if step.to > version:
            data = {**step.change(data), "schema": f"pagewise.{name}/{step.to}"}
    return data


def _manifest_2(old: Mapping[str, Any]) -> Mapping[str, Any]:
    """Results got an id and digests of their programs; what had come in beside became a rule."""
    kind = next((name for name in ("counters", "program") if name in old), "kernels")
    absent: dict[str, Any] = {"kind": kind, "id": None, "started_in": None, "rerun_of": None, "programs": []}
    return {**absent, "aa": 1, "until": None, "breaks": [], "prefetchers": None, **old}


def _kernel_2(old: Mapping[str, Any]) -> Mapping[str, Any]:
    """A kernel has any number of sweeps."""
    kept = {name: value for name, value in old.items() if name != "sweep"}
    return kept | ({"sweeps": [old["sweep"]]} if "sweep" in old else {})


STEPS: dict[str, tuple[Step, ...]] = {
    "manifest": (Step(2, _manifest_2),),
    "kernel": (Step(2, _kernel_2),),
}
