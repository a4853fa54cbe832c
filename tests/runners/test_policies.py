"""Ratios with : without huge pages, and compiler : compiler, by page policy."""

from __future__ import annotations

import csv

import pytest

from builders import BASE, LLVM, LLVM_THP, THP, a_manifest, configuration, kernel, record, subject_of, varied
from pagewise.analysis.analysis import analyse
from pagewise.core.record import Record
from pagewise.core.structure import from_data, to_data
from pagewise.report.model import Table, blocks_of
from pagewise.report.render import csv as csv_file
from pagewise.report.verdicts import ComparisonRow
from pagewise.report.views import data
from pagewise.report.views.comparisons import by_pages
from pagewise.report.views.kernel import section
from stage import TRIAD

SOFTWARE = configuration(label=("thp", "software", "regular"))
SECONDS = {BASE: 4.0, THP: 3.0, SOFTWARE: 1.0, LLVM: 2.0, LLVM_THP: 1.0}
FAULTS = {BASE: 1000, THP: 2, SOFTWARE: 2, LLVM: 1000, LLVM_THP: 2}


def rounds(one, **changes):
    """Five rounds that drift alike for all: what is paired by round cannot see it."""
    made = []
    for number in range(1, 6):
        drift = 1.0 + number / 5
        passes = changes.get("passes_per_repetition", 1)
        reported = record(one, SECONDS[one] * drift, number=number, passes_per_repetition=passes)
        reported = varied(reported, "page_faults", compute_minor=FAULTS[one] - 1)
        made.append(from_data(Record, {**to_data(reported), **changes}))
    return made


def analysed(*records, configurations=tuple(SECONDS)):
    return analyse([subject_of(kernel(), *configurations)], records, seed=1)


def ratios(actual):
    return {
        (
            one.quantity.name,
            one.cell.compiler,
            one.configuration.hugepages,
            one.reference.compiler if one.dimension == "compiler" else None,
        ): one.ratio.median
        for one in actual[0].of("pages")
    }


ALL = [one for configuration in SECONDS for one in rounds(configuration)]


def test_estimates_are_labelled_in_every_table():
    metrics = [{**TRIAD["metrics"][0], "estimated": True}, TRIAD["metrics"][1]]
    actual = analyse([subject_of(kernel(metrics=metrics), *SECONDS)], ALL, seed=1)
    quantities = {one.quantity.name for one in actual[0].of("pages")}
    assert quantities == {"time", "bandwidth, stream, estimated", "page faults"}
    assert {row.metric_estimated for row in data.configurations(actual)} == {True}
    made = section(actual[0], a_manifest())
    columns = [column for table in blocks_of(Table, [made]) for column in table.columns]
    units = [column.unit for column in columns if column.head == "Bandwidth"]
    labels = [("estimated" in unit, "hardware" in unit) for unit in units]
    assert labels == [(True, False), (True, False), (False, True)]
    measured = analysed(*ALL)
    assert not any("estimated" in one.quantity.name for one in measured[0].of("pages"))
    assert {row.metric_estimated for row in data.configurations(measured)} == {False}


def test_each_quantity_is_compared_by_policy_and_by_compiler():
    gcc, llvm = BASE.compiler, LLVM.compiler
    assert ratios(analysed(*ALL)) == pytest.approx(
        {
            ("time", gcc, "thp", None): 3 / 4,
            ("time", llvm, "thp", None): 1 / 2,
            ("time", llvm, "none", gcc): 2 / 4,
            ("time", llvm, "thp", gcc): 1 / 3,
            ("bandwidth, stream", gcc, "thp", None): 4 / 3,
            ("bandwidth, stream", llvm, "thp", None): 2,
            ("bandwidth, stream", llvm, "none", gcc): 2,
            ("bandwidth, stream", llvm, "thp", gcc): 3,
            ("page faults", gcc, "thp", None): 0.002,
            ("page faults", llvm, "thp", None): 0.002,
            ("page faults", llvm, "none", gcc): 1,
            ("page faults", llvm, "thp", gcc): 1,
        }
    )


def test_events_have_ratios_where_they_are_counted():
    counted = {"counters": {"perf::DTLB-LOAD-MISSES": 1000.0, "PAPI_TOT_CYC": 1.0}}
    # In ten passes, chosen by the clock.
    fewer = {"counters": {"perf::DTLB-LOAD-MISSES": 300.0, "PAPI_TOT_CYC": 1.0}, "passes_per_repetition": 10}
    actual = analysed(*rounds(BASE, **counted), *rounds(THP, **fewer), configurations=(BASE, THP))
    assert ratios(actual)[("perf::DTLB-LOAD-MISSES", BASE.compiler, "thp", None)] == pytest.approx(0.03)
    none = {"page_faults": {"first_touch_minor": 0}}
    uncounted = analysed(*rounds(BASE, **none), *rounds(THP, **none), configurations=(BASE, THP))
    assert {quantity for quantity, *_ in ratios(uncounted)} == {"time", "bandwidth, stream"}


def test_a_program_of_several_tests_reports_them_apart_by_its_runs():
    one, other = kernel(), kernel(name="other")
    reported = [
        varied(made, "run", kernel=name)
        for name in (one.name, other.name)
        for made in (*rounds(BASE), *rounds(THP))
        if not (name == other.name and made.configuration.hugepages == "thp")
    ]
    actual = analyse([subject_of(one, BASE, THP), subject_of(other, BASE, THP)], reported, seed=1)
    assert actual[0].of("pages") and not actual[1].of("pages")
    assert actual[1].groups[0].unranked


def test_tables_and_file():
    actual = analysed(*ALL)
    (section,) = by_pages(actual)
    pages, by_compiler = section.blocks[:2]
    assert [one.name for one in pages.columns[3:]] == ["time", "bandwidth, stream", "page faults"]
    assert [one.median for one in pages.rows[0][3:]] == pytest.approx([0.75, 4 / 3, 0.002], rel=0.1)
    assert [row[1] for row in by_compiler.rows] == ["llvm-22.1.8 : gcc-12.2.0"] * 2
    rows = data.comparisons(actual[0].of("pages"))
    lines = list(csv.DictReader(csv_file.render(Table.of_outputs(ComparisonRow, rows)).splitlines()))
    assert len(lines) == 12
    assert float(lines[0]["ratio"]) == pytest.approx(0.75) and lines[0]["quantity"] == "time"
    assert (lines[0]["reference"], lines[-1]["reference"]) == (BASE.module, THP.module)
