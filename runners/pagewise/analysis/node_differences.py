"""Which nodes are set otherwise than the others, compared as facts. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from pagewise.core.units import bytes_text

# Nodes of one kind differ by what the kernel and the firmware keep of the memory for themselves.
_ALIKE = 0.02
_NOT_TOLD = "not told"


@dataclass(frozen=True)
class Difference:
    """A fact that not all nodes share: the `usual` value and its nodes, and others' by value.

    `usual` is None where no value holds on more than half of the nodes.
    """

    fact: str
    usual: str | None
    others: Mapping[str, tuple[str, ...]]


def host_facts(host: Mapping[str, Any]) -> dict[str, str | float]:
    """What a manifest tells of a host and its settings, by name; text, and bytes of memory as a number."""
    thp = host.get("thp") or {}
    facts = {
        "CPU": host.get("cpu"),
        "microcode": host.get("microcode"),
        "kernel": host.get("kernel"),
        "CPUs online": host.get("cpus"),
        "SMT": _switch(host.get("smt")),
        "NUMA nodes": len(host.get("numa_nodes") or []),
        "memory": float(host["memory_bytes"]) if host.get("memory_bytes") else None,
        "governor": ", ".join(host["governors"]) if host.get("governors") else None,
        "THP": thp.get("enabled"),
        "THP defrag": thp.get("defrag"),
        "THP for this process": _switch(host.get("thp_allowed")),
        "virtual machine": host.get("virtual_machine"),
        "counters (PMU)": _switch(host.get("pmu")),
        "perf_event_paranoid": host.get("perf_event_paranoid"),
    }
    facts |= {f"THP of {size}": told for size, told in (thp.get("sizes") or {}).items()}
    facts |= {f"pool of {bytes_text(pool['page_bytes'])}": pool["total"] for pool in host.get("pools") or ()}
    facts |= {
        f"L{cache['level']} cache": f"{bytes_text(cache['bytes'])}, of {cache['shared_by']} CPUs"
        for cache in host.get("caches") or ()
    }
    return {name: _told(value) for name, value in facts.items()}


def differences(nodes: Mapping[str, Mapping[str, str | float]]) -> list[Difference]:
    """The facts in which nodes differ, those of the fewest nodes first; what a node lacks is `not told`."""
    found = []
    for fact in dict.fromkeys(name for told in nodes.values() for name in told):
        by_node = _texts({node: told.get(fact, _NOT_TOLD) for node, told in nodes.items()})
        counts = Counter(by_node.values()).most_common()
        if len(counts) == 1:
            continue
        usual = counts[0][0] if 2 * counts[0][1] > len(by_node) else None
        others = {
            value: tuple(node for node, told in by_node.items() if told == value)
            for value, _ in counts
            if value != usual
        }
        found.append(Difference(fact, usual, others))
    return sorted(found, key=lambda one: sum(map(len, one.others.values())))


def _texts(by_node: Mapping[str, str | float]) -> dict[str, str]:
    """The values as text; numbers near to the middle one are the middle one."""
    numbers = [value for value in by_node.values() if isinstance(value, float)]
    middle = median(numbers) if numbers else 0.0

    def text(value: str | float) -> str:
        if isinstance(value, str):
            return value
        return bytes_text(middle if abs(value - middle) <= _ALIKE * middle else value)

    return {node: text(value) for node, value in by_node.items()}


def _told(value: Any) -> str | float:
    return _NOT_TOLD if value is None else value if isinstance(value, float) else str(value)


def _switch(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"
