"""Settings of the machine that the user asked to change during a session."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pagewise.core.configuration import RunSettings
from pagewise.core.errors import SelectionError
from pagewise.core.manifest import SwitchedOff
from pagewise.core.plan import Cell, Subject, with_settings
from pagewise.machine.placement import Placement
from pagewise.machine.settings import clocks, hugepages, prefetchers, thp
from pagewise.machine.settings.kinds import Pool
from pagewise.session.options import PagesToPrepare, SessionOptions

#: As a setting of prefetchers or clocks: as the machine has them.
UNCHANGED = "unchanged"
_PREFETCHERS, _CLOCKS = "prefetchers", "clocks"


def in_all_states(subjects: Sequence[Subject], options: SessionOptions) -> list[Subject]:
    """The subjects with each cell once per combination of environment variables and states of the machine.

    Baselines have the first value of each variable; every other setting changes one.
    """
    machine, variables = options.machine, options.settings
    first = {name: values[0] for name, values in variables.items()}
    changed = [first | {name: value} for name, values in variables.items() for value in values[1:]]
    varied = with_settings(subjects, [RunSettings(environment=each) for each in (first, *changed) if each])
    for name, states in (
        ("node-state", machine.node_states),
        (_PREFETCHERS, _names(machine.prefetchers)),
        (_CLOCKS, _names(machine.clocks)),
    ):
        named = [RunSettings(machine={name: state}) for state in states if state is not None]
        varied = with_settings(varied, named)
    return varied


@dataclass(frozen=True)
class MachineSettings:
    """Hardware prefetchers and clocks: settings by the name that cells have, by None that of all runs.

    A setting that leaves them as they are is None, or empty.
    """

    prefetchers: Mapping[str | None, prefetchers.Control | None] = field(default_factory=dict)
    clocks: Mapping[str | None, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def find(cls, options: SessionOptions, places: Sequence[Placement]) -> MachineSettings:
        """How the requested settings are made on the CPUs of these placements; changes nothing.

        Raises SelectionError, also for two settings that are equal, and RefusedError.
        """
        cpus = {cpu for place in places for cpu in place.cpus}
        words = [_parts(each) for each in options.machine.clocks]
        files = [set(clocks.find_clocks(parts)) for parts in words]
        _check_different("--vary clocks", files)
        controls = [
            prefetchers.find_control(parts, cpus) if parts else None
            for parts in map(_parts, options.machine.prefetchers)
        ]
        _check_different("--vary prefetchers", [each and each.setting for each in controls])
        return cls(
            dict(zip(_names(options.machine.prefetchers), controls, strict=True)),
            dict(zip(_names(options.machine.clocks), words, strict=True)),
        )

    def prefix(self, cell: Cell) -> tuple[str, ...]:
        """A program with options that starts each run of a cell, if one sets the prefetchers."""
        control = self.prefetchers.get(cell.settings.machine.get(_PREFETCHERS))
        return control.program if control else ()

    @contextmanager
    def set_for(self, cell: Cell) -> Iterator[None]:
        """Sets what only runs of this cell have, during the block, and restores it. Raises RefusedError."""
        with ExitStack() as stack:
            if words := self.clocks.get(cell.settings.machine.get(_CLOCKS) or ""):
                stack.enter_context(clocks.clocks_set(words))
            if (control := self.prefetchers.get(cell.settings.machine.get(_PREFETCHERS) or "")) is not None:
                stack.enter_context(prefetchers.switched_off(control))
            yield

    @contextmanager
    def set_for_all(self, note: Callable[..., None]) -> Iterator[None]:
        """Sets what all runs have, during the block; passes it and the compared settings to `note`."""
        with ExitStack() as stack:
            if words := self.clocks.get(None):
                note(clocks=tuple(stack.enter_context(clocks.clocks_set(words))))
            if (control := self.prefetchers.get(None)) is not None:
                note(prefetchers=stack.enter_context(prefetchers.switched_off(control)))
            compared: dict[str, SwitchedOff] = {
                name: prefetchers.describe(control)
                for name, control in self.prefetchers.items()
                if name is not None and control is not None
            }
            if compared:
                note(compared_prefetchers=compared)
            yield


def _parts(setting: Sequence[str]) -> tuple[str, ...]:
    """The parts of a setting; none to leave the machine unchanged."""
    return () if tuple(setting) == (UNCHANGED,) else tuple(setting)


def _names(settings: Sequence[Sequence[str]]) -> list[str | None]:
    """The names of settings among a cell's options, which have commas between them; None for the only one."""
    return ["+".join(parts) if len(settings) > 1 else None for parts in settings]


def _check_different(option: str, settings: Sequence[object]) -> None:
    if any(setting in settings[:at] for at, setting in enumerate(settings)):
        raise SelectionError(
            "two settings that are compared are equal", where=option, remedy="give each setting once"
        )


@dataclass(frozen=True)
class Needs:
    """The huge pages that the rounds need.

    thp_policies: policies whose THP sizes must be on. pool_pages: by page size, free pages of each pool.
    """

    thp_policies: Collection[str] = ()
    pool_pages: Mapping[int, int] = field(default_factory=dict)


def pools_used(placements: Sequence[Placement], page_bytes: int) -> list[Pool]:
    """The hugetlb pools of this page size from which runs in these placements take pages."""
    return hugepages.pools_of({node for place in placements for node in place.nodes}, page_bytes=page_bytes)


@contextmanager
def changed_settings(
    note: Callable[..., None], placements: Sequence[Placement], prepare: PagesToPrepare | None, needs: Needs
) -> Iterator[None]:
    """Prepares huge pages as the user permits until the block ends, and passes what was done to `note`.

    Raises RefusedError, SelectionError.
    """
    with ExitStack() as stack:
        if prepare is not None and (prepare.thp or prepare.sizes):
            policies = {*prepare.sizes, *(needs.thp_policies if prepare.thp else ())}
            note(switches=tuple(stack.enter_context(thp.switched_on(policies))))
        if prepare is not None and (prepare.pools or prepare.requests):
            wanted = list(_pools_wanted(placements, prepare, needs.pool_pages))
            # The largest pages first: they need the most memory in one piece.
            wanted.sort(key=lambda each: each[0][0].page_bytes, reverse=True)
            reservations = [
                stack.enter_context(hugepages.reserve_pages(pools, pages)) for pools, pages in wanted
            ]
            note(pool=tuple(reservations))
        yield


def _pools_wanted(
    placements: Sequence[Placement], prepare: PagesToPrepare, needed: Mapping[int, int]
) -> Iterator[tuple[list[Pool], int]]:
    """Pools with the pages to have in each: what the user names, and of other sizes what is needed."""
    named = {request.page_bytes for request in prepare.requests}
    for request in prepare.requests:
        pools = pools_used(placements, request.page_bytes)
        if request.node is not None:
            pools = hugepages.pools_of({request.node}, page_bytes=request.page_bytes)
            if f"node{request.node}" not in pools[0].folder.parts:
                raise SelectionError(
                    f"NUMA node {request.node} has no hugetlb pool of these pages",
                    where="--prepare-pages",
                    remedy="`pagewise doctor` lists the page sizes, `lstopo` the nodes",
                )
        yield pools, -(-request.pages // len(pools))
    for size, pages in needed.items() if prepare.pools else ():
        if size not in named:
            yield pools_used(placements, size), pages
