"""Which nodes have other settings than the others, compared as facts. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from pagewise.core.host import Host
from pagewise.core.units import bytes_text

# Nodes of one kind differ in how much memory the kernel and the firmware reserve.
_ALIKE = 0.02
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class NodeDifference:
    """A fact that differs between nodes: the `usual` value, and the nodes with other values by value.

    `usual` is None if no value is that of more than half of the nodes.
    """

    fact: str
    usual: str | None
    others: Mapping[str, tuple[str, ...]]


def host_facts(host: Host) -> dict[str, str | float]:
    """The facts of a host and its settings by name: text, and bytes of memory as a number."""
    thp = host.thp
    facts = {
        "CPU": host.cpu,
        "architecture": host.architecture,
        "microcode": host.microcode,
        "kernel": host.kernel,
        "CPUs online": host.cpus,
        "SMT": _switch(host.smt),
        "NUMA nodes": len(host.numa_nodes),
        "memory": None if host.memory_bytes is None else float(host.memory_bytes),
        "base page size": bytes_text(host.base_page_size_bytes),
        "governor": ", ".join(host.governors) if host.governors else None,
        "scaling driver": ", ".join(host.scaling_drivers) if host.scaling_drivers else None,
        "boost": _switch(host.boost),
        "THP": thp.enabled if thp else None,
        "THP defrag": thp.defrag if thp else None,
        "THP of shared memory": thp.shared if thp else None,
        "THP for this process": _switch(host.thp_allowed),
        "virtual machine": host.virtual_machine,
        "container": _switch(host.container),
        "counters (PMU)": _switch(host.pmu),
        "perf_event_paranoid": host.perf_event_paranoid,
        **{f"THP of {size}": mode for size, mode in (thp.sizes if thp else {}).items()},
        **{f"pool of {bytes_text(pool.page_bytes)}": pool.total for pool in host.pools},
        **{
            f"L{cache.level} cache": f"{bytes_text(cache.bytes)}, shared by {cache.shared_by} CPUs"
            for cache in host.caches
        },
    }
    return {name: _text_of(value) for name, value in facts.items()}


def differences(nodes: Mapping[str, Mapping[str, str | float]]) -> list[NodeDifference]:
    """The facts in which nodes differ, those of the fewest nodes first; unreported ones are `unknown`."""
    items = []
    for fact in dict.fromkeys(name for facts in nodes.values() for name in facts):
        by_node = _texts({node: facts.get(fact, _UNKNOWN) for node, facts in nodes.items()})
        counts = Counter(by_node.values()).most_common()
        if len(counts) == 1:
            continue
        usual = counts[0][0] if 2 * counts[0][1] > len(by_node) else None
        others = {
            value: tuple(node for node, text in by_node.items() if text == value)
            for value, _ in counts
            if value != usual
        }
        items.append(NodeDifference(fact, usual, others))
    return sorted(items, key=lambda item: sum(map(len, item.others.values())))


def _texts(by_node: Mapping[str, str | float]) -> dict[str, str]:
    """The values as text; numbers near the median become the median."""
    numbers = [value for value in by_node.values() if isinstance(value, float)]
    center = median(numbers) if numbers else 0.0

    def text(value: str | float) -> str:
        if isinstance(value, str):
            return value
        return bytes_text(center if abs(value - center) <= _ALIKE * center else value)

    return {node: text(value) for node, value in by_node.items()}


def _text_of(value: str | float | None) -> str | float:
    return _UNKNOWN if value is None else value if isinstance(value, float) else str(value)


def _switch(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"
