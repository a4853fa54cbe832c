"""`pagewise report --layout`: the studies' tables, from records that hold the studies' own counts."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tracing import needs_tracer

from builders import a_manifest, configuration, kernel, record_data
from pagewise.cli import root
from pagewise.core.errors import SelectionError
from pagewise.core.manifest import CountersPart
from pagewise.core.result import read_result
from pagewise.core.schemas import faults
from pagewise.report.model import Table, figures
from pagewise.report.render import figure, html, markdown
from pagewise.report.views.layout import view
from pagewise.stack.events import EventFile
from pagewise.workloads.counters.published import events_of
from pagewise.workloads.simulation.build import descriptions, event_files
from pagewise.workloads.simulation.geometry import find_geometry
from pagewise.workloads.simulation.run import Target
from pagewise.workloads.simulation.tracer import Program, Tracer
from published_results import (
    A64FX,
    COLUMNS,
    SECONDS_OUTSIDE,
    counters,
    planned,
    publication,
    repeating,
    row_values,
    rows_of,
    simulation,
    written,
)
from simulator import compiled_build
from stage import CHASE, EVENTS, ROOT
from test_published import DATA, EOS_RATES, RATES, TABLES, rounded

ZEN4 = EventFile.from_file(EVENTS / "zen4.yaml")


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return counters(tmp_path_factory.mktemp("layouts") / "counters")


@pytest.fixture(scope="module")
def rows(studies: Path) -> list[dict[str, Any]]:
    return rows_of("pearc23", studies)


@pytest.mark.parametrize("kind", ["measured", "published"])
def test_the_papers_counts_give_the_papers_tables(rows: list[dict[str, Any]], kind: str) -> None:
    """In its order of columns: by test GCC and Fujitsu; by test with and without huge pages."""
    for quantity, (pages, compilers) in TABLES.items():
        of = {"quantity": quantity, "kind": kind}
        assert row_values(rows, table="Table 1", **of) == [rounded(printed) for printed in pages]
        assert row_values(rows, table="Table 2", **of) == [rounded(printed) for printed in compilers]
    for table, published in (("Table 5", EOS_RATES), ("Table 7", RATES)):
        for quantity, printed in published.items():
            values = row_values(rows, table=table, quantity=quantity, kind=kind, form="values")
            for value, known in zip(values, printed, strict=True):
                assert known is None or value == rounded(known), (table, quantity)
    for place, table in enumerate(("Table 4", "Table 6")):
        for quantity, counts in DATA["tests"][place]["counts"].items():
            values = row_values(rows, table=table, quantity=quantity, kind=kind, form="values")
            assert values == pytest.approx(counts), (table, quantity)
    cycles = row_values(rows, table="Table 1", quantity="CPU_CYCLES", kind=kind)
    assert cycles == pytest.approx([0.96, 0.94, 1.10, 1.00], abs=0.005)


@pytest.mark.long
def test_values_stand_beside_the_published_ones_of_the_same_compiler(studies: Path) -> None:
    report = view(publication("pearc23"), [read_result(studies)])
    tables = {
        (section.title.partition(".")[0], table.title): table
        for section in report.sections
        for table in section.blocks
        if isinstance(table, Table)
    }
    for name, compilers in (("Table 4", ("gcc-12.2.0", "GCC")), ("Table 7", ("gcc-12.2.0", "GCC"))):
        heads = [(column.above, column.title) for column in tables[(name, "GCC")].columns[1:]]
        programs = zip(("eos" if name == "Table 4" else "hydro", "FLASH"), compilers, strict=True)
        origins = zip(programs, ("measured", "published"), strict=True)
        expected = [f"{program} {compiler}\n{kind}" for (program, compiler), kind in origins]
        assert heads == [(above, word) for above in expected for word in ("hp", "no hp", "hp : no hp")]
        assert list(tables[(name, "Fujitsu : GCC")].columns[1].above.split("\n"))[-1] == "measured"
    assert len(tables[("Table 1", "")].columns) == 1 + 8 and len(tables[("Table 2", "")].columns) == 1 + 8


@pytest.mark.release
def test_the_figures_show_cycles_bandwidth_misses_and_the_whole_time(studies: Path) -> None:
    report = view(publication("pearc23"), [read_result(studies)])
    drawn = {one.name: one for one in figures(report.sections)}
    assert list(drawn) == ["pearc23-figure-1-a", "pearc23-figure-1-b", "pearc23-figure-2"]
    panels = {title: bars for title, _, bars in drawn["pearc23-figure-1-b"].data.panels}
    assert list(panels) == [
        "hydro gcc-12.2.0, measured",
        "FLASH GCC, published",
        "hydro fj-4.10.0, measured",
        "FLASH Fujitsu, published",
    ]
    gcc = {bar.label: bar.ratio.median for bar in panels["hydro gcc-12.2.0, measured"]}
    titles = {row.quantity: f"hp: {row.title}" for row in publication("pearc23").layout.figures[1].rows}
    hp, base = (DATA["tests"][1]["counts"]["CPU_CYCLES"][place] / 1.8e9 for place in (0, 1))
    assert gcc[titles["whole_time"]] == pytest.approx((hp + SECONDS_OUTSIDE) / (base + SECONDS_OUTSIDE))
    assert gcc[titles["CPU_CYCLES"]] == pytest.approx(hp / base)
    assert gcc[titles["dtlb_misses_per_second"]] == pytest.approx(226322429 / 1979316404 * base / hp)
    assert gcc[titles["main_memory_bandwidth"]] == pytest.approx(28765078635 / 28695255519 * base / hp)
    assert titles["whole_time"] not in {bar.label for bar in panels["FLASH GCC, published"]}
    compilers = drawn["pearc23-figure-2"].data.panels
    assert [title for title, *_ in compilers] == [
        "eos fj-4.10.0 : gcc-12.2.0, measured",
        "FLASH Fujitsu : GCC, published",
        "hydro fj-4.10.0 : gcc-12.2.0, measured",
    ]
    assert all(figure.svg(one).startswith("<svg") for one in drawn.values())


@pytest.mark.release
def test_each_value_of_an_option_is_a_program_with_columns_of_its_own(tmp_path: Path) -> None:
    folder = counters(tmp_path / "counted", [("3-d Hydro", "hydro")], ("planes", "flash"))
    of = {"quantity": "L1D_TLB_REFILL", "kind": "measured", "table": "Table 1"}
    rows = rows_of("pearc23", folder)
    for program in ("hydro scheme=planes", "hydro scheme=flash"):
        assert row_values(rows, program=program, **of) == [
            rounded(each) for each in TABLES["L1D_TLB_REFILL"][0][2:]
        ]
    policies = {row["hugepages"] for row in rows if row["kind"] == "measured"}
    assert policies == {"none", "hugetlbfs"}


@pytest.mark.long
def test_simulated_values_are_marked_and_never_measured(tmp_path: Path, studies: Path) -> None:
    gcc = simulation(tmp_path / "gcc", "gcc", (100, 14))
    llvm = simulation(tmp_path / "llvm", "llvm", (50, 5))
    rows = rows_of("pearc23", studies, gcc, llvm)
    assert {row["kind"] for row in rows} == {"measured", "simulated", "published"}
    of = {"kind": "simulated", "quantity": "L1D_TLB_REFILL"}
    assert row_values(rows, table="Table 1", **of) == pytest.approx([0.14, 0.1])
    assert row_values(rows, table="Table 2", **of) == pytest.approx([5 / 14, 0.5])
    rate = {"kind": "simulated", "quantity": "l1_dtlb_miss_rate", "form": "values"}
    assert row_values(rows, table="Table 7", **rate) == pytest.approx([0.014, 0.1, 0.005, 0.05])
    assert row_values(rows, table="Table 4", kind="simulated") == []
    flash = simulation(tmp_path / "flash", "gcc", (200, 20), arguments=("--steps", "2", "--scheme", "flash"))
    of |= {"table": "Table 1", "form": "pages"}
    both = rows_of("pearc23", gcc, flash)
    assert row_values(both, program="blast", **of) == pytest.approx([0.14])
    assert row_values(both, program="blast scheme=flash", **of) == pytest.approx([0.1])
    cycles = [row for row in rows if (row["quantity"], row["kind"]) == ("CPU_CYCLES", "simulated")]
    assert cycles and all(row["value"] is None and row["missing"] for row in cycles)


def test_a_missing_test_is_reported(tmp_path: Path) -> None:
    folder = counters(tmp_path / "hydro", [("3-d Hydro", "hydro")])
    report = view(publication("pearc23"), [read_result(folder)])
    rows = report.data["rows"]
    assert row_values(rows, table="Table 4", kind="measured") == []
    assert len(row_values(rows, table="Table 4", kind="published", form="values")) == 4 * 29
    assert any("EOS" in note and "published_test" in note for note in report.notes)


def test_cycles_of_another_cpu_stand_in_the_row_of_the_cycles(tmp_path: Path) -> None:
    """Cycles and instructions have another name on other CPUs; missing events are reported as such."""
    folder = tmp_path / "zen"
    one, cycles = repeating("EOS", "eos"), ZEN4.events[ZEN4.cycles].native
    base, thp = (configuration(label=(pages, "hardware", "regular")) for pages in ("none", "thp"))
    records = [
        record_data(c, 1.0, kernel="blast", series="counters", counters={cycles: n}, regions=None)
        for c, n in ((base, 1000), (thp, 900))
    ]
    for made, n in zip(records, (1000, 900), strict=True):
        made["run"] |= {"kernel": "blast", "group": "tlb"}
        times = dict.fromkeys(("seconds", "seconds_mean_of_threads", "seconds_exclusive"), 0.5)
        region = {"name": "eos", "path": "step/eos", "calls": 1, "threads": 1, **times}
        made["regions"] = [{**region, "counts": {cycles: n}}]
    part = CountersPart(ZEN4.data, ("tlb",), False, None, "the file for this CPU", None, A64FX.data)
    written(folder, a_manifest(kind="counters", counters=part, **planned([one], [base, thp])), records)
    rows = rows_of("pearc23", folder)
    assert row_values(rows, table="Table 4", quantity="CPU_CYCLES", kind="measured", form="values") == [
        900,
        1000,
    ]
    assert row_values(rows, table="Table 1", quantity="CPU_CYCLES", kind="measured") == pytest.approx([0.9])
    (waits,) = [
        r for r in rows if (r["table"], r["quantity"], r["kind"]) == ("Table 1", "LD_COMP_WAIT", "measured")
    ]
    assert waits["value"] is None and waits["missing"]


@pytest.mark.release
def test_the_listings_of_the_slides(rows: list[dict[str, Any]], studies: Path) -> None:
    listed = rows_of("eahpc22", studies)
    assert {row["table"] for row in listed} == {"Supernova EOS", "3-d hydro"}
    of = {"table": "Supernova EOS", "kind": "published", "form": "values"}
    assert row_values(listed, quantity="dtlb_misses_per_second", **of) == [1103732.44, 23429655.21]
    of = {"table": "Supernova EOS", "kind": "measured", "form": "values", "compiler": "fj-4.10.0"}
    assert row_values(listed, quantity="main_memory_bandwidth", **of) == pytest.approx([4.41, 4.17], abs=0.01)


@pytest.mark.release
@pytest.mark.parametrize("layout", ["pearc23", "eahpc22"])
def test_all_formats(studies: Path, layout: str) -> None:
    report = view(publication(layout), [read_result(studies)])
    page = html.render(report)
    assert page.count("<svg") == len(list(figures(report.sections))) and "<script" not in page
    tables = [b for section in report.sections for b in section.blocks if isinstance(b, Table)]
    rules = [line for line in markdown.render(report).splitlines() if line.startswith("| ---")]
    assert len(rules) == len(tables)
    data = json.loads(json.dumps(report.data))
    assert faults("layout", data) == []


# The command


def invoked_on(*arguments: object) -> Any:
    return CliRunner().invoke(root, list(map(str, arguments)), standalone_mode=False)


def invoked(*arguments: object) -> Any:
    return invoked_on("report", *arguments)


@pytest.mark.release
def test_the_command_writes_the_tables_into_a_folder_of_the_result(studies: Path) -> None:
    done = invoked(studies, "--layout", "pearc23", "--png")
    assert done.exception is None and done.return_value == 0, done.output
    folder = studies / "pearc23"
    with (folder / "pearc23.csv").open(encoding="utf-8", newline="") as stream:
        (first, *_) = csv.DictReader(stream)
    assert first["table"] == "Table 1" and first["kind"] == "measured"
    names = {"report.html", "summary.md"}
    assert names <= {file.name for file in folder.iterdir()}
    assert {file.name for file in (folder / "figures").glob("*.png")} >= {"pearc23-figure-2.png"}
    assert not (studies / "report.html").exists()
    reported = json.loads(invoked(studies, "--layout", "eahpc22", "--json").stdout)
    assert reported["layout"] == "eahpc22" and faults("layout", reported) == []


def test_results_without_counts_are_refused(tmp_path: Path) -> None:
    plan = planned([repeating("EOS", "eos")], COLUMNS)
    comparison = written(tmp_path / "comparison", a_manifest(**plan), [])
    refused = invoked(comparison, "--layout", "pearc23")
    assert isinstance(refused.exception, SelectionError) and refused.exception.exit_code == 2
    other = [kernel({**CHASE, "name": "other"})]
    part = CountersPart(A64FX.data, ("tlb",), False, None, "the file", None)
    folder = written(
        tmp_path / "other", a_manifest(kind="counters", counters=part, **planned(other, COLUMNS)), []
    )
    refused = invoked(folder, "--layout", "pearc23")
    assert isinstance(refused.exception, SelectionError) and refused.exception.exit_code == 2


@pytest.mark.long
def test_an_unknown_layout_and_several_results_without_one_are_refused(studies: Path) -> None:
    refused = invoked(studies, "--layout", "pearc")
    assert isinstance(refused.exception, SelectionError) and refused.exception.exit_code == 2
    assert invoked(studies, studies).exception.exit_code == 2


# Simulations name their test


@pytest.mark.parametrize(
    ("name", "arguments", "test"),
    [
        ("snia2d", ("--problem", "snia2d", "--steps", "1"), "EOS"),
        ("ember", ("--steps", "1", "--problem", "sedov"), "3-d Hydro"),
        ("ember", ("--problem", "sod"), None),
        ("pointer_chase", ("--working-set", "1MiB"), None),
    ],
)
def test_a_simulated_kernel_repeats_the_test_of_its_description(
    name: str, arguments: tuple[str, ...], test: str | None
) -> None:
    description = yaml.safe_load(descriptions(ROOT)[name].read_text())
    program, tracer = Program(Path("pw-ember"), "x86_64", True), Tracer("qemu-x86_64", "x86_64", "7.2")
    target = Target(name, program, arguments, True, description, find_geometry("a64fx"), tracer, Path())
    assert target.published.get("published_test") == test
    part = events_of([test], event_files(ROOT))
    assert (part is None) == (test is None) and (part is None or part["name"] == "a64fx")


@pytest.mark.long
@needs_tracer
def test_a_simulated_program_repeats_the_test_that_is_named(tmp_path: Path) -> None:
    """Any program, from its simulation to the tables."""
    build = compiled_build(tmp_path)
    named = ("--test", "3-d Hydro", "--region", "cyclic")
    options = ("--build", build, "--policies", "fjmpg", "--output", tmp_path / "results", *named)
    done = invoked_on("simulate", *options, "--", build / "walk", "cyclic", "800", "8000")
    assert done.exception is None, done.output
    (folder,) = (tmp_path / "results").iterdir()
    rows = rows_of("pearc23", folder)
    refills = row_values(rows, table="Table 6", quantity="L1D_TLB_REFILL", kind="simulated", form="values")
    assert len(refills) == 2 and refills[0] < refills[1]
    assert row_values(rows, table="Table 4", kind="simulated") == []
    refused = invoked_on("simulate", "--test", "3-d", *options[:6], "--", build / "walk", "cyclic", "8", "8")
    assert isinstance(refused.exception, SelectionError) and refused.exception.exit_code == 2
