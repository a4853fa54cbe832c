"""The published counts give the published ratios and rates with the formulas of the event file."""

from __future__ import annotations

import copy
from decimal import Decimal

import pytest
import yaml

from pagewise.core.errors import FormatError
from pagewise.core.kernel import Kernel
from pagewise.stack.events import EventFile
from pagewise.workloads.counters.published import Published, read_published
from stage import ROOT, RUNNERS

A64FX = EventFile.from_file(ROOT / "kernels/region/groups/a64fx.yaml")
FILE = RUNNERS / "pagewise/workloads/counters/published_values/flash-a64fx-pearc23.yaml"
DATA = yaml.safe_load(FILE.read_text())
BY_LAYOUT = {one.layout.name: one for one in read_published()}
PUBLISHED, EAHPC = BY_LAYOUT["pearc23"], BY_LAYOUT["eahpc22"]
TESTS = ("EOS", "3-d Hydro")

# Tables 1 and 2 as printed: EOS, then 3-d Hydro, with GCC and Fujitsu; and with and without huge pages.
TABLES = {
    "DTLB_LOAD_MISSES": ([0.03, 0.06, 0.11, 0.31], [0.66, 0.39, 2.20, 0.82]),
    "L1D_TLB_REFILL": ([0.03, 0.05, 0.11, 0.31], [0.55, 0.39, 2.52, 0.86]),
    "L2D_TLB_REFILL": ([0.0002, 0.01, 0.03, 0.03], [0.77, 0.02, 0.93, 1.02]),
    "L1I_TLB_REFILL": ([0.71, 1.01, 0.04, 0.65], [0.70, 0.49, 0.63, 0.04]),
    "L2I_TLB_REFILL": ([1.00, 0.99, 0.59, 0.16], [1.00, 1.01, 0.64, 2.33]),
    "L1D_CACHE_REFILL": ([0.96, 0.99, 1.00, 1.00], [0.94, 0.90, 0.91, 0.92]),
    "L2D_CACHE_REFILL": ([1.08, 1.06, 0.96, 1.03], [1.04, 1.06, 1.08, 1.00]),
    "LD_COMP_WAIT": ([0.71, 0.78, 1.17, 0.99], [0.50, 0.46, 0.66, 0.78]),
    "LD_COMP_WAIT_L1_MISS": ([0.82, 0.78, 0.94, 1.00], [0.56, 0.58, 2.58, 2.43]),
    "LD_COMP_WAIT_L2_MISS": ([0.90, 0.96, 0.97, 0.98], [0.82, 0.77, 2.11, 2.09]),
    "l1d_miss_latency": ([1.03, 1.03, 1.00, 1.00], [0.90, 0.90, 1.04, 1.03]),
    "l2_miss_latency": ([2.53, 1.00, 1.03, 0.96], [0.25, 0.64, 0.89, 0.94]),
    "l1_l2_bandwidth": ([1.01, 1.07, 0.91, 1.00], [2.76, 2.59, 1.63, 1.49]),
    "l2_memory_bandwidth": ([1.10, 1.11, 0.87, 1.04], [2.88, 2.85, 1.91, 1.61]),
}
# Tables 5 and 7 as printed: GCC with and without huge pages, Fujitsu with and without. None: illegible in
# our copy of table 5.
EOS_RATES = {
    "cpi": [None, None, 1.46, 1.55],
    "branch_misprediction_rate": [None, None, 0.0005, 0.0005],
    "l2_itlb_miss_rate": [None, None, 7.64e-05, 7.70e-05],
    "l2_dtlb_miss_rate": [None, None, 2.01e-09, 2.62e-07],
    "l1d_miss_rate_software_prefetch": [7.31e-06, 5.71e-07, 2.54e-06, 1.74e-06],
    "l2_miss_rate": [6.68e-06, 6.35e-06, 2.12e-05, 2.01e-05],
    "l2_miss_rate_demand": [3.83e-06, 3.67e-06, 1.01e-05, 1.01e-05],
    "l2_miss_rate_prefetch": [2.84e-06, 2.68e-06, 1.11e-05, 9.95e-06],
    "l2_miss_rate_software_prefetch": [0.0, 0.0, 3.54e-08, 3.40e-08],
    "l1d_miss_latency": [34.68, 33.65, 31.23, 30.44],
    "l2_miss_latency": [8.58, 3.39, 2.18, 2.17],
    "l1d_outstanding": [0.12, 0.12, 0.30, 0.28],
    "l2_outstanding": [4.15e-05, 1.46e-05, 3.17e-05, 2.81e-05],
    "l1_l2_bandwidth": [None, 2.38, 6.63, 6.17],
    "l2_memory_bandwidth": [0.003, 0.003, 0.010, 0.009],
    "ld_comp_wait_share": [0.13, 0.17, 0.18, 0.22],
    "ld_comp_wait_l1_miss_share": [0.04, 0.05, 0.07, 0.08],
    "ld_comp_wait_l2_miss_share": [0.0003, 0.0003, 0.0006, 0.0006],
    "ld_comp_wait_ex_share": [0.04, 0.04, 0.04, 0.04],
    "ld_comp_wait_pfp_busy_share": [0.0, 0.0, 4.14e-10, 0.0],
}
RATES = {
    "branch_misprediction_rate": [0.001, 0.003, 0.0007, 0.0008],
    "l1_dtlb_miss_rate": [0.0001, 0.001, 0.0006, 0.002],
    "l1d_miss_rate": [0.02, 0.02, 0.03, 0.03],
    "l1d_miss_rate_demand": [0.01, 0.01, 0.02, 0.02],
    "l1d_miss_rate_prefetch": [0.005, 0.006, 0.005, 0.006],
    "l1d_miss_rate_software_prefetch": [0.0003, 0.0004, 0.0002, 0.0002],
    "l2_miss_rate": [0.001, 0.001, 0.002, 0.002],
    "l2_miss_rate_demand": [0.0005, 0.0007, 0.001, 0.001],
    "l2_miss_rate_prefetch": [0.0006, 0.0008, 0.001, 0.001],
    "l2_outstanding": [0.001, 0.001, 0.002, 0.002],
    "ld_comp_wait_l2_miss_share": [0.01, 0.01, 0.03, 0.03],
    "cpi": [1.31, 1.45, 1.43, 1.45],
    "l2_itlb_miss_rate": [5.13e-08, 1.05e-07, 6.43e-08, 3.98e-07],
    "l2_dtlb_miss_rate": [1.36e-07, 4.77e-06, 2.49e-07, 7.89e-06],
    "l1_itlb_miss_rate": [3.62e-06, 0.0001, 4.49e-06, 6.97e-06],
    "l1d_miss_latency": [40.82, 40.97, 42.27, 42.16],
    "l2_miss_latency": [1.26, 1.23, 1.12, 1.16],
    "l1d_outstanding": [0.55, 0.60, 0.93, 0.93],
    "l1_l2_bandwidth": [10.51, 11.50, 17.15, 17.17],
    "l2_memory_bandwidth": [0.49, 0.57, 0.95, 0.91],
    "l2_miss_rate_software_prefetch": [0.0, 0.0, 5.92e-07, 5.78e-07],
    "ld_comp_wait_share": [0.37, 0.34, 0.43, 0.43],
    "ld_comp_wait_ex_share": [0.20, 0.17, 0.03, 0.03],
    "ld_comp_wait_pfp_busy_share": [1.38e-05, 7.46e-06, 8.47e-08, 1.52e-07],
}


def rounded(printed: float) -> object:
    """Half a unit of the last digit, or a whole unit with two decimals: the paper sometimes truncates."""
    unit = 10.0 ** Decimal(str(printed)).as_tuple().exponent
    return pytest.approx(printed, abs=0.0101 if printed >= 0.05 else 0.51 * unit * (printed > 0), rel=0.006)


@pytest.mark.parametrize("name", TABLES)
def test_tables_1_and_2(name: str):
    pages, compilers = TABLES[name]
    values = [column.values[name] for test in TESTS for column in PUBLISHED.by_pages(test, A64FX)]
    assert values == [rounded(printed) for printed in pages]
    values = [column.values[name] for test in TESTS for column in PUBLISHED.by_compiler(test, A64FX)]
    assert values == [rounded(printed) for printed in compilers]


@pytest.mark.parametrize(
    ("test", "name"), [*(("EOS", name) for name in EOS_RATES), *(("3-d Hydro", name) for name in RATES)]
)
def test_tables_5_and_7(test: str, name: str):
    values = [column.values[name] for column in PUBLISHED.columns(test, A64FX)]
    table = (EOS_RATES if test == "EOS" else RATES)[name]
    for value, printed in zip(values, table, strict=True):
        if printed is not None:
            assert value == rounded(printed)


def test_kernels_with_published_counts_name_the_region_of_these():
    files = sorted((ROOT / "kernels/mini").glob("*/*.yaml"))
    kernels = [Kernel.from_file(file) for file in files]
    published = {one.published_test: one.published_region for one in kernels if one.published_test}
    assert published == {"EOS": "eos", "3-d Hydro": "hydro"}


def test_counts_are_those_of_tables_4_and_6():
    """The counts add up as described in the manual."""
    for test in TESTS:
        for column in PUBLISHED.columns(test, A64FX):
            counts = column.values
            for level in ("L1D", "L2D"):
                refills = counts[f"{level}_CACHE_REFILL"]
                parts = counts[f"{level}_CACHE_REFILL_DM"] + counts[f"{level}_CACHE_REFILL_PRF"]
                assert parts == pytest.approx(refills, rel=0.08), (test, column.who, column.policy, level)
            assert counts["CPU_CYCLES"] > counts["LD_COMP_WAIT"] + counts["EU_COMP_WAIT"]


def test_all_counters_of_the_paper_are_counted_on_a64fx():
    for test in DATA["tests"]:
        assert len(test["counts"]) == 29 and test["counts"].keys() <= A64FX.events.keys()
    assert [column.who for column in PUBLISHED.by_compiler("EOS", A64FX)] == ["Fujitsu : GCC"] * 2
    assert PUBLISHED.columns("Sod", A64FX) == [] and PUBLISHED.by_pages("Sod", A64FX) == []


def test_unpublished_counts_have_no_value():
    hydro = PUBLISHED.columns("3-d Hydro", A64FX)
    assert "LD_SPEC" not in hydro[0].values and "LD_SPEC" in hydro[1].values
    eos = PUBLISHED.by_pages("EOS", A64FX)
    assert "LD_COMP_WAIT_PFP_BUSY" not in eos[0].values


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda d: d.pop("source"), "'source' is a required property"),
        (lambda d: d["tests"][0]["counts"]["LD_SPEC"].pop(), "EOS.LD_SPEC"),
        (lambda d: d["tests"][0]["counts"].update(X=["a", 1, 1, 1]), "tests.0.counts.X.0"),
    ],
)
def test_a_wrong_file_is_refused(change, cause: str):
    data = copy.deepcopy(DATA)
    change(data)
    with pytest.raises(FormatError) as refused:
        Published.from_dict(data, "here")
    assert cause in str(refused.value)


def test_the_slides_repeat_the_values_of_their_regions():
    """Where the slides have cycles and seconds, their rates follow from the counts of the paper's tables."""
    for test in TESTS:
        hugepages, base = EAHPC.columns(test, A64FX)
        assert (hugepages.policy, base.policy, hugepages.who) == ("hugetlbfs", "none", "Fujitsu")
        assert base.values["CPU_CYCLES"] / 1.8e9 == pytest.approx(base.values["time"], rel=0.01)
        (ratio,) = EAHPC.by_pages(test, A64FX)
        assert ratio.values["whole_time"] == pytest.approx(0.98, abs=0.01)
        # Counted a year apart, by the same compiler: the studies' memory bandwidth is of L1D refills.
        published = PUBLISHED.columns(test, A64FX)[3].values
        for name in ("main_memory_bandwidth", "dtlb_misses_per_second"):
            assert published[name] == pytest.approx(base.values[name], rel=0.02)


@pytest.mark.parametrize("publication", BY_LAYOUT.values(), ids=BY_LAYOUT)
def test_the_layouts_show_quantities_of_the_event_file(publication: Published):
    of_runs = {"time", "whole_time", "steps"}
    known = {*A64FX.events, *(metric.name for metric in A64FX.metrics), *of_runs}
    for shown in (*publication.layout.tables, *publication.layout.figures):
        assert {row.quantity for row in shown.rows} <= known, shown.name
        assert len({row.title for row in shown.rows}) == len(shown.rows)


def test_the_tables_have_the_rows_of_the_paper():
    tables = {shown.name: shown for shown in PUBLISHED.layout.tables}
    assert list(tables) == [f"Table {number}" for number in (1, 2, 4, 5, 6, 7)]
    for name, test, values in (("Table 5", "EOS", EOS_RATES), ("Table 7", "3-d Hydro", RATES)):
        assert tables[name].tests == (test,) and len(tables[name].rows) == 25
        assert {row.quantity for row in tables[name].rows} >= values.keys()
    for name, place in (("Table 4", 0), ("Table 6", 1)):
        assert [row.quantity for row in tables[name].rows] == list(DATA["tests"][place]["counts"])
    for name in ("Table 1", "Table 2"):
        assert [row.quantity for row in tables[name].rows] == ["CPU_CYCLES", *TABLES]
