"""What commands make of their options: a placement, the options of kernels, a catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def take_where(chosen: dict[str, Any]) -> Any:
    """The placement; its options except one --threads are removed from `chosen`. Raises SelectionError."""
    from pagewise.machine.placement import Where

    threads = chosen.get("threads")
    if isinstance(threads, tuple):
        # Several numbers of threads are several placements.
        chosen["threads"] = threads[0] if len(threads) == 1 else None
        return Where.read(threads=threads if len(threads) > 1 else (), **_taken(chosen))
    return Where.read(**_taken(chosen))


def _taken(chosen: dict[str, Any]) -> dict[str, Any]:
    names = ("orders", "smt", "cores", "lists", "memory", "ranks", "rank_orders")
    return {name: chosen.pop(name) for name in names if name in chosen}


def kernel_options(chosen: dict[str, Any], **fixed: Any) -> Any:
    """The options of kernels; without a number of threads or cores, one thread runs."""
    from pagewise.core.page_policy import normal_name
    from pagewise.workloads.kernels.choose import KernelOptions

    chosen["pages"] = tuple(dict.fromkeys(map(normal_name, chosen.pop("policies"))))
    if chosen["threads"] is None and not chosen["where"].counts:
        chosen["threads"] = 1
    return KernelOptions(**chosen, **fixed)


def find_catalog(environment: str, modules: Path | None) -> Any:
    """The catalog of an environment, or of another module tree."""
    from pagewise.stack import lmod
    from pagewise.stack.catalog import read_catalog
    from pagewise.stack.paths import module_tree
    from pagewise.stack.setup import setup_facts

    return read_catalog(module_tree(environment, modules), lmod.find_init(setup_facts()))
