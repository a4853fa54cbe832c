"""Page verification: whether the memory of a run was on the pages that its policy asked for. Pure."""

from __future__ import annotations

from pagewise.core.record_parts import ArrayPages, Failure, PageUse
from pagewise.core.units import bytes_text
from pagewise.workloads.program.applied import PolicyAnswer, PolicyPart
from pagewise.workloads.program.memory import Memory
from pagewise.workloads.program.smaps import KINDS

#: The exit code of failures of page verification.
UNVERIFIED = 3
_BY_KERNEL = "prctl"
# A heap of one huge page may be there by chance: it begins at a random address, now and then an aligned one.
_FEWEST_PAGES_OF_A_HEAP = 2


def verify(
    answer: PolicyAnswer, enough: float, memory: Memory | None, base: int
) -> tuple[PageUse, Failure | None]:
    """The record's `pages` of a run under this policy, and why it is excluded.

    enough: the minimum coverage over time. base: the base page's size.
    """
    huge, coverage, arrays = answer.page_size_bytes, 0.0, []
    enough = enough if answer.reached else 0.0
    if memory is not None:
        of_parts = (_coverage(answer, part, memory) for part in answer.reached)
        # Of several parts, the least.
        coverage = min(of_parts, default=memory.total.peak.coverage)
        for kind in (kind for kind in KINDS if kind in memory.kinds):
            peak = memory.peak(kind)
            arrays.append(ArrayPages(kind, peak.resident, peak.huge, huge if peak.coverage > 0.5 else base))
    is_huge = coverage > 0.5 or (memory and answer.reached and coverage >= enough)
    observed = huge if is_huge else base
    # The program decides what `advised` gives it.
    unreached = observed if answer.thp == "advised" else base
    pages = PageUse(
        policy=answer.policy,
        page_size_requested_bytes=huge if answer.reached else unreached,
        page_size_observed_bytes=observed,
        huge_coverage=round(min(coverage, 1.0), 6),
        enough_coverage=None if memory is None else enough,
        base_page_size_bytes=base,
        method=_BY_KERNEL if memory is None else memory.method,
        arrays=tuple(arrays),
    )
    return pages, _failure(answer, memory, pages.huge_coverage, enough)


def _failure(answer: PolicyAnswer, memory: Memory | None, coverage: float, enough: float) -> Failure | None:
    """Why a run is excluded: its memory was not on the pages asked for, or was not observed."""
    unwanted = None if memory is None else _find_unwanted(answer, memory)
    if unwanted is not None or not answer.reached:
        return unwanted
    if memory is None:
        return Failure(
            UNVERIFIED,
            "the program ended before its memory could be sampled: its pages are not verified",
            "give it more to do: it must run for some milliseconds",
        )
    size = bytes_text(answer.page_size_bytes)
    for part in answer.reached:
        peak = memory.peak(*part.kinds)
        fewest = _FEWEST_PAGES_OF_A_HEAP if "heap" in part.kinds and not answer.from_pool else 1
        if peak.eligible < fewest * answer.page_size_bytes:
            return Failure(
                UNVERIFIED,
                f"the program has no memory of this kind ({', '.join(part.kinds)}) that could be on {fewest} "
                f"or more pages of {size}: {bytes_text(peak.resident)} in total",
            )
    if coverage >= enough:
        return None
    reason = f"{coverage:.1%} of the memory that the policy is for was on huge pages over time"
    if memory.refuses_thp and not answer.from_pool:
        return Failure(
            UNVERIFIED,
            f"{reason}: the program refuses them for a process (prctl(PR_SET_THP_DISABLE))",
            "switch that off in the program (Redis: disable-thp no)",
        )
    targets = {kind for part in answer.reached for kind in part.kinds}
    shares = (_share(kind, memory, answer) for kind in KINDS if kind in targets and kind in memory.kinds)
    remedy = "--enough-coverage PERCENT accepts less; `pages` in the result lists the kinds of its memory"
    if answer.from_pool:
        remedy = "more pages in the pool: --prepare-pages 2M:4GiB. It does not serve what the program maps"
    elif "heap" in targets and "reuse" not in answer.policy.split("+"):
        kept = f"with reuse+{answer.policy}, glibc keeps blocks of a few MiB in one heap"
        remedy = f"{kept}; --enough-coverage PERCENT accepts less"
    return Failure(UNVERIFIED, f"{reason}, at least {enough:.0%} are needed ({', '.join(shares)})", remedy)


def _find_unwanted(answer: PolicyAnswer, memory: Memory) -> Failure | None:
    """Huge pages that the policy excludes."""
    if answer.thp == "advised":
        unasked = memory.peak(*KINDS).unasked
        reason = f"{bytes_text(unasked)} on transparent huge pages that the program did not ask for"
        return Failure(UNVERIFIED, reason) if unasked else None
    huge = 0 if answer.reached else memory.total.peak.huge
    reason = f"{bytes_text(huge)} on huge pages, where none were wanted: the program itself takes them"
    return Failure(UNVERIFIED, reason) if huge else None


def _coverage(answer: PolicyAnswer, part: PolicyPart, memory: Memory) -> float:
    mean = memory.mean(*part.kinds)
    # An allocator may take transparent huge pages where the pool is short.
    seen = mean.pool if part.source == "pool" else mean.huge
    huge = memory.counted_mean * answer.page_size_bytes if answer.by_counter else seen
    return huge / mean.eligible if mean.eligible else 0.0


def _share(kind: str, memory: Memory, answer: PolicyAnswer) -> str:
    mean = memory.mean(kind)
    if answer.by_counter:
        return f"{kind}: {bytes_text(mean.resident)}"
    return f"{kind}: {bytes_text(mean.huge)} of {bytes_text(mean.eligible)}"
