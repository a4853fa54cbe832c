"""Which records may be ranked: the result passed its check, pages and placement were those asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pagewise.core.cpus import cpu_list, list_text
from pagewise.core.page_policy import ENOUGH_COVERAGE, PagePolicy
from pagewise.core.record import Record
from pagewise.core.record_parts import Binding, PageUse, ThreadPlaces
from pagewise.core.units import bytes_text

#: Why a run or a configuration is excluded, for programs; docs/trust.md lists them.
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


@dataclass(frozen=True)
class Exclusion:
    """Why a run or a configuration must not be ranked: for programs, and as a sentence."""

    code: Code
    reason: str


def invalid_reason(record: Record) -> str | None:
    """Why this record must not be ranked, as a sentence; None when it may."""
    found = exclusion(record)
    return None if found is None else found.reason


def exclusion(record: Record) -> Exclusion | None:
    """Why this record must not be ranked, or None when it may."""
    if record.failure is not None:
        message = record.failure.message
        told: dict[str, tuple[Code, str]] = {
            "check_failed": ("wrong_result", f"the result failed its check: {message}"),
            "pages_unavailable": ("pages_unavailable", f"the pages are unavailable: {message}"),
        }
        return Exclusion(*told.get(record.status, ("failed", message)))
    if record.modelled is not None:
        # A simulation takes no time and touches no page.
        return None
    if record.validation is None or record.pages is None or record.placement is None:
        return Exclusion("failed", "it holds nothing measured")
    if not record.validation.passed:
        return Exclusion("wrong_result", f"the result failed its check ({record.validation.method})")
    run = record.run
    built, policy = record.configuration.hugepages, record.pages.policy
    # A record by itself does not name the policy that its program was started with: any size was asked for.
    wanted = policy if run is None and PagePolicy(policy).kind == built else built
    wrong = _wrong_pages(record.pages, (run and run.pages) or wanted)
    if wrong is not None:
        return Exclusion("wrong_pages", wrong)
    wrong = _wrong_place(record.placement, run.bound) if run and run.bound else None
    return None if wrong is None else Exclusion("wrong_placement", wrong)


def wrongly_bound(bound: Binding) -> str | None:
    """Whether a process had other CPUs or another policy of memory than were asked for, and which."""
    asked, had = sorted(bound.cpus), bound.had
    if had.cpus is not None and sorted(had.cpus) != asked:
        return f"wrong placement: it was bound to CPU {list_text(had.cpus)}, asked for {list_text(asked)}"
    if had.memory is not None and had.memory != bound.memory:
        return f"wrong placement: its memory policy was {had.memory}, asked for {bound.memory}"
    return None


def _wrong_place(placement: ThreadPlaces, bound: Binding) -> str | None:
    """Whether its process was bound otherwise than asked for, or its threads ran elsewhere."""
    cpus, asked = placement.cpus, bound.cpus
    away = {*cpus, *cpu_list(placement.cpus_allowed or "")} - {*asked}
    if wrong := wrongly_bound(bound):
        return wrong
    policy = placement.memory_policy or bound.memory
    # A kernel that is about NUMA sets a policy of its own where none is asked for.
    if bound.memory not in ("default", policy):
        return f"wrong placement: it set its memory policy to {policy}, asked for {bound.memory}"
    if wrong := _memory_elsewhere(placement, bound.memory):
        return wrong
    if away:
        return f"wrong placement: a thread might run on CPU {list_text(away)}, asked for {list_text(asked)}"
    if placement.threads == bound.threads == len(cpus) and len(set(cpus)) < len(cpus):
        return f"wrong placement: its {len(cpus)} threads ran on CPU {list_text(set(cpus))} alone"
    return None


def _memory_elsewhere(placement: ThreadPlaces, asked: str) -> str | None:
    """Whether memory that was to be on some nodes was on others; what was there before may be."""
    kind, _, nodes = asked.partition(":")
    amounts = placement.node_bytes
    if kind != "bind" or not amounts:
        return None
    bound = cpu_list(nodes)
    away = sum(amount for node, amount in enumerate(amounts) if node not in bound)
    if away <= (1.0 - ENOUGH_COVERAGE) * sum(amounts):
        return None
    return f"wrong placement: {bytes_text(away)} were on other NUMA nodes than {nodes}"


def _wrong_pages(pages: PageUse, wanted: str) -> str | None:
    policy, coverage = pages.policy, pages.huge_coverage
    if policy != wanted:
        return f"wrong pages: the run used the policy {policy}, the configuration is {wanted}"
    if PagePolicy(policy).is_base:
        return f"wrong pages: {coverage:.1%} on huge pages, where none were wanted" if coverage > 0 else None
    enough = ENOUGH_COVERAGE if pages.enough_coverage is None else pages.enough_coverage
    if coverage < enough:
        return f"wrong pages: {coverage:.1%} on huge pages, where at least {enough:.0%} are needed"
    requested, observed = pages.page_size_requested_bytes, pages.page_size_observed_bytes
    if requested != observed:
        return f"wrong pages: {bytes_text(observed)} observed, {bytes_text(requested)} requested"
    return None
