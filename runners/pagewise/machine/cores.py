"""Chooses cores from the tree of a machine: close together, or spread over its parts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, zip_longest

from pagewise.core.errors import SelectionError
from pagewise.machine.topology import Core, Domain, Part, Topology, cores_in


def usable(domain: Domain, allowed: Collection[int], smt: int) -> Domain:
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


def size_of(part: Part, *, by_core: bool = False) -> int:
    """The number of its CPUs, or of its cores."""
    return _size(cores_in(part), by_core)


def cpus_of(part: Part, taken: Sequence[Core]) -> tuple[int, ...]:
    """The CPUs of these cores, in the machine's order."""
    return tuple(cpu for core in cores_in(part) if core in taken for cpu in core.cpus)


def close(part: Part, requested: int, *, by_core: bool = False) -> list[Core]:
    """Cores of the smallest part of the machine that has enough, and of the fewest parts of that."""
    enough = [inner for inner in _within(part) if size_of(inner, by_core=by_core) >= requested]
    smallest = min(enough, key=lambda inner: size_of(inner, by_core=by_core))
    if isinstance(smallest, Core):
        return [smallest]
    # No part of it has enough: take all of the largest, the last of equals.
    largest = max(reversed(smallest.parts), key=lambda inner: size_of(inner, by_core=by_core))
    left = requested - size_of(largest, by_core=by_core)
    rest = Domain(tuple(inner for inner in smallest.parts if inner is not largest), smallest.holds_nodes)
    return [*cores_in(largest), *(close(rest, left, by_core=by_core) if left else ())]


def spread(part: Part, requested: int, *, by_core: bool = False) -> list[Core]:
    """Enough cores, taken in rotation from the parts of the machine, and in each part from its parts."""
    taken: list[Core] = []
    for core in _in_rotation(part):
        if _size(taken, by_core) >= requested:
            break
        taken.append(core)
    return taken


def spread_ranks(topology: Topology, domain: Domain, ranks: int, threads: int) -> Iterator[int]:
    """The CPUs of ranks that go to the NUMA nodes in rotation, rank by rank; `threads` for each.

    domain: the usable part of the machine. Raises SelectionError if some rank fits into no NUMA node.
    """
    every = frozenset(cpu for core in cores_in(domain) for cpu in core.cpus)
    distinct = dict.fromkeys(node.cpus & every for node in topology.nodes)
    nodes = [usable(domain, cpus, len(cpus)) for cpus in distinct if cpus] or [domain]
    room = [size_of(node) // threads for node in nodes]
    if sum(room) < ranks:
        raise SelectionError(
            f"{sum(room)} ranks of {threads} threads fit into the {len(nodes)} NUMA nodes, not {ranks}",
            where="--ranks, --threads",
            remedy="fewer ranks or threads, or --bind close, whose ranks may span NUMA nodes",
        )
    turns = ((turn, number) for turn in range(max(room)) for number in range(len(nodes)))
    homes = [number for turn, number in turns if turn < room[number]][:ranks]
    wanted = [homes.count(number) * threads for number in range(len(nodes))]
    chosen = [
        iter(cpus_of(node, close(node, count)) if count else ())
        for node, count in zip(nodes, wanted, strict=True)
    ]
    for home in homes:
        yield from islice(chosen[home], threads)


def _size(cores: Iterable[Core], by_core: bool) -> int:
    return sum(1 if by_core else len(core.cpus) for core in cores)


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
