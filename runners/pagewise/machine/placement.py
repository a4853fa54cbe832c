"""Which CPUs the threads of a run are bound to, and on which NUMA nodes its memory is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import compress, product
from pathlib import Path

from pagewise.core.errors import SelectionError
from pagewise.core.fields import cpu_list, list_text
from pagewise.core.manifest import PlannedPlacement
from pagewise.core.record_parts import Binding, ProcessPlacement
from pagewise.core.units import count_text
from pagewise.machine import numa
from pagewise.machine.cores import close, cpus_of, size_of, spread, spread_ranks, usable
from pagewise.machine.host import field, read
from pagewise.machine.numa import MemoryPolicy
from pagewise.machine.topology import Topology, read_topology

#: close: near each other; spread: far apart.
_ORDERS = ("close", "spread")
_ONLINE = Path("/sys/devices/system/cpu/online")
_SMT_CONTROL = Path("/sys/devices/system/cpu/smt/control")
_FIRST_TOUCH = MemoryPolicy("first-touch", "default")


@dataclass(frozen=True)
class Placement:
    """The threads of a run, the CPU of each, and their memory policy.

    nodes: where the memory is first. also: names of requested placements that are the same on this machine.
    pinned: whether OpenMP's threads are bound; otherwise the run has all CPUs, as the user starts it. ranks:
    the number of MPI ranks, each with `threads` of the CPUs in their order; None: without a launcher. order:
    close or spread, None for listed CPUs. cores: how many cores the CPUs are of.
    """

    threads: int
    cpus: tuple[int, ...]
    name: str = "close"
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
        """In words: `spread: 4 threads on CPU 0,8,16,24, memory bind:0`."""
        memory = "" if self.memory.reported == "default" else f", memory {self.memory.reported}"
        ranks = "" if self.ranks is None else f"{count_text(self.ranks, 'rank')} of "
        threads = f"{ranks}{count_text(self.threads, 'thread')}"
        return f"{self.name}: {threads} on CPU {list_text(self.cpus)}{memory}"

    @contextmanager
    def bind(self) -> Iterator[None]:
        """Binds the calling thread during the block; a process that is started in it inherits the binding.

        So a child is bound before its exec, without code between fork and exec.
        """
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.cpus)
        try:
            with self.memory.apply_policy():
                yield
        finally:
            os.sched_setaffinity(0, before)

    def planned_placement(self) -> PlannedPlacement:
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
    """The requested placements, as options name them; each combination of the tuples' values is one.

    threads: numbers of threads, of each rank with `ranks`, the numbers of MPI ranks. cpus: lists of CPUs, one
    per thread. bind: how CPUs and memory are chosen, each as `spread+smt:2+interleave`.
    """

    threads: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    cpus: tuple[str, ...] = ()
    bind: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it gives the number of threads."""
        return bool(self.threads or self.cpus)


#: Requests nothing.
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

    @property
    def most_per_core(self) -> int:
        """The hardware threads of a core."""
        return max(len(core.cpus) for core in self.topology.cores)


@dataclass(frozen=True)
class _Bind:
    """A value of --bind: an order, hardware threads per core (0: all), and a memory policy.

    fills: whether the number of threads counts cores, of which each gets its hardware threads.
    """

    text: str = ""
    order: str | None = None
    smt: int | None = None
    fills: bool = False
    memory: str | None = None

    @classmethod
    def of(cls, text: str) -> _Bind:
        """Parses `spread+smt:2+interleave`. Raises SelectionError."""
        bind = cls(text)
        for word in text.split("+"):
            match = re.fullmatch(r"(smt|fill)(?::([1-9]\d?))?", word)
            if word in _ORDERS and bind.order is None:
                bind = replace(bind, order=word)
            elif match is not None and bind.smt is None:
                bind = replace(bind, smt=int(match[2] or 0), fills=match[1] == "fill")
            elif word.partition(":")[0] in numa.POLICIES and bind.memory is None:
                bind = replace(bind, memory=word)
            else:
                raise SelectionError(
                    f"{word!r} is not a placement, or the second of its kind",
                    where=f"--bind {text}",
                    remedy=f"join with +: {', '.join((*_ORDERS, 'smt:N, fill:N', *numa.POLICIES))}",
                )
        return bind

    @property
    def places(self) -> bool:
        """Whether it chooses CPUs."""
        return self.order is not None or self.smt is not None


def this_machine() -> AvailableMachine:
    """The machine that this process runs on, as far as it may use it. Raises SetupError."""
    allowed = frozenset(os.sched_getaffinity(0))
    online = frozenset(cpu_list(read(_ONLINE) or "")) | allowed
    return AvailableMachine(read_topology(), allowed, online, numa.allowed_nodes())


def observed_placement(pid: int) -> ProcessPlacement:
    """The CPUs that a process may use and its memory policy, both inherited by programs that it starts."""
    allowed = field(Path(f"/proc/{pid}/status"), "Cpus_allowed_list")
    return ProcessPlacement(tuple(cpu_list(allowed)) if allowed else None, numa.policy_of(pid))


def placements(where: Where = NOWHERE, machine: AvailableMachine | None = None) -> list[Placement]:
    """The requested placements, each once; the first is the one to compare against.

    Without a number of threads or of ranks, or a list, nothing is bound. Raises SelectionError, SetupError.
    """
    machine = machine or this_machine()
    binds = [_Bind.of(text) for text in where.bind] or [_Bind()]
    choices = list(product(where.threads or (None,), where.ranks or (None,), where.cpus or (None,), binds))
    differs = [len(set(values)) > 1 for values in zip(*choices, strict=True)]
    unique: dict[tuple[object, ...], Placement] = {}
    for threads, ranks, cpus, bind in choices:
        _check(threads, ranks, cpus, bind)
        placed = _with_memory(_with_cpus(threads, ranks, cpus, bind, machine), bind.memory, machine)
        labels = (f"ranks:{ranks}", f"threads:{threads}", f"cpus:{cpus}", bind.text or _ORDERS[0])
        # A name has the parts in which placements differ.
        named = compress(labels, (differs[1], differs[0], *differs[2:]))
        placed = replace(placed, name="-".join(named) or placed.name)
        # Which rank has which of the CPUs makes no difference.
        key = frozenset(placed.cpus_by_rank) if placed.ranks else placed.cpus, placed.memory.reported
        first = unique.setdefault(key, placed)
        if first is not placed:
            unique[key] = replace(first, also=(*first.also, placed.name))
    return list(unique.values())


def _check(threads: int | None, ranks: int | None, cpus: str | None, bind: _Bind) -> None:
    """Raises SelectionError for options that exclude each other, or need another one."""
    clashes = {
        f"--cpus {cpus}, --bind {bind.text}": cpus is not None and bind.places,
        f"--ranks {ranks}, --bind {bind.text}": ranks is not None
        and (bind.fills or bind.memory == "first-thread"),
    }
    for names, clash in clashes.items():
        if clash:
            raise SelectionError(
                "these exclude each other",
                where=names,
                remedy="--cpus names the CPUs that --bind would choose; fill and first-thread are for one "
                "process",
            )
    if (bind.places or bind.memory == "first-thread") and (threads, ranks, cpus) == (None, None, None):
        raise SelectionError(
            "the number of threads to place is missing",
            where=f"--bind {bind.text}",
            remedy="--threads N, or --cpus",
        )


def _with_cpus(
    threads: int | None, ranks: int | None, cpus: str | None, bind: _Bind, machine: AvailableMachine
) -> Placement:
    """The placement without its memory. Without a number of threads, a rank has one."""
    if (threads, ranks, cpus) == (None, None, None):
        return Placement(len(machine.allowed), tuple(sorted(machine.allowed)), "anywhere", pinned=False)
    if cpus is not None:
        taken = _listed_cpus(cpus, None if threads is None else threads * (ranks or 1), machine)
        if len(taken) % (ranks or 1):
            raise SelectionError(
                f"{len(taken)} CPUs cannot be shared equally by {ranks} ranks",
                where=f"--ranks, --cpus {cpus}",
                remedy="list as many CPUs for each rank, those of rank 0 first",
            )
        name, order, size = f"cpus:{cpus}", None, len(taken) // (ranks or 1)
    else:
        order = bind.order or _ORDERS[0]
        name, size = bind.text if bind.places else order, threads or 1
        taken = _select_names(size, ranks, bind, machine)
        size = len(taken) if bind.fills else size
    cores = sum(not set(taken).isdisjoint(core.cpus) for core in machine.topology.cores)
    return Placement(size, taken, name, ranks=ranks, order=order, cores=cores or None)


def _select_names(threads: int, ranks: int | None, bind: _Bind, machine: AvailableMachine) -> tuple[int, ...]:
    """CPUs for the threads of one process, or of each rank. Raises SelectionError."""
    smt = 1 if bind.smt is None else bind.smt
    _check_smt(smt, bind, machine)
    cores = usable(machine.topology.cores, machine.allowed, smt or machine.most_per_core)
    requested = threads * (ranks or 1)
    available = size_of(cores, by_core=bind.fills)
    if requested > available:
        raise _too_many(requested, available, bind, machine)
    if bind.order == "spread" and ranks is not None:
        return tuple(spread_ranks(machine.topology, cores, ranks, threads))
    taken = (spread if bind.order == "spread" else close)(cores, requested, by_core=bind.fills)
    cpus = cpus_of(cores, taken)
    # The last core need not be full.
    return cpus if bind.fills else cpus[:requested]


def _check_smt(smt: int, bind: _Bind, machine: AvailableMachine) -> None:
    most = machine.most_per_core
    if smt == 1 or (smt == 0 and most > 1) or 1 < smt <= most:
        return
    if most > 1:
        raise SelectionError(
            f"{smt} hardware threads per core were requested; the cores of this machine have {most}",
            where=f"--bind {bind.text}",
            remedy=f"a number up to {most}, or none for all",
        )
    switched_off = read(_SMT_CONTROL) == "off"
    how = f"root: echo on > {_SMT_CONTROL}" if switched_off else "the firmware; on POWER, ppc64_cpu --smt=on"
    raise SelectionError(
        "the cores of this machine have one hardware thread each",
        where=f"--bind {bind.text}",
        remedy=f"omit smt and fill; if the CPU supports SMT, switch it on by {how}",
    )


def _too_many(requested: int, available: int, bind: _Bind, machine: AvailableMachine) -> SelectionError:
    full = usable(machine.topology.cores, machine.allowed, len(machine.online))
    cores, cpus = size_of(full, by_core=True), size_of(full)
    remedies = [f"--threads {available}"]
    if bind.smt is None and cpus >= requested:
        remedies.append(f"--bind smt for {cpus} hardware threads")
    noun = "cores" if bind.fills else "threads"
    return SelectionError(
        f"{requested} {noun} were requested; this process may use {cores} physical cores"
        + (f" with {cpus} hardware threads" if cpus > cores else ""),
        where="--threads",
        remedy=", or ".join([*remedies, "ask the batch system for more cores"]),
    )


def _listed_cpus(text: str, threads: int | None, machine: AvailableMachine) -> tuple[int, ...]:
    """The listed CPUs, in the order of the list. Raises SelectionError."""
    cpus = numa.parse_list(text, "--cpus")
    absent, barred = sorted({*cpus} - machine.online), sorted({*cpus} - machine.allowed)
    if barred:
        message = (
            f"the machine has no CPU {list_text(absent)}: it has {list_text(machine.online)}"
            if absent
            else f"this process may not use CPU {list_text(barred)} (taskset, a cpuset, the batch system)"
        )
        remedy = f"name CPUs of these: {list_text(machine.allowed)}"
        raise SelectionError(message, where=f"--cpus {text}", remedy=remedy)
    if threads is not None and threads != len(cpus):
        raise SelectionError(
            f"{threads} threads were requested, but {len(cpus)} CPUs are listed",
            where=f"--threads, --cpus {text}",
            remedy="omit --threads: each listed CPU gets one thread",
        )
    return tuple(cpus)


def _with_memory(placement: Placement, policy: str | None, machine: AvailableMachine) -> Placement:
    topology = machine.topology
    first = placement.cpus[:1] if policy == "first-thread" else placement.cpus
    local = topology.nodes_of(first) or machine.nodes[:1]
    if policy is None:
        return replace(placement, memory=numa.inherited_policy(), nodes=local)
    wide = tuple(node for node in topology.nodes_of(machine.allowed) if node in machine.nodes)
    memory = numa.parse_policy(policy, local, wide, machine.nodes)
    return replace(placement, memory=memory, nodes=memory.nodes or local)
