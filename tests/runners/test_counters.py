"""Counting: from runs by group to counts, rates, ratios and the studies' tables; and `pagewise counters`."""

from __future__ import annotations

import csv
import html.parser
import json
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from builders import configuration, failed_record, kernel, record, subject_of, varied
from pagewise.analysis.counted import count, quotient
from pagewise.analysis.ratio import Ratio
from pagewise.core.plan import order_of_groups
from pagewise.core.result import read_result
from pagewise.report.model import Cell, Column, Section, Table
from pagewise.report.views import report_of
from pagewise.stack.events import EventFile
from pagewise.workloads.counters.counting import MOST_EVENTS, Selection, counted_groups
from stage import CHASE, EVENTS, TRIAD, Stage

A64FX = EventFile.from_file(EVENTS / "a64fx.yaml")
ZEN4 = EventFile.from_file(EVENTS / "zen4.yaml")
BASE = configuration()
THP = configuration(label=("thp", "hardware", "regular"))
LLVM = configuration("llvm-22.1.8")
LLVM_THP = configuration("llvm-22.1.8", label=("thp", "hardware", "regular"))
HYDRO = kernel(name="hydro", title="3-d Hydro")
LABELS = [(pages, "hardware", "regular") for pages in ("none", "thp", "hugetlbfs")]


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


def half(counts: dict, *names: str) -> dict:
    return {name: n / 2 if name in names else n for name, n in counts.items()}


def test_the_groups_of_a_round_are_joined_and_rates_derived():
    found = analysed(ran(BASE, "tlb", TLB), ran(BASE, "l1", L1))
    cell = found.cells[0]
    assert cell.value("L1D_TLB_REFILL") == 1e6 and cell.value("L1_MISS_WAIT") == 1e9
    assert cell.value("cpi") == 2.0 and cell.value("l1_dtlb_miss_rate") == pytest.approx(5e-4)
    assert cell.value("l1d_miss_latency") == 100.0
    assert cell.value("l1_l2_bandwidth") == pytest.approx(2e7 * 256 / 2.0 / 1e9)
    assert cell.value("time") == 2.0 and cell.value("page_faults") == 0.0
    assert cell.value("populate_time") == 0.1 and cell.value("populate_page_faults") == 1.0
    assert cell.value("l2_miss_latency") is None and cell.spread == 0.0
    assert {run.group: (run.round, run.position) for run in cell.runs} == {"tlb": (1, 1), "l1": (1, 1)}
    assert [q.name for q in found.quantities][3:5] == ["populate_page_faults", "CPU_CYCLES"]
    assert cell.notes == ()


def test_a_rate_comes_from_the_run_that_counted_all_it_needs():
    """The run of l1 took twice the cycles; the latency is its own, not that of a mixture."""
    slow = {**L1, "CPU_CYCLES": 8e9, "L1_MISS_WAIT": 4e9}
    cell = analysed(ran(BASE, "tlb", TLB), ran(BASE, "l1", slow)).cells[0]
    assert cell.value("l1d_outstanding") == pytest.approx(0.5)
    assert cell.value("CPU_CYCLES") == 6e9
    assert cell.spread == pytest.approx(1.0)
    assert "differ by up to 100 % in CPU_CYCLES" in cell.notes[0]


def test_counts_are_of_one_pass():
    """Five repetitions of three passes each: the kernel chose them by the clock."""
    many = ran(BASE, "tlb", TLB, passes_per_repetition=3)
    many = varied(many, "seconds", repetitions=[3.0] * 5)
    many = varied(replace(many, metrics={}), "run", wall_seconds=16.0)
    cell = analysed(many, groups=("tlb",)).cells[0]
    assert cell.value("CPU_CYCLES") == pytest.approx(4e9 / 15) and cell.value("time") == pytest.approx(1.0)
    assert cell.runs[0].raw["CPU_CYCLES"] == 4e9 and cell.runs[0].passes == 15


def test_ratios_are_paired_by_round():
    records = []
    for number in (1, 2, 3):
        drift = 1.0 + number / 3
        for one, factor in ((BASE, 1.0), (THP, 0.03), (LLVM, 0.5), (LLVM_THP, 0.25)):
            counts = {**TLB, "L1D_TLB_REFILL": 1e6 * factor * drift}
            records.append(ran(one, "tlb", counts, number=number))
            if one in (BASE, LLVM):
                counts["L1D_TLB_REFILL"] *= 1.0 + number / 1000
                records.append(ran(one, "tlb", counts, number=number, series="counters_aa"))
    found = analysed(*records, configurations=(BASE, THP, LLVM, LLVM_THP), groups=("tlb",))
    pages = {one.cell.compiler: one.ratios["L1D_TLB_REFILL"].median for one in found.by_pages}
    assert pages == {"gcc-12.2.0": pytest.approx(0.03), "llvm-22.1.8": pytest.approx(0.5)}
    refills = found.by_pages[0].verdicts["L1D_TLB_REFILL"]
    assert (refills.change, refills.floor) == ("lower", pytest.approx(0.003, abs=0.001))
    same = found.by_pages[0].verdicts["CPU_CYCLES"]
    assert (same.change, same.reason) == ("inconclusive", "interval")
    compilers = {o.cell.measured.hugepages: o.ratios["L1D_TLB_REFILL"].median for o in found.by_compiler}
    assert compilers == {"none": pytest.approx(0.5), "thp": pytest.approx(0.25 / 0.03)}
    assert {one.other.compiler for one in found.by_compiler} == {"gcc-12.2.0"}


def test_counts_that_differ_by_no_more_than_the_noise_have_no_verdict():
    """Of a count that differs in every round the interval excludes 1; the baseline itself differs by more."""
    records = []
    for number in range(1, 8):
        for one, series, factor in (
            (BASE, "counters", 1.0),
            (BASE, "counters_aa", 1.1),
            (THP, "counters", 0.95),
        ):
            counts = {**TLB, "L1D_TLB_REFILL": 1e6 * factor * (1.0 + number / 1000)}
            records.append(ran(one, "tlb", counts, number=number, series=series))
    verdict = analysed(*records, groups=("tlb",)).by_pages[0].verdicts["L1D_TLB_REFILL"]
    assert verdict.ratio is not None and verdict.ratio.excludes_one
    assert (verdict.change, verdict.reason) == ("inconclusive", "floor")
    alone = [one for one in records if one.series == "counters"]
    assert analysed(*alone, groups=("tlb",)).by_pages[0].verdicts["L1D_TLB_REFILL"].change == "inconclusive"


def test_ratios_of_nothing():
    assert quotient({1: 2.0}, {1: 0.0}, 1) is None and quotient({1: 0.0}, {1: 0.0}, 1) is None
    assert quotient({1: 0.0, 2: 0.0}, {1: 4.0, 2: 2.0}, 1) == Ratio(2, 0.0, None, None)
    assert quotient({1: 2.0}, {2: 2.0}, 1) is None
    assert quotient({1: -2.0}, {1: 1.0}, 1) == Ratio(1, -2.0, None, None)


def test_invalid_runs_are_never_used():
    wrong = ran(THP, "tlb", half(TLB, "L1D_TLB_REFILL"))
    wrong = varied(wrong, "pages", huge_coverage=0.5)
    unchecked = ran(THP, "l1", L1)
    unchecked = varied(unchecked, "validation", passed=False)
    found = analysed(ran(BASE, "tlb", TLB), wrong, unchecked, groups=("tlb",))
    base, thp = found.cells
    assert base.rounds and not thp.rounds and thp.is_fault
    assert thp.code == "wrong_result" and found.compared == ()


def test_pages_that_cannot_be_had_are_no_fault():
    unavailable = failed_record(THP, "pages_unavailable", "32 pages are missing", remedy="reserve them")
    unavailable = varied(unavailable, "run", series="counters", kernel="hydro", group="tlb")
    thp = analysed(ran(BASE, "tlb", TLB), unavailable).cells[1]
    assert (thp.is_fault, thp.remedy) == (False, "reserve them") and "32 pages are missing" in thp.invalid


def test_a_run_that_fails_in_one_group_leaves_the_others():
    crashed = failed_record(BASE, "failed", "crashed by SIGSEGV")
    crashed = varied(crashed, "run", series="counters", kernel="hydro", group="l1")
    cell = analysed(ran(BASE, "tlb", TLB), crashed).cells[0]
    assert cell.value("L1D_TLB_REFILL") == 1e6 and cell.value("L1_MISS_WAIT") is None and cell.is_fault
    assert cell.notes == (
        "group l1: a run was excluded: crashed by SIGSEGV",
        "group l1 was not counted",
    )


def test_a_group_that_was_not_run_and_a_cell_that_was_not_measured_are_named():
    found = analysed(ran(BASE, "tlb", TLB))
    assert found.cells[0].notes == ("group l1 was not counted",)
    assert found.cells[1].invalid == "not measured" and not found.cells[1].is_fault


def test_refused_events_and_machines_that_cannot_count_are_reported():
    partly = ran(BASE, "tlb", {"CPU_CYCLES": 1e9}, counters_refused={"L1D_TLB_REFILL": "no such event"})
    none = ran(THP, "tlb", {}, counters={"unavailable": "no permission"})
    found = analysed(partly, none, groups=("tlb",))
    assert found.cells[0].notes == ("L1D_TLB_REFILL is not counted here: no such event",)
    assert found.cells[0].value("cpi") is None and found.cells[0].value("CPU_CYCLES") == 1e9
    assert found.cells[1].notes == ("group tlb is not counted here: no permission",)
    assert found.cells[1].value("time") == 2.0 and not found.cells[1].is_fault


def region(path: str, seconds: float, counts: dict):
    reported = dict.fromkeys(("seconds", "seconds_mean_of_threads", "seconds_exclusive"), seconds)
    natives = {A64FX.events[name].native: n for name, n in counts.items()}
    return {
        "name": path.rpartition("/")[2],
        "path": path,
        "calls": 1,
        "threads": 1,
        **reported,
        "counts": natives,
    }


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
    unknown = analysed(made, groups=("tlb",), region="none").cells[0]
    assert (
        unknown.invalid == "there is no region none in its records; there are: step, step/sweep, first/sweep"
    )


def test_every_cell_runs_once_per_group_and_baselines_twice_in_a_shuffled_round():
    groups = {"tlb": (("PAGEWISE_EVENTS", "a"),), "l1": (("PAGEWISE_EVENTS", "b"),)}
    subjects = [subject_of(HYDRO, BASE, THP, LLVM, LLVM_THP)]
    steps = order_of_groups(subjects, groups, 1, 5)
    counted = [(step.cell.key, step.group) for step in steps if step.series == "counters"]
    again = {(step.cell.measured, step.group) for step in steps if step.series == "counters_aa"}
    assert len(set(counted)) == len(counted) == 8 and len(steps) == 8 + 4
    assert again == {(one, group) for one in (BASE, LLVM) for group in groups}
    assert [step.position for step in steps] == list(range(1, 13))
    assert all(step.settings == groups[step.group] for step in steps)
    assert order_of_groups(subjects, groups, 1, 5) == steps
    assert order_of_groups(subjects, groups, 2, 5) != steps


def test_multiplexed_events_are_as_few_runs_as_the_programs_can():
    assert [group.name for group in counted_groups(ZEN4, Selection(multiplex=True))] == ["all"]
    parts = counted_groups(A64FX, Selection(multiplex=True))
    assert [group.name for group in parts] == ["all-1", "all-2"]
    assert all(len(p.events) <= MOST_EVENTS and p.events[0].name == "CPU_CYCLES" for p in parts)
    assert {event.name for part in parts for event in part.events} == set(A64FX.events)
    assert len(counted_groups(A64FX, Selection(groups=("tlb",)))) == 1


def test_numbers_as_the_studies_print_them():
    quotient, count = Column("x", kind="quotient"), Column("x", kind="count")
    assert [quotient.text(x) for x in (None, 1.0, 0.0342, 0.0002194, 0.0, 2.53)] == [
        *("", "1.00", "0.03", "0.0002", "0.00", "2.53"),
    ]
    values = [count.text(x) for x in (226322429.4, 0.5, 3.618e-6, None)]
    assert values == ["226322429", "0.5", "3.62e-06", ""]


# ---- the command


def filled(stage: Stage, *, papi: str = "on", compilers=("gcc-12.2.0", "llvm-22.1.8"), **behaviour) -> Stage:
    hydro = {**CHASE, "name": "hydro", "title": "3-d Hydro", "executable": "pw-hydro"}
    for number, compiler in enumerate(compilers):
        for label in LABELS:
            stage.add(compiler, label, [hydro], papi=papi, factor=str(1 - 0.2 * number), **behaviour)
    stage.add(compilers[0], ("thp", "software", "regular"), [hydro], papi=papi)
    return stage


def run(stage: Stage, *arguments: str) -> subprocess.CompletedProcess[str]:
    return stage.run("counters", "--output", str(stage.results), *arguments)


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


class Page(html.parser.HTMLParser):
    """What a page holds: the texts of cells by table, and whether all that was opened was closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tables: list[list[int]] = []
        self.captions: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        reported = dict(attributes)
        if tag not in ("meta", "br", "link"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append(0)
        if tag in ("td", "th"):
            self.tables[-1][-1] += int(reported.get("colspan", 1))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "caption":
            self.captions.append(data)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Stage, subprocess.CompletedProcess[str]]:
    stage = filled(Stage(tmp_path_factory.mktemp("counters")))
    return stage, run(stage, "--events", "a64fx", "--groups", "tlb,l1", "--rounds", "3")


def test_counting_from_modules_to_the_three_tables(made):
    stage, done = made
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Fujitsu A64FX" in done.stderr
    for reported in (
        "L1D_TLB_REFILL",
        "L1-DTLB miss rate",
        "GCC, published",
        "doi.org/10.1145/3569951.3597583",
    ):
        assert reported in done.stdout
    folder = stage.result()
    result = read_result(folder)
    assert result.skipped == [] and len(result.records) == 3 * (6 + 2) * 2
    assert {r.run.series for r in result.records} == {"counters", "counters_aa"}
    assert all("PAGEWISE_EVENTS" in r.run.settings for r in result.records)
    assert result.manifest["counters"]["groups"] == ["tlb", "l1"]
    assert result.manifest["counters"]["events"]["name"] == "a64fx"
    ratios = {
        (row["compiler"], row["hugepages"], row["quantity"]): float(row["ratio"])
        for row in rows(folder / "ratios.csv")
        if row["table"] == "pages"
    }
    assert ratios[("gcc-12.2.0", "thp", "L1D_TLB_REFILL")] == pytest.approx(0.1, rel=0.1)
    assert ratios[("GCC (published)", "hugetlbfs", "L1D_TLB_REFILL")] == pytest.approx(0.106, rel=0.01)
    raw = rows(folder / "counts.csv")
    assert len(raw) == 3 * 6 * 12 and {row["group"] for row in raw} == {"tlb", "l1"}
    assert all(float(row["count"]).is_integer() for row in raw)
    values = rows(folder / "counters.csv")
    assert {row["kind"] for row in values} == {"run", "count", "rate"}
    assert any(row["compiler"] == "Fujitsu (published)" and row["quantity"] == "cpi" for row in values)


def test_only_what_differs_in_pages_and_compiler_is_counted_by_default(made):
    prefetch = {r.configuration.prefetch for r in read_result(made[0].result()).records}
    assert prefetch == {"hardware"}


def test_the_page_is_whole(made):
    text = (made[0].result() / "report.html").read_text()
    page = Page(text)
    assert page.open == [] and "<script" not in text and "http://" not in text
    assert re.search(r"verdict\">[^<]* L\w+ [^<]* 0\.10 [^<]*time ratio \d\.\d+", text)
    tables = [*published(made[0].result(), False), *published(made[0].result(), True)]
    assert page.captions[: len(tables)] == [table.title for table in tables]
    for table in page.tables[: len(tables)]:
        assert len(set(table)) == 1


def published(folder: Path, theirs: bool) -> list[Table]:
    """The tables of a kernel, or those of published values alone."""
    blocks = report_of(read_result(folder)).sections[0].blocks
    if theirs:
        blocks = next(block for block in blocks if isinstance(block, Section)).blocks
    return [block for block in blocks if isinstance(block, Table)]


def test_the_latex_has_the_three_tables(made, tmp_path: Path):
    text = (made[0].result() / "tables.tex").read_text()
    tables = [*published(made[0].result(), False), *published(made[0].result(), True)]
    assert text.count(r"\caption{") == len(tables) == 6
    pages, compilers = tables[:2]
    assert {type(cell) for row in (*pages.rows, *compilers.rows) for cell in row[1:]} == {Cell}
    assert any(column.above == "GCC, published" for column in pages.columns)
    assert any(column.above == "llvm-22.1.8 : gcc-12.2.0" for column in compilers.columns)
    compiler = next(filter(None, map(shutil.which, ("pdflatex", "lualatex", "xelatex", "tectonic"))), None)
    if compiler is not None:
        head = "\\documentclass{article}\\usepackage{booktabs,graphicx,longtable}\\begin{document}\n"
        document = f"{head}{text}\\end{{document}}\n"
        (tmp_path / "paper.tex").write_text(document)
        options = [] if compiler.endswith("tectonic") else ["-interaction=batchmode", "-halt-on-error"]
        subprocess.run([compiler, *options, "paper.tex"], cwd=tmp_path, check=True, capture_output=True)
        assert (tmp_path / "paper.pdf").exists()


def test_a_report_is_made_again_from_the_folder_alone(made, stage: Stage):
    folder = shutil.copytree(made[0].result(), stage.folder / "moved")
    names = ("report.html", "counts.csv", "counters.csv", "ratios.csv", "tables.tex", "summary.md")
    before = {name: (folder / name).read_bytes() for name in names}
    for name in names:
        (folder / name).unlink()
    again = stage.run("report", str(folder))
    assert again.returncode == 0, again.stderr
    assert {name: (folder / name).read_bytes() for name in names} == before


@pytest.mark.long
def test_a_machine_without_counters_counts_software_events(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    """Named here, for the tester's machine may have counters; a VM without them comes to it by itself."""
    done = run(filled(stage, papi="off", compilers=("gcc-12.2.0",)), "--events", "software", "--rounds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PAGE_FAULTS" in done.stdout and "Page faults per second" in done.stdout
    ratios = {row["quantity"]: float(row["ratio"]) for row in rows(stage.result() / "ratios.csv")}
    assert ratios["PAGE_FAULTS"] == pytest.approx(0.1, rel=0.2)


@pytest.mark.long
def test_programs_without_papi_say_so(stage: Stage):
    done = run(
        filled(stage, papi="off", compilers=("gcc-12.2.0",)),
        "--events",
        "zen4",
        "--groups",
        "tlb",
        "--rounds",
        "1",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "group tlb is not counted here: built without PAPI" in done.stdout.replace("\n", " ")
    assert "Time" in done.stdout


@pytest.mark.long
def test_multiplexed(stage: Stage):
    done = run(filled(stage, compilers=("gcc-12.2.0",)), "--events", "zen4", "--multiplex", "--rounds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    records = read_result(stage.result()).records
    assert len(records) == 4 and all(r.run.settings["PAGEWISE_MULTIPLEX"] == "1" for r in records)
    assert all(len(r.counters) == len(ZEN4.events) for r in records)


@pytest.mark.long
def test_each_placement_is_counted(stage: Stage):
    done = run(
        filled(stage, compilers=("gcc-12.2.0",)),
        *("--events", "a64fx", "--groups", "tlb", "--rounds", "3"),
        *("--placement", "compact", "--threads", "1", "--memory", "first-touch,bind:0"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ratios = rows(stage.result() / "ratios.csv")
    found = {(row["hugepages"], row["placement"]) for row in ratios if "published" not in row["compiler"]}
    assert found == set(product(("thp", "hugetlbfs"), ("first-touch", "bind:0")))


@pytest.mark.long
def test_a_crash_in_one_group_is_reported_and_the_rest_is_used(stage: Stage):
    crash_on = ZEN4.events["TLB_FLUSHES"].native
    filled(stage, compilers=("gcc-12.2.0",), crash_on=crash_on)
    done = run(stage, "--events", "zen4", "--groups", "tlb,walks", "--rounds", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    text = " ".join(done.stdout.split())
    assert (
        "group walks: a run was excluded: crashed by SIGSEGV" in text
        and "group walks was not counted" in text
    )
    records = read_result(stage.result()).records
    assert [r.run.group for r in records if r.status == "failed"] == ["walks"] * 3
    assert [r.run.group for r in records if r.status == "ok"] == ["tlb"] * 8
    assert len(list((stage.result() / "logs").iterdir())) == 3


@pytest.mark.long
def test_refused_events_are_reported(stage: Stage):
    filled(stage, compilers=("gcc-12.2.0",), refused="L1_ITLB_MISS_L2_ITLB_HIT")
    done = run(stage, "--events", "zen4", "--groups", "tlb", "--rounds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    text = " ".join(done.stdout.split())
    assert "all configurations: L1_ITLB_MISSES_L2_HIT is not counted here: no such event" in text
    assert "L1-ITLB miss rate" not in text and "L2-ITLB miss rate" in text


@pytest.mark.long
def test_pages_that_are_not_there_are_tried_once(stage: Stage):
    stage.add("gcc-12.2.0", LABELS[0], [TRIAD], papi="on")
    stage.add("gcc-12.2.0", LABELS[2], [TRIAD], papi="on", mode="pages")
    done = run(stage, "--events", "zen4", "--groups", "tlb,walks,cache", "--rounds", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    data = stage.run("report", str(stage.result()), "--json")
    assert {one["code"] for one in json.loads(data.stdout)["not_counted"]} == {"pages_unavailable"}
    statuses = [r.status for r in read_result(stage.result()).records]
    assert statuses.count("pages_unavailable") == 1 and statuses.count("ok") == 12


@pytest.mark.long
def test_wrong_pages_are_invalid(stage: Stage):
    stage.add("gcc-12.2.0", LABELS[0], [TRIAD], papi="on")
    stage.add("gcc-12.2.0", LABELS[1], [TRIAD], papi="on", mode="wrong_pages")
    done = run(stage, "--events", "zen4", "--groups", "tlb", "--rounds", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "wrong pages" in done.stdout and not rows(stage.result() / "ratios.csv")


@pytest.mark.long
def test_one_region_of_the_program(stage: Stage):
    done = run(
        filled(stage, compilers=("gcc-12.2.0",)), "--events", "zen4", "--groups", "tlb", "--region", "hydro"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    values = rows(stage.result() / "counters.csv")
    whole = {r.configuration.hugepages: r for r in read_result(stage.result()).records}["none"]
    reported = next(row for row in values if row["quantity"] == "CYCLES" and row["hugepages"] == "none")
    cycles = whole.counters["CYCLES_NOT_IN_HALT"] / len(whole.seconds.repetitions)
    assert float(reported["value"]) == pytest.approx(cycles / 2, rel=0.2)


def test_wrong_wishes(stage: Stage):
    filled(stage, compilers=("gcc-12.2.0",))
    group = run(stage, "--events", "zen4", "--groups", "nothing")
    assert group.returncode == 2 and "there are: tlb, walks" in group.stderr
    events = run(stage, "--events", "nothing")
    assert events.returncode == 2 and "no event file 'nothing'" in events.stderr
    assert not stage.results.exists()
    for link in stage.folder.glob("opt/*/share/pagewise/events"):
        link.unlink()
    none = run(stage)
    assert none.returncode == 3 and "came without event files" in none.stderr


def test_builds_that_disagree_about_events_are_refused(stage: Stage):
    filled(stage, compilers=("gcc-12.2.0",))
    link = next(stage.folder.glob("opt/*-thp-hardware-regular/share/pagewise/events"))
    link.unlink()
    shutil.copytree(EVENTS, link)
    file = link / "zen4.yaml"
    file.write_text(file.read_text().replace("page walks for pages of 2 MiB", "page walks for 2 MiB"))
    done = run(stage)
    assert done.returncode == 3 and "different events for AMD Zen 4" in done.stderr


def test_a_broken_event_file_is_named(stage: Stage):
    filled(stage, compilers=("gcc-12.2.0",))
    link = next(stage.folder.glob("opt/*-thp-hardware-regular/share/pagewise/events"))
    link.unlink()
    shutil.copytree(EVENTS, link)
    (link / "zen4.yaml").write_text("schema: pagewise.events/1\n")
    done = run(stage)
    assert done.returncode == 3 and "zen4.yaml" in done.stderr and "required property" in done.stderr


def test_a_result_with_broken_events_is_refused(made, stage: Stage):
    folder = shutil.copytree(made[0].result(), stage.folder / "broken")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["counters"]["events"]["metrics"][0]["formula"] = "NONE / CPU_CYCLES"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    again = stage.run("report", str(folder))
    assert again.returncode == 3 and "NONE is not defined" in again.stderr
