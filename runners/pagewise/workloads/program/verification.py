"""Page verification: whether the memory of a run was on the pages that its policy asked for. Pure."""

from __future__ import annotations

from pagewise.core.record_parts import ArrayPages, Failure, PageUse
from pagewise.core.units import bytes_text
from pagewise.workloads.program.applied import PageRequest
from pagewise.workloads.program.memory import Memory
from pagewise.workloads.program.smaps import KINDS

#: The exit code of failures of page verification.
UNVERIFIED = 3
_BY_KERNEL = "prctl"
# A heap of one huge page may be there by chance: it begins at a random address, now and then an aligned one.
_FEWEST_PAGES_OF_A_HEAP = 2


def page_use(request: PageRequest, memory: Memory | None, base: int) -> PageUse:
    """The record's `pages`: the coverage of the memory which the policy is for; of several, the least."""
    coverage, arrays = 0.0, []
    if memory is not None:
        of_targets = (_coverage(request, kinds, memory) for kinds in request.targets)
        coverage = min(of_targets, default=memory.total.peak.coverage)
        for kind in KINDS:
            if kind in memory.kinds:
                peak = memory.peak(kind)
                of_kind = request.huge if peak.coverage > 0.5 else base
                arrays.append(ArrayPages(kind, peak.resident, peak.huge, of_kind))
    is_huge = coverage > 0.5 or (memory and request.targets and coverage >= request.enough)
    observed = request.huge if is_huge else base
    return PageUse(
        policy=request.policy,
        # The program decides what `advised` gives it.
        page_size_requested_bytes=request.page if request.targets or request.thp != "advised" else observed,
        page_size_observed_bytes=observed,
        huge_coverage=round(min(coverage, 1.0), 6),
        enough_coverage=None if memory is None else request.enough,
        base_page_size_bytes=base,
        method=_BY_KERNEL if memory is None else memory.method,
        arrays=tuple(arrays),
    )


def page_failure(request: PageRequest, memory: Memory | None, pages: PageUse) -> Failure | None:
    """Why a run is excluded: its memory was not on the pages asked for, or was not observed."""
    unwanted = None if memory is None else _unwanted(request, memory)
    if unwanted is not None or not request.targets:
        return unwanted
    if memory is None:
        return _failure(
            "the program ended before its memory could be sampled: its pages are not verified",
            "give it more to do: it must run for some milliseconds",
        )
    for kinds in request.targets:
        peak = memory.peak(*kinds)
        fewest = _FEWEST_PAGES_OF_A_HEAP if "heap" in kinds and not request.from_pool else 1
        if peak.eligible < fewest * request.page:
            return _failure(
                f"the program has no memory of this kind ({', '.join(kinds)}) that could be on {fewest} or "
                f"more pages of {bytes_text(request.page)}: {bytes_text(peak.resident)} in total"
            )
    if pages.huge_coverage >= request.enough:
        return None
    if memory.refuses_thp and not request.from_pool:
        return _failure(
            f"{pages.huge_coverage:.1%} of the memory that the policy is for was on huge pages over time: "
            "the program refuses them for a process (prctl(PR_SET_THP_DISABLE))",
            "switch that off in the program (Redis: disable-thp no)",
        )
    targets = {kind for kinds in request.targets for kind in kinds}
    wanted = [kind for kind in KINDS if kind in targets and kind in memory.kinds]
    return _failure(
        f"{pages.huge_coverage:.1%} of the memory that the policy is for was on huge pages over time, "
        f"at least {request.enough:.0%} are needed "
        f"({', '.join(_share(kind, memory, request) for kind in wanted)})",
        "more pages in the pool: --prepare-pages 2M:4GiB. What the program maps itself is never taken from it"
        if request.from_pool
        else "--enough-coverage PERCENT accepts less; `pages` in the result lists the kinds of its memory",
    )


def _unwanted(request: PageRequest, memory: Memory) -> Failure | None:
    """Huge pages that the policy excludes."""
    if request.thp == "advised" and (unasked := memory.peak(*KINDS).unasked):
        return _failure(f"{bytes_text(unasked)} on transparent huge pages that the program did not ask for")
    if request.thp != "advised" and not request.targets and (huge := memory.total.peak.huge):
        return _failure(
            f"{bytes_text(huge)} on huge pages, where none were wanted: the program "
            "takes them from the pool itself"
        )
    return None


def _coverage(request: PageRequest, kinds: tuple[str, ...], memory: Memory) -> float:
    mean = memory.mean(*kinds)
    # An allocator may take transparent huge pages where the pool is short.
    seen = mean.pool if kinds in request.of_pool else mean.huge
    huge = memory.counted_mean * request.page if request.by_counter else seen
    return huge / mean.eligible if mean.eligible else 0.0


def _share(kind: str, memory: Memory, request: PageRequest) -> str:
    mean = memory.mean(kind)
    if request.by_counter:
        return f"{kind}: {bytes_text(mean.resident)}"
    return f"{kind}: {bytes_text(mean.huge)} of {bytes_text(mean.eligible)}"


def _failure(reason: str, remedy: str | None = None) -> Failure:
    return Failure(UNVERIFIED, reason, remedy)
