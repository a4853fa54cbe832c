"""Settings of the machine that the user asked to change during a session."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from pagewise.machine.placement import Placement
from pagewise.machine.settings import clocks, hugepages, prefetchers, thp
from pagewise.machine.settings.kinds import Pool
from pagewise.session.workload import Recorder


def pools_used(placements: Sequence[Placement], page_bytes: int) -> list[Pool]:
    """The hugetlb pools of this page size from which runs in these placements take pages."""
    return hugepages.pools_of({node for place in placements for node in place.nodes}, page_bytes=page_bytes)


@contextmanager
def changed_settings(
    recorder: Recorder,
    placements: Sequence[Placement],
    *,
    thp_policies: Collection[str] | None = None,
    pool_pages: Mapping[int, int] | None = None,
    control: prefetchers.Control | None = None,
    clock_settings: Sequence[str] = (),
) -> Iterator[None]:
    """Changes settings until the block ends, and notes them in the manifest. None: leave these as they are.

    thp_policies: policies whose THP sizes are switched on. pool_pages: by page size, pages to reserve in each
    pool. control: the hardware prefetchers to switch off. clock_settings: as `governor=performance`. Raises
    RefusedError.
    """
    with ExitStack() as stack:
        if clock_settings:
            recorder.note(clocks=tuple(stack.enter_context(clocks.clocks_set(clock_settings))))
        if thp_policies is not None:
            switched = stack.enter_context(thp.switched_on(set(thp_policies)))
            recorder.note(switches=tuple(switched))
        if pool_pages is not None:
            # The largest pages first: they need the most memory in one piece.
            reservations = [
                stack.enter_context(hugepages.reserved(pools_used(placements, size), pages))
                for size, pages in sorted(pool_pages.items(), reverse=True)
            ]
            recorder.note(pool=tuple(reservations))
        if control is not None:
            recorder.note(prefetchers=stack.enter_context(prefetchers.switched_off(control)))
        yield
