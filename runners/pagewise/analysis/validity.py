"""Which records may be ranked: the result passed its check, pages and placement were as requested.

Of a result, the modules whose records were altered or whose files changed are excluded as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pagewise.core.fields import cpu_list, list_text
from pagewise.core.page_policy import ENOUGH_COVERAGE, PagePolicy
from pagewise.core.record import Record
from pagewise.core.record_parts import Binding, PageUse, ProcessPlacement, RankUse, ThreadPlaces
from pagewise.core.units import bytes_text

if TYPE_CHECKING:
    from pagewise.core.manifest import ChangedFile
    from pagewise.core.result import Result

#: Why a run or a configuration is excluded, for programs; docs/explanation/trust.md lists them.
Code = Literal[
    "failed",
    "wrong_result",
    "pages_unavailable",
    "wrong_pages",
    "policy_not_kept",
    "wrong_placement",
    "wrong_build",
    "wrong_work",
    "wrong_times",
    "settings_differ",
    "disturbed",
    "file_changed",
    "records_altered",
    "incomplete",
    "not_measured",
]
_FAILURES: dict[str, tuple[Code, str]] = {
    "check_failed": ("wrong_result", "the result failed its check: "),
    "pages_unavailable": ("pages_unavailable", "the pages are unavailable: "),
}


@dataclass(frozen=True)
class Exclusion:
    """Why a run or a configuration must not be ranked: for programs, and as a sentence."""

    code: Code
    reason: str


def invalid_reason(record: Record) -> str | None:
    """Why this record must not be ranked, as a sentence; None when it may."""
    fault = exclusion(record)
    return None if fault is None else fault.reason


def exclusion(record: Record) -> Exclusion | None:
    """Why this record must not be ranked, or None when it may."""
    return next(_faults(record), None)


def _faults(record: Record) -> Iterator[Exclusion]:
    """All reasons why this record must not be ranked."""
    validation, pages, placement, run = record.validation, record.pages, record.placement, record.run
    if record.failure is not None:
        code, prefix = _FAILURES.get(record.status, ("failed", ""))
        yield Exclusion(code, prefix + record.failure.message)
    if record.simulated is not None:
        # A simulation measures no time and touches no page.
        return
    if validation is None or pages is None or placement is None:
        yield Exclusion("failed", "it contains no measurement")
        return
    if not validation.passed:
        yield Exclusion("wrong_result", f"the result failed its check ({validation.method})")
    built = record.configuration.hugepages
    # A record without a session does not name the policy that was requested: it may be of any size.
    expected = pages.policy if run is None and PagePolicy(pages.policy).kind == built else built
    expected = (run and run.pages) or expected
    if wrong := _wrong_pages(pages, expected):
        yield Exclusion("wrong_pages", f"wrong pages: {wrong}")
    if run is None or run.bound is None:
        return
    if wrong := _wrong_placement(placement, run.bound):
        yield Exclusion("wrong_placement", f"wrong placement: {wrong}")
    ranks = {use.rank: use for use in record.ranks}
    for number in range(run.bound.ranks or 0):
        if number not in ranks:
            yield Exclusion("failed", f"rank {number} was not observed")
        else:
            yield from _faults_of_rank(ranks[number], placement, run.bound, expected)


def _faults_of_rank(
    use: RankUse, placement: ThreadPlaces, bound: Binding, expected: str
) -> Iterator[Exclusion]:
    """The faults of a rank: it has other CPUs, another memory policy or wrong pages."""
    number = use.rank
    own = slice(number * bound.threads, (number + 1) * bound.threads)
    cpus = bound.cpus[own]
    wrong = _wrongly_bound(replace(bound, cpus=cpus, observed=ProcessPlacement(use.cpus, use.memory)))
    others = {*placement.cpus[own]} - {*cpus} if len(placement.cpus) == len(bound.cpus) else ()
    if wrong is None and others:
        wrong = f"a thread ran on CPU {list_text(others)} instead of {list_text(cpus)}"
    if wrong is not None:
        yield Exclusion("wrong_placement", f"wrong placement: rank {number}: {wrong}")
    if use.pages is not None and (wrong := _wrong_pages(use.pages, expected)):
        yield Exclusion("wrong_pages", f"wrong pages: rank {number}: {wrong}")


def _wrongly_bound(bound: Binding) -> str | None:
    """How a process's CPUs or memory policy differ from the requested ones, None if they do not."""
    requested, observed = sorted(bound.cpus), bound.observed
    if observed.cpus is not None and sorted(observed.cpus) != requested:
        return f"it was bound to CPU {list_text(observed.cpus)} instead of {list_text(requested)}"
    if observed.memory is not None and observed.memory != bound.memory:
        return f"its memory policy was {observed.memory} instead of {bound.memory}"
    return None


def _wrong_placement(placement: ThreadPlaces, bound: Binding) -> str | None:
    """Whether its process was bound differently than requested, or its threads ran elsewhere."""
    cpus, requested = placement.cpus, bound.cpus
    if wrong := _wrongly_bound(bound):
        return wrong
    policy = placement.memory_policy or bound.memory
    # A kernel that measures NUMA sets its own policy if none is requested.
    if bound.memory not in ("default", policy):
        return f"it set its memory policy to {policy} instead of {bound.memory}"
    if wrong := _memory_elsewhere(placement, bound.memory):
        return wrong
    others = {*cpus, *(placement.cpus_at_end or ()), *cpu_list(placement.cpus_allowed or "")} - {*requested}
    if others:
        return f"a thread might run on CPU {list_text(others)} instead of {list_text(requested)}"
    if placement.threads == bound.threads == len(cpus) and len(set(cpus)) < len(cpus):
        return f"its {len(cpus)} threads ran on CPU {list_text(set(cpus))} alone"
    return None


def _memory_elsewhere(placement: ThreadPlaces, requested: str) -> str | None:
    """Whether memory bound to some nodes was on others, beyond the small part that was there before."""
    kind, _, nodes = requested.partition(":")
    amounts = placement.node_bytes
    if kind != "bind" or not amounts:
        return None
    bound = cpu_list(nodes)
    elsewhere = sum(amount for node, amount in enumerate(amounts) if node not in bound)
    if elsewhere <= (1.0 - ENOUGH_COVERAGE) * sum(amounts):
        return None
    return f"{bytes_text(elsewhere)} were on other NUMA nodes than {nodes}"


def _wrong_pages(pages: PageUse, expected: str) -> str | None:
    policy, coverage = pages.policy, pages.huge_coverage
    if policy != expected:
        return f"the run used the policy {policy}, the configuration is {expected}"
    if PagePolicy(policy).is_base:
        return f"{coverage:.1%} on huge pages, but none were requested" if coverage > 0 else None
    enough = ENOUGH_COVERAGE if pages.enough_coverage is None else pages.enough_coverage
    if coverage < enough:
        return f"{coverage:.1%} on huge pages, but at least {enough:.0%} are required"
    requested, observed = pages.page_size_requested_bytes, pages.page_size_observed_bytes
    if requested != observed:
        return f"{bytes_text(observed)} observed, {bytes_text(requested)} requested"
    return None


#: Why nothing of a module may be ranked, None if it may.
Excluding = Callable[[str], Exclusion | None]


def nothing_excluded(module: str) -> None:
    """Excludes no module."""


def excluding(result: Result) -> Excluding:
    """The exclusions of a result, by module: altered records, and files that changed during the session."""
    changes: dict[str, list[ChangedFile]] = {}
    for entry in result.manifest.changed_files:
        changes.setdefault(entry.module, []).append(entry)

    def find_exclusion(module: str) -> Exclusion | None:
        if result.altered is not None:
            return Exclusion("records_altered", result.altered)
        if module not in changes:
            return None
        first, *_ = changed = changes[module]
        files = ", ".join(entry.file for entry in changed)
        return Exclusion("file_changed", f"changed during the session, in round {first.round}: {files}")

    return find_exclusion


def trusted_records(result: Result) -> list[Record]:
    """The records of modules that may be ranked, for tables next to the analysis."""
    excluded = excluding(result)
    return [record for record in result.records if record.run is None or excluded(record.run.module) is None]
