"""From samples of memory to the verification of a run's pages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import configuration, record, varied
from pagewise.analysis.usage import memory_rows, sampling_cost
from pagewise.core.node_state import ProcessThp
from pagewise.core.record_parts import Failure, PageUse
from pagewise.workloads.program import verification
from pagewise.workloads.program.applied import PolicyAnswer, PolicyPart
from pagewise.workloads.program.memory import Memory, complete, from_samples, from_snapshots, observed_memory
from pagewise.workloads.program.sampler import Sample, Samples
from pagewise.workloads.program.smaps import Account, Usage, parse_status

MIB, HUGE = 1 << 20, 2 << 20
PARTS = {
    "malloc": PolicyPart("malloc", "thp", 0, ("heap", "anonymous")),
    "text": PolicyPart("text", "thp", 0, ("text",)),
    "thp:64k": PolicyPart("thp", "thp", 64 << 10, ("anonymous",)),
    "hugetlbfs": PolicyPart("hugetlbfs", "pool", 0, ("heap", "anonymous")),
    "advised": PolicyPart("advised", "thp", 0, ()),
}


def answer(policy: str, thp: ProcessThp = "allowed") -> PolicyAnswer:
    """The launcher's answer for a policy on a node with huge pages of 2 MiB."""
    parts = tuple(PARTS[name] for name in policy.split("+") if name in PARTS)
    page = max((part.size_bytes for part in parts), default=0) or HUGE
    return PolicyAnswer("pagewise.check/1", policy, True, None, None, None, thp, page, HUGE, parts)


THP, NONE, BOTH = answer("malloc"), answer("none", "refused"), answer("text+malloc")
SMALL, POOL = answer("thp:64k"), answer("hugetlbfs")
ACCEPT = "--enough-coverage"


def usage(resident: int, huge: int = 0, **more: int) -> Usage:
    """Of so many MiB; `more` are in MiB, too."""
    return Usage(resident * MIB, huge * MIB, resident * MIB, **{key: n * MIB for key, n in more.items()})


def sample(seconds: float, counted: int = 0, **kinds: Usage) -> Sample:
    return Sample(seconds, sum(kinds.values(), Usage()), kinds, 1, counted)


def memory(*samples: Sample, end: float | None = None):
    return from_samples(Samples(list(samples), 0.001, end or samples[-1].seconds + 1.0))


def test_a_mean_is_over_time_and_a_peak_is_not():
    observed = memory(
        sample(0.0, heap=usage(10)), sample(1.0, heap=usage(100, 100)), sample(3.0, heap=usage(10)), end=4.0
    )
    # 10 MiB for one second, 100 for two, 10 for one.
    assert observed.mean("heap").resident == pytest.approx((10 + 200 + 10) / 4 * MIB, rel=1e-6)
    assert observed.mean("heap").huge == pytest.approx(50 * MIB, rel=1e-6)
    assert observed.peak("heap") == usage(100, 100)
    late = memory(sample(0.0, heap=usage(10)), sample(3.0, heap=usage(10), bss=usage(40)), end=4.0)
    assert late.mean("bss").resident == 10 * MIB and late.peak("bss").resident == 40 * MIB


def test_samples_without_kinds_count_for_the_total():
    part = Sample(1.0, usage(500), None, 3)
    observed = memory(sample(0.0, heap=usage(10)), part, sample(2.0, heap=usage(10)), end=3.0)
    assert observed.total.peak.resident == 500 * MIB and observed.processes == 3
    assert observed.mean("heap").resident == 10 * MIB and (observed.samples, observed.full_samples) == (3, 2)
    assert from_samples(Samples()) is None and from_samples(Samples([replace(part, seconds=0.0)])) is None


def test_of_snapshots_each_process_counts_at_its_fullest():
    observed = from_snapshots([[{"heap": usage(1)}, {"heap": usage(9, 8)}], [{"heap": usage(5)}]])
    assert observed.peak("heap") == usage(14, 8) and observed.processes == 2
    assert from_snapshots([]) is None and from_snapshots([[]]) is None


def verified(answer: PolicyAnswer, observed: Memory | None) -> tuple[PageUse, Failure | None]:
    return verification.verify(answer, 0.8, observed, 4096)


@pytest.mark.parametrize(("request_", "named"), [(THP, True), (POOL, False)])
def test_a_process_that_refuses_huge_pages_is_the_cause(request_: PolicyAnswer, named: bool):
    plain = [sample(seconds, heap=usage(100)) for seconds in (0.0, 1.0, 2.0)]
    refusing = replace(plain[2], account=parse_status("VmHWM:\t4 kB\nTHP_enabled:\t0\n"))
    usual, failure = (verified(request_, memory(*plain[:2], last))[1] for last in (plain[2], refusing))
    assert usual is not None and failure is not None and failure.exit_code == 3
    assert (failure.message != usual.message) == named == ("PR_SET_THP_DISABLE" in failure.message)
    # Enough of the memory is on huge pages: another process refused them.
    fine = replace(sample(0.0, heap=usage(9, 9)), account=Account(refuses_thp=True))
    assert not named or verified(request_, memory(fine))[1] is None


@pytest.mark.parametrize(
    ("request_", "seen", "coverage", "fault"),
    [
        (THP, sample(0.0, heap=usage(100, 90)), 0.9, None),
        (THP, sample(0.0, heap=usage(50, 50), anonymous=usage(50)), 0.5, ("anonymous|0 B|50 MiB", ACCEPT)),
        (THP, None, 0.0, ("", "")),
        # Of two kinds, the worse one counts.
        (BOTH, sample(0.0, text=usage(8), heap=usage(100, 100)), 0.0, ("text|0 B|8 MiB", ACCEPT)),
        # The program has no memory that the policy reaches.
        (THP, sample(0.0, heap=usage(1), bss=usage(500)), 0.0, ("heap|anonymous|1 MiB", None)),
        # A heap that begins at an aligned address is on one huge page by chance.
        (THP, sample(0.0, heap=usage(2, 2), bss=usage(500)), 1.0, ("heap|anonymous|2 MiB", None)),
        (POOL, sample(0.0, heap=usage(2, 2, pool=2), bss=usage(500)), 1.0, None),
        # Transparent pages do not count for a pool: mimalloc takes them where the pool is short.
        (POOL, sample(0.0, heap=usage(50, 50, pool=20)), 0.4, ("", "--prepare-pages")),
        (POOL, sample(0.0, heap=usage(50, 50, pool=50)), 1.0, None),
        (NONE, sample(0.0, heap=usage(9)), 0.0, None),
        (NONE, sample(0.0, heap=usage(9, 2)), 2 / 9, ("2 MiB", None)),
        (NONE, None, 0.0, None),
        # By the kernel's counter.
        (SMALL, sample(0.0, counted=1600, anonymous=usage(100)), 1.0, None),
        (SMALL, sample(0.0, counted=100, anonymous=usage(100)), 0.0625, ("", ACCEPT)),
    ],
)
def test_pages_match_the_policy_or_the_run_is_excluded(
    request_: PolicyAnswer, seen: Sample | None, coverage: float, fault: tuple[str, str | None] | None
):
    """fault: what the reason names, and the remedy."""
    pages, failure = verified(request_, seen and memory(seen))
    assert pages.huge_coverage == pytest.approx(coverage, abs=1e-6) and (failure is None) == (fault is None)
    assert pages.page_size_observed_bytes == (request_.page_size_bytes if coverage > 0.5 else 4096)
    assert seen is not None or pages.method == "prctl"
    if fault is not None:
        named, remedy = fault
        assert failure.exit_code == 3 and all(word in failure.message for word in named.split("|"))
        assert (failure.remedy is None) == (remedy is None) and (remedy or "") in (failure.remedy or "")


def test_the_kernels_counter_is_kept_where_snapshots_show_the_memory():
    one = Samples([sample(0.0, counted=1600, anonymous=usage(100))], 0.001, 1.0)
    both = observed_memory(one, [[{"anonymous": usage(100)}]])
    assert both.counted_peak == 1600 and verified(SMALL, both)[1] is None
    assert verified(SMALL, observed_memory(Samples(), [[{"anonymous": usage(100)}]]))[1] is not None


def test_kinds_without_samples_come_from_the_untimed_run():
    seen = memory(sample(0.0, heap=usage(10, 10)))
    other = from_snapshots([[{"heap": usage(12), "bss": usage(50, 48)}]])
    both = complete(seen, other, ("heap", "bss"))
    assert both.peak("heap") == usage(10, 10) and both.peak("bss") == usage(50, 48)
    assert "bss" in both.method and seen.method in both.method and other.method in both.method
    assert complete(seen, other, ("heap",)) == seen and complete(seen, None, ("bss",)) == seen


def test_the_tables_of_memory_and_of_the_cost_of_sampling():
    observed = memory(sample(0.0, heap=usage(100, 90)), end=2.0).to_record()
    thp = record(configuration(module="code/thp"), 1.0)
    trial = replace(record(configuration(module="code/none"), 1.0), program=observed)
    timed = replace(thp, program=observed)
    trial = varied(trial, "run", series="trial")
    rows = memory_rows([trial, timed, timed, thp])
    assert [(row.program, row.hugepages, row.kind) for row in rows] == [
        ("code", policy, kind) for policy in ("none", "thp") for kind in ("heap", "all")
    ]
    assert rows[2].mean_coverage == pytest.approx(0.9)
    assert sampling_cost([trial]) is None and sampling_cost([timed]).share == pytest.approx(0.0005)


def test_with_advised_only_memory_that_was_not_advised_is_wrong():
    advised, both = answer("advised", "advised"), answer("text+advised+malloc", "advised")
    right = memory(sample(0.0, heap=usage(64, 60), text=usage(10, 10)))
    wrong = memory(sample(0.0, heap=usage(64, 60, unasked=2), text=usage(10, 10)))
    for request in (advised, both):
        assert verified(request, right)[1] is None
        failure = verified(request, wrong)[1]
        assert failure is not None and failure.exit_code == 3
    pages, _ = verified(advised, right)
    assert pages.page_size_observed_bytes == pages.page_size_requested_bytes == HUGE
