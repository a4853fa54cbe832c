"""Which CPUs the threads of a run are bound to, and on which NUMA nodes its memory lies."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

from pagewise.core.cpus import cpu_list, list_text
from pagewise.core.errors import SelectionError
from pagewise.core.record_parts import Binding, ProcessPlacement
from pagewise.core.suggestions import choose_of
from pagewise.core.units import count_text
from pagewise.machine import numa
from pagewise.machine.host import read
from pagewise.machine.numa import Memory
from pagewise.machine.topology import Core, Domain, Part, Topology, cores_in, read_topology

ORDERS = ("compact", "scatter")
_WAYS = {"avoid": 1, "use": 0}
_ONLINE = "sys/devices/system/cpu/online"
_SMT = Path("/sys/devices/system/cpu/smt/control")
_AS_FOUND = Memory("first-touch", "default")


@dataclass(frozen=True)
class Placement:
    """The threads of a run, the CPU of each, and the policy of their memory.

    `nodes` are where the memory lies first; `also` names what else was asked for and is the same here.
    """

    threads: int
    cpus: tuple[int, ...]
    name: str = "compact"
    memory: Memory = _AS_FOUND
    nodes: tuple[int, ...] = ()
    also: tuple[str, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """OpenMP's settings: thread i on the i-th CPU."""
        places = ",".join(f"{{{cpu}}}" for cpu in self.cpus)
        return {"OMP_NUM_THREADS": str(self.threads), "OMP_PROC_BIND": "close", "OMP_PLACES": places}

    @property
    def text(self) -> str:
        """In words: `scatter: 4 threads on CPU 0,8,16,24, memory bind:0`."""
        threads = count_text(self.threads, "thread")
        where = f"{threads} on CPU {list_text(self.cpus)}"
        memory = "" if self.memory.told == "default" else f", memory {self.memory.told}"
        return f"{self.name}: {where}{memory}"

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Binds the calling thread while the block lasts: a process that is started there inherits it.

        A child is bound before its exec in this way, without code between fork and exec.
        """
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.cpus)
        try:
            with self.memory.applied():
                yield
        finally:
            os.sched_setaffinity(0, before)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "name": self.name,
            "threads": self.threads,
            "cpus": list(self.cpus),
            "memory": self.memory.told,
            "environment": self.environment,
        }

    def binding(self, had: ProcessPlacement) -> Binding:
        """For the record of a run: what was asked, and what its process `had`."""
        return Binding(self.name, self.threads, self.cpus, self.memory.told, had)


class Anywhere(Placement):
    """All CPUs, and no settings of OpenMP: as the user starts it."""

    @property
    def environment(self) -> dict[str, str]:
        """Nothing."""
        return {}


@dataclass(frozen=True)
class Where:
    """What the user asked for beside the number of threads; each of several is a placement of its own.

    orders: compact or scatter. smt: threads a core, 1, 2, ..., or 0 for all that it has. cores: so many, with
    threads on each by `smt`, in place of a number of threads. lists: CPUs, one a thread. memory: policies.
    """

    orders: tuple[str, ...] = ()
    smt: tuple[int, ...] = ()
    cores: int | None = None
    lists: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        orders: tuple[str, ...],
        smt: tuple[str, ...],
        cores: int | None,
        lists: tuple[str, ...],
        memory: tuple[str, ...],
    ) -> Where:
        """What is written as on the command line. Raises SelectionError."""
        for order in orders:
            if order not in ORDERS:
                raise SelectionError(
                    f"{order!r} is no placement", where="--placement", remedy=choose_of(order, ORDERS)
                )
        return cls(orders, tuple(map(_ways, smt)), cores, lists, memory)

    @property
    def binds(self) -> bool:
        """Whether CPUs are asked for."""
        return bool(self.orders or self.smt or self.counts)

    @property
    def counts(self) -> bool:
        """Whether it says how many threads there are."""
        return bool(self.cores or self.lists)


#: Nothing but the number of threads is asked for.
NOWHERE = Where()


@dataclass(frozen=True)
class Machine:
    """What placements are chosen from.

    allowed: the CPUs of this process. online: all that the machine has. nodes: whose memory it may have.
    """

    topology: Topology
    allowed: frozenset[int]
    online: frozenset[int]
    nodes: tuple[int, ...]


def this_machine() -> Machine:
    """The machine that this runs on, as far as this process may use it. Raises SetupError."""
    allowed = frozenset(os.sched_getaffinity(0))
    online = frozenset(cpu_list(read(Path("/") / _ONLINE) or "")) | allowed
    return Machine(read_topology(), allowed, online, numa.allowed_nodes())


def had_by(pid: int) -> ProcessPlacement:
    """The CPUs that a process may use and its memory policy, which programs that it starts inherit."""
    status = read(Path(f"/proc/{pid}/status")) or ""
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    return ProcessPlacement(tuple(cpu_list(allowed[1])) if allowed else None, numa.policy_of(pid))


def place(threads: int) -> Placement:
    """`threads` cores near each other, a thread on each. Raises SelectionError, SetupError."""
    return placements(threads)[0]


def placements(
    threads: int | None, where: Where = NOWHERE, machine: Machine | None = None
) -> list[Placement]:
    """The placements that are asked for, the first one to be compared against; each is another.

    Without a number of threads (or cores, or a list) nothing is bound. Raises SelectionError, SetupError.
    """
    _check(threads, where)
    machine = machine or this_machine()
    if threads is None and not where.binds:
        bound: list[Placement] = [Anywhere(len(machine.allowed), tuple(sorted(machine.allowed)), "anywhere")]
    else:
        bound = _bound(threads, where, machine)
    found: dict[tuple[Any, ...], Placement] = {}
    for one, policy in product(bound, where.memory or (None,)):
        placed = _with_memory(one, policy, machine)
        # What all have in common tells none of them apart.
        names = [
            *([one.name] if len(bound) > 1 else []),
            *([policy] if policy and len(where.memory) > 1 else []),
        ]
        placed = replace(placed, name="-".join(names) or one.name)
        first = found.setdefault((placed.cpus, placed.memory.told), placed)
        if first.name != placed.name:
            found[placed.cpus, placed.memory.told] = replace(first, also=(*first.also, placed.name))
    return list(found.values())


def _ways(text: str) -> int:
    if text in _WAYS:
        return _WAYS[text]
    if re.fullmatch(r"[1-9]\d?", text) is None:
        raise SelectionError(
            f"{text!r} is no number of hardware threads of a core",
            where="--smt",
            remedy="avoid (one), use (all that a core has), or a number",
        )
    return int(text)


def _check(threads: int | None, where: Where) -> None:
    clashes = {
        "--threads and --cores": threads is not None and where.cores is not None,
        "--cpus and --cores": bool(where.lists) and where.cores is not None,
        "--cpus and --smt": bool(where.lists) and bool(where.smt) and not where.orders,
    }
    for names, clash in clashes.items():
        if clash:
            raise SelectionError(
                f"{names} both say how many threads there are and where",
                where=names,
                remedy="--threads N and --cores N choose CPUs by --placement and --smt; --cpus names them",
            )


def _bound(threads: int | None, where: Where, machine: Machine) -> list[Placement]:
    found = []
    if where.orders or not where.lists:
        if threads is None and where.cores is None:
            raise SelectionError(
                "it is not said how many threads are to be placed",
                where="--placement, --smt",
                remedy="--threads N, or --cores N",
            )
        for order, smt in product(where.orders or ORDERS[:1], where.smt or (1,)):
            found.append(_chosen(threads, where.cores, order, smt, machine))
    return found + [_listed(text, threads, machine) for text in where.lists]


def _chosen(threads: int | None, cores: int | None, order: str, smt: int, machine: Machine) -> Placement:
    """Threads or whole cores by their number, with `smt` hardware threads of each core (0: all)."""
    ways = max(len(core.cpus) for core in cores_in(machine.topology.machine))
    _check_smt(smt, ways)
    usable = _usable(machine.topology.machine, machine.allowed, smt or ways)
    size: Callable[[Core], int] = (lambda core: len(core.cpus)) if cores is None else (lambda core: 1)
    wanted = threads or cores or 1
    there = _size(usable, size)
    if wanted > there:
        raise _too_many(wanted, there, cores is not None, smt, machine)
    taken = _compact(usable, wanted, size) if order == "compact" else _scattered(usable, wanted, size)
    at = {core.cpus: place for place, core in enumerate(cores_in(usable))}
    taken.sort(key=lambda core: at[core.cpus])
    cpus = [cpu for core in taken for cpu in core.cpus]
    name = order if smt == 1 else f"{order}-smt{smt or ways}"
    # The last core need not be full.
    cpus = cpus[:threads]
    return Placement(len(cpus), tuple(cpus), name)


def _check_smt(smt: int, ways: int) -> None:
    if smt == 1 or (smt == 0 and ways > 1) or 1 < smt <= ways:
        return
    if ways > 1:
        raise SelectionError(
            f"{smt} hardware threads of a core were asked for, and the cores here have {ways}",
            where=f"--smt {smt}",
            remedy=f"--smt use takes all {ways}; --smt N a number up to that",
        )
    switched_off = read(_SMT) == "off"
    how = f"root: echo on > {_SMT}" if switched_off else "the firmware; on POWER, ppc64_cpu --smt=on"
    raise SelectionError(
        "the cores here have one hardware thread each: there are no siblings to use",
        where="--smt",
        remedy=f"--smt avoid, or leave it out; SMT is switched on, where the CPU has it, by {how}",
    )


def _too_many(wanted: int, there: int, by_core: bool, smt: int, machine: Machine) -> SelectionError:
    what, option = ("cores", "--cores") if by_core else ("threads", "--threads")
    full = _usable(machine.topology.machine, machine.allowed, len(machine.online))
    cores, cpus = len(list(cores_in(full))), _size(full, lambda core: len(core.cpus))
    ways = [f"{option} {there}"]
    if not by_core and smt == 1 and cpus >= wanted:
        ways.append(f"--smt use for {cpus} hardware threads")
    return SelectionError(
        f"{wanted} {what} were asked for, and this process may use {cores} physical cores"
        + (f" with {cpus} hardware threads" if cpus > cores else ""),
        where=option,
        remedy=", or ".join([*ways, "ask the batch system for more cores"]),
    )


def _listed(text: str, threads: int | None, machine: Machine) -> Placement:
    """The CPUs that are named, a thread on each, in the order in which they are named."""
    cpus = numa.parse_list(text, "--cpus")
    twice = sorted({cpu for cpu in cpus if cpus.count(cpu) > 1})
    absent, barred = sorted({*cpus} - machine.online), sorted({*cpus} - machine.allowed)
    may = list_text(sorted(machine.allowed))
    if twice or absent or barred:
        what = (
            f"the machine has no CPU {list_text(absent)}: it has {list_text(sorted(machine.online))}"
            if absent
            else f"this process may not use CPU {list_text(barred)} (taskset, a cpuset, the batch system)"
            if barred
            else f"CPU {list_text(twice)} is named twice, and a thread has a CPU of its own"
        )
        raise SelectionError(what, where=f"--cpus {text}", remedy=f"name CPUs of these, each once: {may}")
    if threads is not None and threads != len(cpus):
        raise SelectionError(
            f"{threads} threads were asked for, and {len(cpus)} CPUs are named",
            where=f"--threads, --cpus {text}",
            remedy="leave --threads out: there is a thread on each CPU that is named",
        )
    return Placement(len(cpus), tuple(cpus), f"cpus:{text}")


def _with_memory(one: Placement, policy: str | None, machine: Machine) -> Placement:
    topology = machine.topology
    local = topology.nodes_of(one.cpus) or machine.nodes[:1]
    if policy is None:
        return replace(one, memory=numa.inherited(), nodes=local)
    spread = tuple(node for node in topology.nodes_of(machine.allowed) if node in machine.nodes)
    memory = numa.asked(policy, local, spread, machine.nodes)
    return replace(one, memory=memory, nodes=memory.nodes or local)


def _usable(part: Domain, allowed: Iterable[int], smt: int) -> Domain:
    """The part with the CPUs that may be used, at most `smt` of each core."""
    parts: list[Part] = []
    for one in part.parts:
        if isinstance(one, Core):
            cpus = tuple(cpu for cpu in one.cpus if cpu in allowed)[:smt]
            parts += [Core(cpus)] if cpus else []
        else:
            found = _usable(one, allowed, smt)
            parts += [found] if found.parts else []
    return Domain(tuple(parts), part.holds_nodes)


def _size(part: Part, size: Callable[[Core], int]) -> int:
    return sum(map(size, cores_in(part)))


def _in_turn(part: Domain) -> Sequence[Part]:
    """Which of equal parts comes first: the first NUMA node, and in it the last core.

    The first core of a machine serves most interrupts.
    """
    return part.parts if part.holds_nodes else part.parts[::-1]


def _compact(part: Part, wanted: int, size: Callable[[Core], int]) -> list[Core]:
    """Cores of the smallest part of the machine that has enough, and of the fewest parts of that."""
    enough = [one for one in _within(part) if _size(one, size) >= wanted]
    held = min(enough, key=lambda one: _size(one, size))
    if isinstance(held, Core):
        return [held]
    # None of its parts alone has enough: the largest is taken whole, the last of equals.
    largest = max(reversed(held.parts), key=lambda one: _size(one, size))
    left = wanted - _size(largest, size)
    rest = Domain(tuple(one for one in held.parts if one is not largest), held.holds_nodes)
    return [*cores_in(largest), *(_compact(rest, left, size) if left else ())]


def _within(part: Part) -> Iterator[Part]:
    """All parts of a part, the smallest first, and itself."""
    if isinstance(part, Domain):
        for one in _in_turn(part):
            yield from _within(one)
    yield part


def _scattered(part: Part, wanted: int, size: Callable[[Core], int]) -> list[Core]:
    """Cores by turns from the parts of the machine, and from the parts of these, until there are enough."""
    taken: list[Core] = []
    for core in _by_turns(part):
        if sum(map(size, taken)) >= wanted:
            break
        taken.append(core)
    return taken


def _by_turns(part: Part) -> list[Core]:
    if isinstance(part, Core):
        return [part]
    turns = zip_longest(*map(_by_turns, _in_turn(part)))
    return [core for turn in turns for core in turn if core is not None]
