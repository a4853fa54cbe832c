"""Chooses cores of a machine: close together, or spread over its parts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, zip_longest

from pagewise.core.errors import SelectionError
from pagewise.machine.topology import Core, Topology


def usable(cores: Iterable[Core], allowed: Collection[int], smt: int) -> list[Core]:
    """The cores with the allowed CPUs only, at most `smt` of each; without cores that have none."""
    limited = (replace(core, cpus=tuple(cpu for cpu in core.cpus if cpu in allowed)[:smt]) for core in cores)
    return [core for core in limited if core.cpus]


def size_of(cores: Iterable[Core], *, by_core: bool = False) -> int:
    """The number of their CPUs, or of the cores."""
    return sum(1 if by_core else len(core.cpus) for core in cores)


def cpus_of(cores: Iterable[Core], taken: Collection[Core]) -> tuple[int, ...]:
    """The CPUs of the taken ones of these cores, in the order of these."""
    return tuple(cpu for core in cores if core in taken for cpu in core.cpus)


def close(cores: Sequence[Core], requested: int, *, by_core: bool = False) -> list[Core]:
    """Cores of the smallest part of the machine that has enough, and of the fewest parts of that."""
    depths = range(max(len(core.path) for core in cores) + 1)
    parts = [part for depth in depths for part in _parts(cores, depth)]
    enough = [part for part in parts if size_of(part, by_core=by_core) >= requested]
    smallest = min(enough, key=lambda part: (size_of(part, by_core=by_core), part[0].path))
    if len(smallest) == 1:
        return smallest
    # No part of it has enough: take all of the largest, the last of equals in the machine's order.
    inner = next(parts for depth in depths if len(parts := _parts(smallest, depth)) > 1)
    largest = max(inner, key=lambda part: (size_of(part, by_core=by_core), cores.index(part[0])))
    left = requested - size_of(largest, by_core=by_core)
    rest = [core for core in smallest if core not in largest]
    return [*largest, *(close(rest, left, by_core=by_core) if left else ())]


def spread(cores: Sequence[Core], requested: int, *, by_core: bool = False) -> list[Core]:
    """Enough cores, taken in rotation from the parts of the machine, and in each part from its parts."""
    taken: list[Core] = []
    for core in _in_rotation(cores):
        if size_of(taken, by_core=by_core) >= requested:
            break
        taken.append(core)
    return taken


def spread_ranks(topology: Topology, cores: Sequence[Core], ranks: int, threads: int) -> Iterator[int]:
    """The CPUs of ranks that go to the NUMA nodes in rotation, rank by rank; `threads` for each.

    cores: the usable ones. Raises SelectionError if some rank fits into no NUMA node.
    """
    every = frozenset(cpu for core in cores for cpu in core.cpus)
    distinct = dict.fromkeys(node.cpus & every for node in topology.nodes)
    nodes = [usable(cores, cpus, len(cpus)) for cpus in distinct if cpus] or [list(cores)]
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
    by_home = [
        iter(cpus_of(node, close(node, count)) if count else ())
        for node, count in zip(nodes, wanted, strict=True)
    ]
    for home in homes:
        yield from islice(by_home[home], threads)


def _parts(cores: Iterable[Core], depth: int) -> list[list[Core]]:
    """The cores by the part of the machine, of this depth in the tree, that contains them."""
    parts: dict[tuple[int, ...], list[Core]] = {}
    for core in cores:
        parts.setdefault(core.path[:depth], []).append(core)
    return list(parts.values())


def _in_rotation(cores: Sequence[Core], depth: int = 1) -> Sequence[Core]:
    if len(cores) <= 1:
        return cores
    parts = sorted(_parts(cores, depth), key=lambda part: part[0].path[:depth])
    rotations = zip_longest(*(_in_rotation(part, depth + 1) for part in parts))
    return [core for rotation in rotations for core in rotation if core is not None]
