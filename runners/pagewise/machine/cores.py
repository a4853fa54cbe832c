"""Chooses cores from the tree of a machine: close together, or spread over its parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice, zip_longest

from pagewise.core.errors import SelectionError
from pagewise.machine.topology import Core, Domain, Part, Topology, cores_in


def usable(domain: Domain, allowed: Iterable[int], smt: int) -> Domain:
    """The domain with the allowed CPUs only, at most `smt` of each core."""
    parts: list[Part] = []
    for part in domain.parts:
        if isinstance(part, Core):
            cpus = tuple(cpu for cpu in part.cpus if cpu in allowed)[:smt]
            parts += [Core(cpus)] if cpus else []
        else:
            inner = usable(part, allowed, smt)
            parts += [inner] if inner.parts else []
    return Domain(tuple(parts), domain.holds_nodes)


def size_of(part: Part, size: Callable[[Core], int]) -> int:
    """The sum of the cores' sizes."""
    return sum(map(size, cores_in(part)))


def compact(part: Part, requested: int, size: Callable[[Core], int]) -> list[Core]:
    """Cores of the smallest part of the machine that has enough, and of the fewest parts of that."""
    enough = [inner for inner in _within(part) if size_of(inner, size) >= requested]
    smallest = min(enough, key=lambda inner: size_of(inner, size))
    if isinstance(smallest, Core):
        return [smallest]
    # No part of it has enough: take all of the largest, the last of equals.
    largest = max(reversed(smallest.parts), key=lambda inner: size_of(inner, size))
    left = requested - size_of(largest, size)
    rest = Domain(tuple(inner for inner in smallest.parts if inner is not largest), smallest.holds_nodes)
    return [*cores_in(largest), *(compact(rest, left, size) if left else ())]


def scattered(part: Part, requested: int, size: Callable[[Core], int]) -> list[Core]:
    """Enough cores, taken in rotation from the parts of the machine, and in each part from its parts."""
    taken: list[Core] = []
    for core in _in_rotation(part):
        if sum(map(size, taken)) >= requested:
            break
        taken.append(core)
    return taken


def scattered_ranks(
    topology: Topology, allowed: Collection[int], smt: int, ranks: int, threads: int
) -> Iterator[int]:
    """The CPUs of ranks that go to the NUMA nodes in rotation, rank by rank; `threads` for each.

    smt: hardware threads used of each core. Raises SelectionError if some rank fits into no NUMA node.
    """
    distinct = dict.fromkeys(node.cpus for node in topology.nodes if node.cpus)
    nodes = [usable(topology.machine, cpus & frozenset(allowed), smt) for cpus in distinct]
    nodes = [node for node in nodes if node.parts] or [usable(topology.machine, allowed, smt)]
    room = [size_of(node, _threads_of) // threads for node in nodes]
    if sum(room) < ranks:
        raise SelectionError(
            f"{sum(room)} ranks of {threads} threads fit into the {len(nodes)} NUMA nodes, not {ranks}",
            where="--ranks, --threads",
            remedy="fewer ranks or threads, or --rank-placement compact, whose ranks may span NUMA nodes",
        )
    homes: list[int] = []
    while len(homes) < ranks:
        homes += [number for number, left in enumerate(room) if homes.count(number) < left][
            : ranks - len(homes)
        ]
    chosen = []
    for number, node in enumerate(nodes):
        wanted = homes.count(number) * threads
        chosen.append(iter(cpus_of(node, compact(node, wanted, _threads_of)) if wanted else ()))
    for home in homes:
        yield from islice(chosen[home], threads)


def _threads_of(core: Core) -> int:
    return len(core.cpus)


def cpus_of(part: Part, taken: Sequence[Core]) -> tuple[int, ...]:
    """The CPUs of these cores, in the machine's order."""
    return tuple(cpu for core in cores_in(part) if core in taken for cpu in core.cpus)


def _by_preference(domain: Domain) -> Sequence[Part]:
    """The parts of a domain, the first choice first: the first NUMA node, and in it the last core.

    The first core of a machine handles most interrupts.
    """
    return domain.parts if domain.holds_nodes else domain.parts[::-1]


def _within(part: Part) -> Iterator[Part]:
    """All parts of a part, the smallest first, and then the part."""
    if isinstance(part, Domain):
        for inner in _by_preference(part):
            yield from _within(inner)
    yield part


def _in_rotation(part: Part) -> list[Core]:
    if isinstance(part, Core):
        return [part]
    rotations = zip_longest(*map(_in_rotation, _by_preference(part)))
    return [core for rotation in rotations for core in rotation if core is not None]
