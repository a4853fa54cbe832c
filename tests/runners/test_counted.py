"""Counting: from runs by group to counts, rates and ratios."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from builders import BASE, LLVM, LLVM_THP, THP, failed_record, kernel, record, subject_of, varied
from pagewise.analysis.counted import count, rates
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import paired_ratio
from pagewise.core.events import EventFile
from pagewise.core.plan import order_of_round
from stage import EVENTS

# Messages in records.
CRASH, MISSING = "crashed by SIGSEGV", "32 pages are missing"
UNKNOWN, FORBIDDEN = "no such event", "no permission"
A64FX = EventFile.from_file(EVENTS / "a64fx.yaml")
MISSES = "L1D_TLB_REFILL"
HYDRO = kernel(name="hydro", title="3-d Hydro")


def ran(one, group: str, counts: dict, *, number: int = 1, series: str = "counters", **changes):
    """A run that counted, by our names."""
    made = record(one, [2.0], number=number, series=series, kernel="hydro", **changes)
    if "counters" not in changes:
        made = replace(made, counters={A64FX.events[name].native: n for name, n in counts.items()})
    return varied(made, "run", group=group, kernel="hydro")


def analysed(*records, configurations=(BASE, THP), groups=("tlb", "l1"), region=None):
    subjects = [subject_of(HYDRO, *configurations)]
    return count(subjects, records, A64FX, groups, region=region, seed=1)[0]


TLB = {"CPU_CYCLES": 4e9, "EFFECTIVE_INST_SPEC": 2e9, "L1D_TLB_REFILL": 1e6}
L1 = {
    "CPU_CYCLES": 4e9,
    "EFFECTIVE_INST_SPEC": 2e9,
    "L1_MISS_WAIT": 1e9,
    "L1D_CACHE_REFILL": 1e7,
    "L1D_CACHE_WB": 1e7,
}


def failing(one, group: str, *fault: str):
    return varied(failed_record(one, *fault), "run", series="counters", kernel="hydro", group=group)


def test_the_groups_of_a_round_are_joined_and_rates_derived():
    actual = analysed(ran(BASE, "tlb", TLB), ran(BASE, "l1", L1))
    cell = actual.cells[0]
    assert cell.value("L1D_TLB_REFILL") == 1e6 and cell.value("L1_MISS_WAIT") == 1e9
    assert cell.value("cpi") == 2.0 and cell.value("l1_dtlb_miss_rate") == pytest.approx(5e-4)
    assert cell.value("l1d_miss_latency") == 100.0
    assert cell.value("l1_l2_bandwidth") == pytest.approx(2e7 * 256 / 2.0 / 1e9)
    assert cell.value("time") == 2.0 and cell.value("page_faults") == 0.0
    assert cell.value("populate_time") == 0.1 and cell.value("populate_page_faults") == 1.0
    assert cell.value("l2_miss_latency") is None and cell.spread == 0.0
    assert {run.group: (run.round, run.position) for run in cell.runs} == {"tlb": (1, 1), "l1": (1, 1)}
    assert [q.name for q in actual.quantities][3:5] == ["populate_page_faults", "CPU_CYCLES"]
    assert cell.notes == ()


def test_a_rate_comes_from_the_run_that_counted_all_it_needs():
    """The run of l1 took twice the cycles; the latency is its own, not that of a mixture."""
    slow = {**L1, "CPU_CYCLES": 8e9, "L1_MISS_WAIT": 4e9}
    cell = analysed(ran(BASE, "tlb", TLB), ran(BASE, "l1", slow)).cells[0]
    assert cell.value("l1d_outstanding") == pytest.approx(0.5)
    assert cell.value("CPU_CYCLES") == 6e9
    assert cell.spread == pytest.approx(1.0)
    assert "100 %" in cell.notes[0] and "CPU_CYCLES" in cell.notes[0]


def test_counts_are_of_one_pass():
    """Five repetitions of three passes each: the kernel chose them by the clock."""
    many = ran(BASE, "tlb", TLB, passes_per_repetition=3)
    many = varied(many, "seconds", repetitions=[3.0] * 5)
    many = varied(replace(many, metrics={}), "run", wall_seconds=16.0)
    cell = analysed(many, groups=("tlb",)).cells[0]
    assert cell.value("CPU_CYCLES") == pytest.approx(4e9 / 15) and cell.value("time") == pytest.approx(1.0)
    assert cell.runs[0].raw["CPU_CYCLES"] == 4e9 and cell.runs[0].passes == 15


def missing(one, factor: float, number: int, series: str = "counters"):
    """A run with so many million misses of the TLB."""
    return ran(one, "tlb", {**TLB, MISSES: 1e6 * factor}, number=number, series=series)


def test_ratios_are_paired_by_round():
    records = []
    for number in (1, 2, 3):
        drift = 1.0 + number / 3
        for one, factor in ((BASE, 1.0), (THP, 0.03), (LLVM, 0.5), (LLVM_THP, 0.25)):
            records.append(missing(one, factor * drift, number))
            if one in (BASE, LLVM):
                again = factor * drift * (1.0 + number / 1000)
                records.append(missing(one, again, number, series="counters_aa"))
    actual = analysed(*records, configurations=(BASE, THP, LLVM, LLVM_THP), groups=("tlb",))
    pages = {one.cell.compiler: one.ratio.median for one in actual.of("pages") if one.quantity.name == MISSES}
    assert pages == {"gcc-12.2.0": pytest.approx(0.03), "llvm-22.1.8": pytest.approx(0.5)}
    first = {one.quantity.name: one for one in reversed(actual.of("pages"))}
    assert (first[MISSES].verdict, first[MISSES].floor) == ("lower", pytest.approx(0.003, abs=0.001))
    assert (first["CPU_CYCLES"].verdict, first["CPU_CYCLES"].reason) == ("inconclusive", "interval")
    versus = [one for one in actual.of("compilers") if one.quantity.name == MISSES]
    compilers = {one.configuration.hugepages: one.ratio.median for one in versus}
    assert compilers == {"none": pytest.approx(0.5), "thp": pytest.approx(0.25 / 0.03)}
    assert {one.reference.compiler for one in versus} == {"gcc-12.2.0"}


def test_counts_that_differ_by_no_more_than_the_noise_have_no_verdict():
    """Of a count that differs in every round the interval excludes 1; the baseline itself differs by more."""
    factors = {number: 1.0 + number / 1000 for number in range(1, 8)}
    again = [missing(BASE, 1.1 * factor, number, "counters_aa") for number, factor in factors.items()]
    alone = [
        missing(one, ratio * factor, number)
        for number, factor in factors.items()
        for one, ratio in ((BASE, 1.0), (THP, 0.95))
    ]
    for given, reason in (([*alone, *again], "floor"), (alone, "too few rounds")):
        rows = analysed(*given, groups=("tlb",)).of("pages")
        (row,) = (row for row in rows if row.quantity.name == MISSES)
        assert row.ratio is not None and row.ratio.excludes_equality
        assert (row.verdict, row.reason) == ("inconclusive", reason)


def test_ratios_of_nothing():
    for values, others, expected in (
        ({1: 2.0}, {1: 0.0}, None),
        ({1: 0.0}, {1: 0.0}, None),
        ({1: 2.0}, {2: 2.0}, None),
        ({1: 0.0, 2: 0.0}, {1: 4.0, 2: 2.0}, Ratio(2, 0.0, None, None)),
        ({1: 3.0, 2: 3.0}, {1: 0.0, 2: 2.0}, Ratio(1, 1.5, None, None)),
        ({1: -2.0}, {1: 1.0}, Ratio(1, -2.0, None, None)),
    ):
        assert paired_ratio([values], [others], 1) == expected


def test_a_run_that_fails_in_one_group_leaves_the_others():
    """A group that was not run and a cell that was not measured are named; missing pages are not a fault."""
    counted = ran(BASE, "tlb", TLB)
    base, thp = analysed(counted).cells
    (uncounted,) = base.notes
    assert re.search(r"\bl1\b", uncounted) and (thp.code, thp.is_fault) == ("not_measured", False)
    crashed, unavailable = (
        failing(BASE, "l1", "failed", CRASH),
        failing(THP, "tlb", "pages_unavailable", MISSING),
    )
    base, thp = analysed(counted, crashed, unavailable).cells
    assert base.value("L1D_TLB_REFILL") == 1e6 and base.value("L1_MISS_WAIT") is None and base.is_fault
    excluded, again = base.notes
    assert CRASH in excluded and re.search(r"\bl1\b", excluded) and again == uncounted
    assert (thp.code, thp.is_fault, thp.remedy) == ("pages_unavailable", False, "do that")
    assert MISSING in thp.invalid


def test_refused_events_and_machines_that_cannot_count_are_reported():
    partly = ran(BASE, "tlb", {"CPU_CYCLES": 1e9}, counters_refused={"L1D_TLB_REFILL": UNKNOWN})
    none = ran(THP, "tlb", {}, counters={"unavailable": FORBIDDEN})
    actual = analysed(partly, none, groups=("tlb",))
    (note,) = actual.cells[0].notes
    assert "L1D_TLB_REFILL" in note and UNKNOWN in note
    assert actual.cells[0].value("cpi") is None and actual.cells[0].value("CPU_CYCLES") == 1e9
    (note,) = actual.cells[1].notes
    assert re.search(r"\btlb\b", note) and FORBIDDEN in note
    assert actual.cells[1].value("time") == 2.0 and not actual.cells[1].is_fault


def region(path: str, seconds: float, counts: dict):
    times = dict.fromkeys(("seconds", "seconds_mean_of_threads", "seconds_exclusive"), seconds)
    natives = {A64FX.events[name].native: n for name, n in counts.items()}
    name = path.rpartition("/")[2]
    return {"name": name, "path": path, "calls": 1, "threads": 1, **times, "counts": natives}


def test_runs_with_migrated_threads_are_noted():
    runs = [ran(BASE, "tlb", TLB, number=number) for number in (1, 2, 3)]
    runs[1] = varied(runs[1], "placement", cpus_at_end=[1], migrated=1)
    (note,) = analysed(*runs, groups=("tlb",)).cells[0].notes
    assert sorted(re.findall(r"\d+", note)) == ["1", "3"]
    assert analysed(*runs[::2], groups=("tlb",)).cells[0].notes == ()


def test_one_region_alone():
    regions = [region("step", 2.0, TLB), region("step/sweep", 0.5, TLB), region("first/sweep", 0.25, TLB)]
    made = ran(BASE, "tlb", TLB, regions=regions)
    by_name = analysed(made, groups=("tlb",), region="sweep").cells[0]
    assert by_name.value("CPU_CYCLES") == 8e9 and by_name.value("time") == 0.75
    assert by_name.value("page_faults") is None and by_name.value("populate_time") is None
    by_path = analysed(made, groups=("tlb",), region="step/sweep").cells[0]
    assert by_path.value("CPU_CYCLES") == 4e9 and by_path.value("time") == 0.5
    inside = ran(BASE, "tlb", TLB, regions=[*regions, region("step/sweep/leaf/sweep", 0.125, TLB)])
    assert analysed(inside, groups=("tlb",), region="sweep").cells[0] == by_name  # the outer one has it
    unknown = analysed(made, groups=("tlb",), region="absent").cells[0]
    named = {"absent", "step", "step/sweep", "first/sweep"}
    assert not unknown.rounds and named <= set(re.findall(r"[\w/]+", unknown.invalid))


def test_load_imbalance_of_the_counted_region():
    def uneven(path, share, *ratios):
        natives = [A64FX.events[name].native for name in TLB][: len(ratios)]
        imbalance = dict(zip(natives, ratios, strict=True))
        counts = {name: n * share for name, n in TLB.items()}
        return {**region(path, 1.0, counts), "threads": 2, "imbalance": imbalance}

    parts = [uneven("step", 1.0, 1.5, 1.25), uneven("step/sweep", 0.5, 2.0), uneven("first/sweep", 0.5, 1.0)]
    runs = [ran(one, "tlb", TLB, number=n, regions=parts) for one in (BASE, THP) for n in (1, 2, 3)]
    whole = analysed(*runs, groups=("tlb",))
    shown = {q.name: whole.cells[0].value(q.name) for q in whole.quantities if q.kind == "imbalance"}
    assert shown == {"CPU_CYCLES_imbalance": 1.5, "EFFECTIVE_INST_SPEC_imbalance": 1.25}
    # It is reported, not judged.
    assert whole.of("pages") and not shown.keys() & {one.quantity.name for one in whole.comparisons}
    one = analysed(*runs, groups=("tlb",), region="step/sweep").cells[0]
    assert one.value("CPU_CYCLES_imbalance") == 2.0
    # Each of several paths may have its most on another thread.
    assert analysed(*runs, groups=("tlb",), region="sweep").cells[0].value("CPU_CYCLES_imbalance") is None


def test_every_cell_runs_once_per_group_and_baselines_twice_in_a_shuffled_round():
    groups = {"tlb": (("PAGEWISE_EVENTS", "a"),), "l1": (("PAGEWISE_EVENTS", "b"),)}
    subjects = [subject_of(HYDRO, BASE, THP, LLVM, LLVM_THP)]
    steps = order_of_round(subjects, 1, 5, groups=groups)
    counted = [(step.cell.key, step.group) for step in steps if step.series == "counters"]
    again = {(step.cell.measured, step.group) for step in steps if step.series == "counters_aa"}
    assert len(set(counted)) == len(counted) == 8 and len(steps) == 8 + 4
    assert again == {(one, group) for one in (BASE, LLVM) for group in groups}
    assert [step.position for step in steps] == list(range(1, 13))
    assert all(step.settings == groups[step.group] for step in steps)


def test_pipelines_and_operations_of_a64fx():
    counts = {"CPU_CYCLES": 1000.0, "EFFECTIVE_INST_SPEC": 500.0, "FLA_VAL": 250.0, "L1_PIPE0_VAL": 125.0}
    counts |= {"COMMIT_0": 400.0, "COMMIT_4": 100.0, "L1_PIPE_ABORT_STLD_INTLK": 5.0}
    # 100 operations per 128 bits are 400 at 512 bits.
    counts |= {"FP_SCALE_OPS_SPEC": 100.0, "FP_FIXED_OPS_SPEC": 50.0}
    values = rates(A64FX, counts, 2.0)
    expected = {"commit_0_share": 0.4, "commit_4_share": 0.1, "fla_busy": 0.25, "l1_pipe0_busy": 0.125}
    expected |= {"store_load_interlocks": 0.01, "flops": 225.0}
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    assert "commit_1_share" not in values
