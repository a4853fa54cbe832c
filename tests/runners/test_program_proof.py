"""From samples of memory to the observed pages of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import configuration, record, varied
from pagewise.analysis.program import memory_rows, sampling_cost
from pagewise.workloads.program.policy import PageRequest
from pagewise.workloads.program.proof import completed, lack, pages, summed_up, told_by_snapshots
from pagewise.workloads.program.sampler import Sample, Samples
from pagewise.workloads.program.smaps import Usage

MIB, HUGE = 1 << 20, 2 << 20
THP = PageRequest("glibc", (("heap", "anonymous"),), HUGE, HUGE, 0.8, False)
NONE = PageRequest("none", (), 4096, HUGE, 0.0, False)
BOTH = PageRequest("text+glibc", (("text",), ("heap", "anonymous")), HUGE, HUGE, 0.8, False)
SMALL = PageRequest("thp:64k", (("anonymous",),), 64 << 10, 64 << 10, 0.8, True)


def usage(resident: int, huge: int = 0) -> Usage:
    return Usage(resident * MIB, huge * MIB, resident * MIB)


def sample(seconds: float, given: int = 0, **kinds: Usage) -> Sample:
    return Sample(seconds, sum(kinds.values(), Usage()), kinds, 1, given)


def memory(*samples: Sample, end: float | None = None):
    return summed_up(Samples(list(samples), 0.001, end or samples[-1].seconds + 1.0))


def test_a_mean_is_over_time_and_a_peak_is_not():
    reported = memory(
        sample(0.0, heap=usage(10)), sample(1.0, heap=usage(100, 100)), sample(3.0, heap=usage(10)), end=4.0
    )
    # 10 MiB for one second, 100 for two, 10 for one.
    assert reported.mean["heap"].resident == pytest.approx((10 + 200 + 10) / 4 * MIB, rel=1e-6)
    assert reported.mean["heap"].huge == pytest.approx(50 * MIB, rel=1e-6)
    assert reported.peak["heap"] == usage(100, 100)


def test_a_kind_that_comes_late_counts_as_nothing_before():
    reported = memory(sample(0.0, heap=usage(10)), sample(3.0, heap=usage(10), bss=usage(40)), end=4.0)
    assert reported.mean["bss"].resident == 10 * MIB and reported.peak["bss"].resident == 40 * MIB


def test_samples_of_sums_alone_count_for_the_sum():
    part = Sample(1.0, usage(500), None, 3)
    reported = memory(sample(0.0, heap=usage(10)), part, sample(2.0, heap=usage(10)), end=3.0)
    assert reported.total_peak.resident == 500 * MIB and reported.processes == 3
    assert reported.mean["heap"].resident == 10 * MIB and (reported.samples, reported.full) == (3, 2)


def test_nothing_seen_is_nothing():
    assert summed_up(Samples()) is None
    assert summed_up(Samples([Sample(0.0, usage(1), None, 1)])) is None
    assert told_by_snapshots([]) is None and told_by_snapshots([[]]) is None


def test_of_snapshots_each_process_counts_at_its_fullest():
    reported = told_by_snapshots([[{"heap": usage(1)}, {"heap": usage(9, 8)}], [{"heap": usage(5)}]])
    assert reported.peak["heap"] == usage(14, 8) and reported.processes == 2


def test_enough_coverage_ranks():
    reported = memory(sample(0.0, heap=usage(100, 90)))
    found = pages(THP, reported, 4096)
    assert found.huge_coverage == pytest.approx(0.9) and found.page_size_observed_bytes == HUGE
    assert lack(THP, reported, found) is None


def test_too_little_coverage_says_where_the_rest_is():
    reported = memory(sample(0.0, heap=usage(50, 50), anonymous=usage(50)))
    reason = lack(THP, reported, pages(THP, reported, 4096))
    assert reason is not None
    assert "50.0% of the memory" in reason and "anonymous: 0 B of 50 MiB" in reason


def test_a_pool_that_ran_short_half_way_is_not_ranked():
    reported = memory(sample(0.0, anonymous=usage(50, 50)), sample(1.0, anonymous=usage(100, 50)), end=2.0)
    assert "66.7% of the memory" in (lack(THP, reported, pages(THP, reported, 4096)) or "")


def test_of_two_kinds_the_worse_one_counts():
    reported = memory(sample(0.0, text=usage(8, 0), heap=usage(100, 100)))
    found = pages(BOTH, reported, 4096)
    assert found.huge_coverage == 0.0 and "text: 0 B of 8 MiB" in (lack(BOTH, reported, found) or "")


def test_a_program_without_such_memory():
    reported = memory(sample(0.0, heap=usage(1), bss=usage(500)))
    assert "has no memory of this kind (heap, anonymous)" in (
        lack(THP, reported, pages(THP, reported, 4096)) or ""
    )


def test_huge_pages_that_nobody_wanted():
    reported = memory(sample(0.0, heap=usage(9)))
    assert lack(NONE, reported, pages(NONE, reported, 4096)) is None
    reported = memory(sample(0.0, heap=usage(9, 2)))
    reason = lack(NONE, reported, pages(NONE, reported, 4096))
    assert reason is not None and "2 MiB on huge pages, where none were wanted" in reason


def test_a_program_that_nobody_saw():
    found = pages(NONE, None, 4096)
    assert lack(NONE, None, found) is None and found.method == "prctl"
    assert "before its memory could be looked at" in (lack(THP, None, pages(THP, None, 4096)) or "")


def test_multi_size_pages_are_verified_by_the_kernels_counters():
    reported = memory(sample(0.0, given=1600, anonymous=usage(100)))
    found = pages(SMALL, reported, 4096)
    assert found.huge_coverage == pytest.approx(1.0) and found.page_size_observed_bytes == 64 << 10
    assert lack(SMALL, reported, found) is None
    few = memory(sample(0.0, given=100, anonymous=usage(100)))
    assert "6.2% of the memory" in (lack(SMALL, few, pages(SMALL, few, 4096)) or "")


def test_an_untimed_run_shows_what_samples_missed():
    seen = memory(sample(0.0, heap=usage(10, 10)))
    other = told_by_snapshots([[{"heap": usage(12), "bss": usage(50, 48)}]])
    both = completed(seen, other, ("heap", "bss"))
    assert both.peak["heap"] == usage(10, 10) and both.peak["bss"] == usage(50, 48)
    assert "bss: smaps, untimed run" in both.method
    assert completed(seen, other, ("heap",)) == seen and completed(seen, None, ("bss",)) == seen


def test_the_tables_of_memory_and_of_what_looking_cost():
    reported = memory(sample(0.0, heap=usage(100, 90)), end=2.0).recorded()
    thp = record(configuration(label=("thp", "hardware", "regular")), 1.0)
    timed, trial = replace(thp, program=reported), replace(record(configuration(), 1.0), program=reported)
    trial = varied(trial, "run", series="trial")
    rows = memory_rows([trial, timed, timed, thp])
    assert [(row.policy, row.kind) for row in rows] == [
        *(("none", "heap"), ("none", "all")),
        *(("thp", "heap"), ("thp", "all")),
    ]
    assert rows[2].coverage == pytest.approx(0.9)
    assert sampling_cost([trial]) is None and sampling_cost([timed]).share == pytest.approx(0.0005)
