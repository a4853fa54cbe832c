"""Which CPUs the threads of a run are bound to, and on which NUMA nodes its memory is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from pagewise.core.cpus import cpu_list, list_text
from pagewise.core.errors import SelectionError
from pagewise.core.manifest import PlannedPlacement
from pagewise.core.record_parts import Binding, ProcessPlacement
from pagewise.core.suggestions import choose_of
from pagewise.core.units import count_text
from pagewise.machine import numa
from pagewise.machine.cores import compact, cpus_of, scattered, scattered_ranks, size_of, usable
from pagewise.machine.host import field, read
from pagewise.machine.numa import MemoryPolicy
from pagewise.machine.topology import Core, Topology, cores_in, read_topology

ORDERS = ("compact", "scatter")
_ONLINE = Path("/sys/devices/system/cpu/online")
_SMT_CONTROL = Path("/sys/devices/system/cpu/smt/control")
_FIRST_TOUCH = MemoryPolicy("first-touch", "default")


@dataclass(frozen=True)
class Placement:
    """The threads of a run, the CPU of each, and their memory policy.

    nodes: where the memory is first. also: names of requested placements that are the same on this machine.
    pinned: whether OpenMP's threads are bound; otherwise the run has all CPUs, as the user starts it. ranks:
    the number of MPI ranks, each with `threads` of the CPUs in their order; None: without a launcher. order:
    compact or scatter, None for listed CPUs. cores: how many cores the CPUs are of.
    """

    threads: int
    cpus: tuple[int, ...]
    name: str = "compact"
    memory: MemoryPolicy = _FIRST_TOUCH
    nodes: tuple[int, ...] = ()
    also: tuple[str, ...] = ()
    pinned: bool = True
    ranks: int | None = None
    order: str | None = None
    cores: int | None = None

    @property
    def cpus_by_rank(self) -> list[tuple[int, ...]]:
        """The CPUs of each rank."""
        return [self.cpus[at : at + self.threads] for at in range(0, len(self.cpus), self.threads)]

    @property
    def environment(self) -> dict[str, str]:
        """OpenMP's settings: thread i on the i-th CPU; none for threads that are not pinned.

        Each rank sets its own OMP_PLACES (machine/rank.py).
        """
        if not self.pinned:
            return {}
        if self.ranks is not None:
            return {"OMP_NUM_THREADS": str(self.threads), "OMP_PROC_BIND": "close"}
        places = ",".join(f"{{{cpu}}}" for cpu in self.cpus)
        return {"OMP_NUM_THREADS": str(self.threads), "OMP_PROC_BIND": "close", "OMP_PLACES": places}

    @property
    def text(self) -> str:
        """In words: `scatter: 4 threads on CPU 0,8,16,24, memory bind:0`."""
        memory = "" if self.memory.reported == "default" else f", memory {self.memory.reported}"
        ranks = "" if self.ranks is None else f"{count_text(self.ranks, 'rank')} of "
        threads = f"{ranks}{count_text(self.threads, 'thread')}"
        return f"{self.name}: {threads} on CPU {list_text(self.cpus)}{memory}"

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Binds the calling thread during the block; a process that is started in it inherits the binding.

        So a child is bound before its exec, without code between fork and exec.
        """
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.cpus)
        try:
            with self.memory.applied():
                yield
        finally:
            os.sched_setaffinity(0, before)

    def planned(self) -> PlannedPlacement:
        """As the manifest has it."""
        return PlannedPlacement(
            self.name,
            self.threads,
            self.cpus,
            self.memory.reported,
            self.environment,
            self.ranks,
            self.order,
            self.cores,
            self.memory.name,
        )

    def binding(self, observed: ProcessPlacement) -> Binding:
        """As a run's record has it: this request, and the placement that its process had."""
        return Binding(self.name, self.threads, self.cpus, self.memory.reported, observed, self.ranks)


@dataclass(frozen=True)
class Where:
    """The requested placements; each combination of the tuples' values is one.

    orders: compact or scatter. smt: hardware threads per core, 0 for all. cores:
    a number of cores, with threads on each by `smt`, instead of a number of threads. lists: CPUs, one per
    thread. memory: memory policies. ranks: numbers of MPI ranks, with a number of threads each; rank_orders:
    compact or scatter (in rotation over the NUMA nodes). threads: several numbers of threads to compare.
    """

    orders: tuple[str, ...] = ()
    smt: tuple[int, ...] = ()
    cores: int | None = None
    lists: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    rank_orders: tuple[str, ...] = ()
    threads: tuple[int, ...] = ()

    @property
    def binds(self) -> bool:
        """Whether CPUs are requested."""
        return bool(self.orders or self.smt or self.counts or self.ranks)

    @property
    def counts(self) -> bool:
        """Whether it gives the number of threads."""
        return bool(self.cores or self.lists or self.threads)


#: Requests nothing but the number of threads.
NOWHERE = Where()


@dataclass(frozen=True)
class AvailableMachine:
    """What placements are chosen from.

    allowed: the CPUs that this process may use. online: all CPUs of the machine. nodes: the NUMA nodes whose
    memory this process may use.
    """

    topology: Topology
    allowed: frozenset[int]
    online: frozenset[int]
    nodes: tuple[int, ...]


def this_machine() -> AvailableMachine:
    """The machine that this process runs on, as far as it may use it. Raises SetupError."""
    allowed = frozenset(os.sched_getaffinity(0))
    online = frozenset(cpu_list(read(_ONLINE) or "")) | allowed
    return AvailableMachine(read_topology(), allowed, online, numa.allowed_nodes())


def observed_placement(pid: int) -> ProcessPlacement:
    """The CPUs that a process may use and its memory policy, both inherited by programs that it starts."""
    allowed = field(Path(f"/proc/{pid}/status"), "Cpus_allowed_list")
    return ProcessPlacement(tuple(cpu_list(allowed)) if allowed else None, numa.policy_of(pid))


def place(threads: int) -> Placement:
    """Places one thread on each of `threads` neighbouring cores. Raises SelectionError, SetupError."""
    return placements(threads)[0]


def placements(
    threads: int | None, where: Where = NOWHERE, machine: AvailableMachine | None = None
) -> list[Placement]:
    """The requested placements, each once; the first is the one to compare against.

    Without a number of threads, a number of cores or a list, nothing is bound. Raises SelectionError,
    SetupError.
    """
    _check(threads, where)
    machine = machine or this_machine()
    bound = [_with_cores(placed, machine) for placed in _placed_threads(threads, where, machine)]
    unique: dict[tuple[object, ...], Placement] = {}
    for placement, policy in product(bound, where.memory or (None,)):
        # A name has the parts in which placements differ.
        parts = (placement.name if len(bound) > 1 else "", policy if policy and len(where.memory) > 1 else "")
        name = "-".join(filter(None, parts)) or placement.name
        placed = replace(_with_memory(placement, policy, machine), name=name)
        # Which rank has which of the CPUs makes no difference.
        key = frozenset(placed.cpus_by_rank) if placed.ranks else placed.cpus, placed.memory.reported
        first = unique.setdefault(key, placed)
        if first is not placed:
            unique[key] = replace(first, also=(*first.also, name))
    return list(unique.values())


def _placed_threads(threads: int | None, where: Where, machine: AvailableMachine) -> list[Placement]:
    """The placements of the threads: by number of threads and of ranks, named by those that differ."""
    if threads is None and not where.binds:
        return [Placement(len(machine.allowed), tuple(sorted(machine.allowed)), "anywhere", pinned=False)]
    numbers, ranks = where.threads or (threads,), where.ranks or (None,)
    found: list[Placement] = []
    for number, count in product(numbers, ranks):
        several = (
            _bound(number, where, machine) if count is None else _of_ranks(number, count, where, machine)
        )
        counts = f"ranks:{count}" * (len(ranks) > 1), f"threads:{number}" * (len(numbers) > 1)
        for placed in several:
            name = "-".join(filter(None, (*counts, placed.name * (len(several) > 1))))
            found.append(replace(placed, name=name or placed.name))
    return found


def _with_cores(placement: Placement, machine: AvailableMachine) -> Placement:
    """The placement with the number of cores of its CPUs."""
    cpus = set(placement.cpus)
    cores = sum(not cpus.isdisjoint(core.cpus) for core in machine.topology.cores())
    return replace(placement, cores=cores or None)


def _check(threads: int | None, where: Where) -> None:
    for option, orders in (("--placement", where.orders), ("--rank-placement", where.rank_orders)):
        for order in orders:
            if order not in ORDERS:
                raise SelectionError(
                    f"{order!r} is not a placement", where=option, remedy=choose_of(order, ORDERS)
                )
    clashes = {
        "--threads and --cores": bool(threads or where.threads) and where.cores is not None,
        "--cpus and several --threads": bool(where.lists) and len(where.threads) > 1,
        "--cpus and --cores": bool(where.lists) and where.cores is not None,
        "--cpus and --smt": bool(where.lists) and bool(where.smt) and not (where.orders or where.rank_orders),
        "--ranks and --cores": bool(where.ranks) and where.cores is not None,
        "--ranks and --placement": bool(where.ranks) and bool(where.orders),
        "--ranks and --memory first-thread": bool(where.ranks) and "first-thread" in where.memory,
    }
    for names, clash in clashes.items():
        if clash:
            raise SelectionError(
                f"{names} exclude each other: both set the threads and their places",
                where=names,
                remedy="--threads N and --cores N choose CPUs by --placement and --smt; --cpus names them; "
                "--ranks N has --threads N per rank and --rank-placement",
            )
    if where.rank_orders and not where.ranks:
        raise SelectionError(
            "the number of ranks to place is missing", where="--rank-placement", remedy="--ranks N"
        )


def _bound(threads: int | None, where: Where, machine: AvailableMachine) -> list[Placement]:
    chosen = []
    if where.orders or not where.lists:
        if threads is None and where.cores is None:
            raise SelectionError(
                "the number of threads to place is missing",
                where="--placement, --smt",
                remedy="--threads N, or --cores N",
            )
        for order, smt in product(where.orders or ORDERS[:1], where.smt or (1,)):
            chosen.append(_chosen(threads, where.cores, order, smt, machine))
    return chosen + [_listed(text, threads, machine) for text in where.lists]


def _of_ranks(threads: int | None, ranks: int, where: Where, machine: AvailableMachine) -> list[Placement]:
    """Places ranks; the threads of each are close together. Without a number of threads, it has one."""
    chosen = []
    if where.rank_orders or not where.lists:
        for order, smt in product(where.rank_orders or ORDERS[:1], where.smt or (1,)):
            size = threads or 1
            placed = _chosen(ranks * size, None, ORDERS[0], smt, machine)
            if order != ORDERS[0]:
                most = smt or max(len(core.cpus) for core in machine.topology.cores())
                cpus = tuple(scattered_ranks(machine.topology, machine.allowed, most, ranks, size))
                name = placed.name.replace(ORDERS[0], order)
                placed = replace(placed, cpus=cpus, name=name, order=order)
            chosen.append(replace(placed, threads=size))
    for text in where.lists:
        placed = _listed(text, None if threads is None else ranks * threads, machine)
        if len(placed.cpus) % ranks:
            raise SelectionError(
                f"{len(placed.cpus)} CPUs cannot be shared equally by {ranks} ranks",
                where=f"--ranks, --cpus {text}",
                remedy="list as many CPUs for each rank, those of rank 0 first",
            )
        chosen.append(replace(placed, threads=len(placed.cpus) // ranks))
    return [replace(placed, ranks=ranks) for placed in chosen]


def _chosen(
    threads: int | None, cores: int | None, order: str, smt: int, machine: AvailableMachine
) -> Placement:
    """Places threads, or fills a number of cores, with `smt` hardware threads of each core (0: all)."""
    most = max(len(core.cpus) for core in cores_in(machine.topology.machine))
    _check_smt(smt, most)
    domain = usable(machine.topology.machine, machine.allowed, smt or most)
    size: Callable[[Core], int] = (lambda core: len(core.cpus)) if cores is None else (lambda core: 1)
    requested = threads or cores or 1
    available = size_of(domain, size)
    if requested > available:
        raise _too_many(requested, available, cores is not None, smt, machine)
    taken = (compact if order == ORDERS[0] else scattered)(domain, requested, size)
    # The last core need not be full.
    cpus = cpus_of(domain, taken)[:threads]
    name = order if smt == 1 else f"{order}-smt{smt or most}"
    return Placement(len(cpus), cpus, name, order=order)


def _check_smt(smt: int, most: int) -> None:
    if smt == 1 or (smt == 0 and most > 1) or 1 < smt <= most:
        return
    if most > 1:
        raise SelectionError(
            f"{smt} hardware threads per core were requested; the cores of this machine have {most}",
            where=f"--smt {smt}",
            remedy=f"--smt use takes all {most}; --smt N a number up to that",
        )
    switched_off = read(_SMT_CONTROL) == "off"
    how = f"root: echo on > {_SMT_CONTROL}" if switched_off else "the firmware; on POWER, ppc64_cpu --smt=on"
    raise SelectionError(
        "the cores of this machine have one hardware thread each",
        where="--smt",
        remedy=f"--smt avoid, or omit it; if the CPU supports SMT, switch it on by {how}",
    )


def _too_many(
    requested: int, available: int, by_core: bool, smt: int, machine: AvailableMachine
) -> SelectionError:
    noun, option = ("cores", "--cores") if by_core else ("threads", "--threads")
    full = usable(machine.topology.machine, machine.allowed, len(machine.online))
    cores, cpus = len(list(cores_in(full))), size_of(full, lambda core: len(core.cpus))
    remedies = [f"{option} {available}"]
    if not by_core and smt == 1 and cpus >= requested:
        remedies.append(f"--smt use for {cpus} hardware threads")
    return SelectionError(
        f"{requested} {noun} were requested; this process may use {cores} physical cores"
        + (f" with {cpus} hardware threads" if cpus > cores else ""),
        where=option,
        remedy=", or ".join([*remedies, "ask the batch system for more cores"]),
    )


def _listed(text: str, threads: int | None, machine: AvailableMachine) -> Placement:
    """One thread on each of the listed CPUs, in the order of the list."""
    cpus = numa.parse_list(text, "--cpus")
    absent, barred = sorted({*cpus} - machine.online), sorted({*cpus} - machine.allowed)
    if barred:
        what = (
            f"the machine has no CPU {list_text(absent)}: it has {list_text(machine.online)}"
            if absent
            else f"this process may not use CPU {list_text(barred)} (taskset, a cpuset, the batch system)"
        )
        remedy = f"name CPUs of these: {list_text(machine.allowed)}"
        raise SelectionError(what, where=f"--cpus {text}", remedy=remedy)
    if threads is not None and threads != len(cpus):
        raise SelectionError(
            f"{threads} threads were requested, but {len(cpus)} CPUs are listed",
            where=f"--threads, --cpus {text}",
            remedy="omit --threads: each listed CPU gets one thread",
        )
    return Placement(len(cpus), tuple(cpus), f"cpus:{text}")


def _with_memory(placement: Placement, policy: str | None, machine: AvailableMachine) -> Placement:
    topology = machine.topology
    first = placement.cpus[:1] if policy == "first-thread" else placement.cpus
    local = topology.nodes_of(first) or machine.nodes[:1]
    if policy is None:
        return replace(placement, memory=numa.inherited(), nodes=local)
    spread = tuple(node for node in topology.nodes_of(machine.allowed) if node in machine.nodes)
    memory = numa.parse_policy(policy, local, spread, machine.nodes)
    return replace(placement, memory=memory, nodes=memory.nodes or local)
