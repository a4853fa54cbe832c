"""The memory of a program in its verdict: ratios of peaks, page tables, and the budget of the advice."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from builders import BASE, THP, configuration, kernel, record, row_of, subject_of
from own_program import Own, needs_thp
from pagewise.analysis.analysis import analyse
from pagewise.analysis.choices import bests
from pagewise.analysis.rows import KernelResult
from pagewise.core.configuration import Configuration
from pagewise.core.record import Record
from pagewise.core.record_parts import PEAK_MEMORY
from pagewise.report.views import advice
from pagewise.report.views.applying import advised_policy
from pagewise.report.views.data import cost_text
from pagewise.workloads.program.memory import from_samples
from pagewise.workloads.program.sampler import Sample, Samples
from pagewise.workloads.program.smaps import Account, Usage, parse_status

POOL = configuration(label=("hugetlbfs", "hardware", "regular"))
MIB = 1 << 20


def runs(one: Configuration, seconds: float, gib: float, series: str = "compare") -> list[Record]:
    """Seven runs whose times and memory scatter by 1 %; those of A/A in another order."""
    records = []
    for number in range(1, 8):
        scatter = 1.0 + 0.01 * ((number * 3 + len(series)) % 7) / 7
        made = record(one, seconds * scatter, number=number, series=series)
        records.append(replace(made, metrics={**made.figures, PEAK_MEMORY: gib * scatter}))
    return records


#: THP takes 20 % less time, the pool 10 %; the pool needs as much memory as the baseline.
OTHERS = {THP: (0.8, 2.24), POOL: (0.9, 2.0)}


def compared(budget: float | None, others: dict[Configuration, tuple[float, float]] = OTHERS) -> KernelResult:
    """The baseline, and other configurations with their seconds and GiB."""
    records = [*runs(BASE, 1.0, 2.0), *runs(BASE, 1.0, 2.0, "aa")]
    for one, (seconds, gib) in others.items():
        records += runs(one, seconds, gib)
    (result,) = analyse([subject_of(kernel(), BASE, *others)], records, 1, memory_budget=budget)
    return result


def test_the_ratio_of_memory_is_paired_by_round():
    thp = row_of(compared(None).ranked, THP)
    assert thp.memory.pairs == 7 and thp.memory.median == pytest.approx(1.12, rel=0.01)
    assert thp.memory.low <= thp.memory.median <= thp.memory.high
    assert row_of(compared(None).ranked, BASE).memory is None and not thp.over_budget


@pytest.mark.parametrize(("budget", "advised"), [(None, "thp"), (0.2, "thp"), (0.1, "hugetlbfs")])
def test_a_policy_above_the_budget_is_ranked_and_not_advised(budget: float | None, advised: str):
    result = compared(budget)
    assert len(result.ranked) == 3 and row_of(result.ranked, THP).over_budget == (advised != "thp")
    assert bests([result])[0].row.cell.measured.hugepages == advised
    given = advice.answers([result])
    assert given[0].values == (advised,) and advised_policy([result], given) == advised
    # As the reason against it.
    assert (cost_text(row_of(result.ranked, THP)) in advice.headline([result], given)) == (advised != "thp")


def test_nothing_is_advised_when_all_are_above_the_budget():
    result = compared(0.1, {THP: (0.8, 3.0)})
    assert advice.answers([result]) == [] and bests([result])[0].row is None
    assert advised_policy([result], []) is None
    assert cost_text(row_of(result.ranked, THP)) in advice.headline([result], [])


def test_the_baseline_is_advised_when_others_are_slower():
    result = compared(None, {THP: (1.3, 2.0)})
    assert advised_policy([result], advice.answers([result])) == "none"


def test_the_kernels_own_account_of_a_process():
    status = "Name:\tx\nVmPeak:\t 9000 kB\nVmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\nVmPTE:\t   36 kB\n"
    assert parse_status(status) == Account(high_water=2 * MIB, page_tables=36 << 10, resident=MIB)
    assert parse_status("") == Account()


def test_a_peak_between_samples_counts_and_page_tables_are_over_time():
    usage = {"heap": Usage(10 * MIB)}
    first = Sample(0.0, usage["heap"], usage, 1, 0, Account(high_water=10 * MIB, page_tables=100))
    last = Sample(3.0, usage["heap"], usage, 1, 0, Account(high_water=64 * MIB, page_tables=300))
    memory = from_samples(Samples([first, last], 0.0, 4.0))
    assert memory.total.peak.resident == 64 * MIB and memory.total.mean.resident == 10 * MIB
    assert (memory.page_tables.peak_bytes, memory.page_tables.mean_bytes) == (300, 150)
    assert memory.metrics[PEAK_MEMORY] == 64 / 1024


@needs_thp
@pytest.mark.long
def test_a_comparison_reports_time_for_memory(own: Own):
    options = ("--json", "--policies", "none,thp", "--rounds", "3", *own.case(memory_budget="10%"))
    data = json.loads(own.run(*options, code=0).stdout)
    rows = {row["hugepages"]: row for row in data["kernels"][0]["configurations"]}
    assert rows["none"]["memory_ratio"] is None is rows["none"]["more_memory_bytes"]
    assert rows["thp"]["memory_ratio_low"] <= rows["thp"]["memory_ratio"] <= rows["thp"]["memory_ratio_high"]
    assert rows["thp"]["over_memory_budget"] == (rows["thp"]["memory_ratio"] > 1.1)
    assert own.stage.read_result().manifest.programs["case"]["memory_budget"] == 0.1
    # On a busy machine, a run may end before its first sample.
    sampled = [one for one in own.records() if one.program.page_tables is not None]
    assert sampled
    for one in sampled:
        assert one.program.page_tables.peak_bytes >= one.program.page_tables.mean_bytes > 0
        assert one.metrics["page_tables_mib"] > 0 and one.metrics["mean_memory_gib"] > 0
