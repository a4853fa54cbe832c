"""`pagewise counters`: from modules to the tables of the studies."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from itertools import product

import pytest

from pagewise.core.events import EventFile
from pagewise.core.result import read_result
from pagewise.report.model import Table
from pagewise.report.views import report_of
from pagewise.workloads.counters.machine import kernel_events
from stage import CHASE, EVENTS, TRIAD, Stage, csv_rows

A64FX = EventFile.from_file(EVENTS / "a64fx.yaml")
ZEN4 = EventFile.from_file(EVENTS / "zen4.yaml")
SOFTWARE = kernel_events()["software"]
LABELS = [(pages, "hardware", "regular") for pages in ("none", "thp", "hugetlbfs")]


def filled(stage: Stage, *, papi: str = "on", compilers=("gcc-12.2.0", "llvm-22.1.8"), **behaviour) -> Stage:
    hydro = {**CHASE, "name": "hydro", "title": "Blast wave", "executable": "pw-hydro"}
    for number, compiler in enumerate(compilers):
        for label in LABELS:
            stage.add(compiler, label, [hydro], papi=papi, factor=str(1 - 0.2 * number), **behaviour)
    stage.add(compilers[0], ("thp", "software", "regular"), [hydro], papi=papi)
    return stage


def run(stage: Stage, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    return stage.run("counters", "--output", str(stage.results), *arguments, code=code)


def counted(stage: Stage, *arguments: str, **behaviour: str) -> subprocess.CompletedProcess[str]:
    """Counting with programs of one compiler."""
    return run(filled(stage, compilers=("gcc-12.2.0",), **behaviour), *arguments)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Stage, subprocess.CompletedProcess[str]]:
    stage = filled(Stage(tmp_path_factory.mktemp("counters")))
    return stage, run(stage, "--events", "a64fx", "--groups", "tlb,l1", "--rounds", "3")


@pytest.mark.long
def test_counting_from_modules_to_the_three_tables(made):
    stage, done = made
    assert A64FX.title in done.stderr
    (rate,) = (metric.title for metric in A64FX.metrics if metric.name == "l1_dtlb_miss_rate")
    for reported in ("L1D_TLB_REFILL", rate):
        assert reported in done.stdout
    folder = stage.result()
    result = read_result(folder)
    assert result.skipped == [] and len(result.records) == 3 * (6 + 2) * 2
    assert {r.run.series for r in result.records} == {"counters", "counters_aa"}
    # By default, only configurations that differ in pages and compiler.
    assert {r.configuration.prefetch for r in result.records} == {"hardware"}
    assert all("PAGEWISE_EVENTS" in r.run.settings for r in result.records)
    assert result.manifest.counters.groups == ("tlb", "l1")
    assert result.manifest.counters.events.name == "a64fx"
    ratios = {
        (row["compiler"], row["hugepages"], row["quantity"]): float(row["ratio"])
        for row in csv_rows(folder / "comparisons.csv")
        if row["kind"] == "pages"
    }
    assert ratios[("gcc-12.2.0", "thp", "L1D_TLB_REFILL")] == pytest.approx(0.1, rel=0.1)
    raw = csv_rows(folder / "counts.csv")
    assert len(raw) == 3 * 6 * 12 and {row["group"] for row in raw} == {"tlb", "l1"}
    assert all(float(row["count"]).is_integer() for row in raw)
    values = csv_rows(folder / "counters.csv")
    assert {row["kind"] for row in values} == {"run", "count", "rate", "imbalance"}
    own = [row for row in values if row["kind"] == "imbalance"]
    assert {row["value"] for row in own} == {"1.25"}
    compared = {row["quantity"] for row in csv_rows(folder / "comparisons.csv")}
    assert not compared & {row["quantity"] for row in own}
    # Of each compiler one of load imbalance: counts without a column of units.
    tables = [block for block in report_of(result).sections[0].blocks if isinstance(block, Table)]
    assert sum(table.columns[1].kind == "count" for table in tables) == 2


@pytest.mark.long
def test_a_machine_without_counters_counts_software_events(stage: Stage):
    """Named here, for the tester's machine may have counters; a VM without them comes to it by itself."""
    done = counted(stage, "--events", "software", "--rounds", "1", papi="off")
    (rate,) = (metric.title for metric in SOFTWARE.metrics if metric.name == "page_fault_rate")
    assert "PAGE_FAULTS" in done.stdout and rate in done.stdout
    ratios = {row["quantity"]: float(row["ratio"]) for row in csv_rows(stage.result() / "comparisons.csv")}
    assert ratios["PAGE_FAULTS"] == pytest.approx(0.1, rel=0.2)


@pytest.mark.long
def test_one_region_of_the_program_in_each_placement(stage: Stage):
    placements = ("--threads", "1", "--bind", "first-touch,membind:0")
    region = ("--groups", "tlb", "--region", "hydro")
    counted(stage, "--events", "zen4", *region, "--rounds", "3", *placements)
    ratios = csv_rows(stage.result() / "comparisons.csv")
    actual = {(row["hugepages"], row["placement"]) for row in ratios}
    assert actual == set(product(("thp", "hugetlbfs"), ("first-touch", "membind:0")))
    values = csv_rows(stage.result() / "counters.csv")
    whole = {r.configuration.hugepages: r for r in stage.read_result().records}["none"]
    reported = next(row for row in values if row["quantity"] == "CYCLES" and row["hugepages"] == "none")
    cycles = whole.counters["CYCLES_NOT_IN_HALT"] / len(whole.seconds.repetitions)
    assert float(reported["value"]) == pytest.approx(cycles / 2, rel=0.2)
    assert "whole_time" in {row["quantity"] for row in values}


@pytest.mark.long
def test_a_crash_in_one_group_and_missing_pages_are_reported_and_the_rest_is_used(stage: Stage):
    """Both are tried once."""
    crash = {"crash_on": ZEN4.events["TLB_FLUSHES"].native}
    for label, behaviour in zip(LABELS, ({}, crash, {"mode": "pages"}), strict=True):
        stage.add("gcc-12.2.0", label, [TRIAD], papi="on", **behaviour)
    done = run(stage, "--events", "zen4", "--groups", "tlb,walks", "--rounds", "2", code=1)
    result = stage.read_result()
    notes = [note for note in report_of(result).notes if re.search(r"\bwalks\b", note)]
    assert sorted("SIGSEGV" in note for note in notes) == [False, True]
    assert all(note in " ".join(done.stdout.split()) for note in notes)
    data = stage.run("report", str(stage.result()), "--json")
    assert {one["code"] for one in json.loads(data.stdout)["not_counted"]} == {"pages_unavailable"}
    runs = Counter((one.configuration.hugepages, one.status) for one in result.records)
    of_thp = {("thp", "ok"): 2, ("thp", "failed"): 1}
    assert runs == {("none", "ok"): 8, **of_thp, ("hugetlbfs", "pages_unavailable"): 1}
    groups = {(one.status, one.run.group) for one in result.records if one.configuration.hugepages == "thp"}
    assert groups == {("ok", "tlb"), ("failed", "walks")}
    assert len(list((stage.result() / "logs").iterdir())) == 2


@pytest.mark.long
def test_wrong_requests_and_event_files_are_refused(stage: Stage):
    """Files of events that differ between builds, are broken, or missing."""
    filled(stage, compilers=("gcc-12.2.0",))
    errors = run(stage, "--events", "zen4", "--groups", "nothing", code=2).stderr
    assert all(name in errors for name in ("--groups", "nothing", "tlb", "walks"))
    errors = run(stage, "--events", "nothing", code=2).stderr
    assert all(name in errors for name in ("--events", "nothing", "zen4"))
    links = [*stage.folder.glob("opt/*/share/pagewise/events")]
    links[0].unlink()
    shutil.copytree(EVENTS, links[0])
    file = links[0] / "zen4.yaml"
    another = file.read_text().replace("nothing was fetched", "nothing came")
    for content in (another, "schema: pagewise.events/1\n"):
        file.write_text(content)
        assert "zen4.yaml" in run(stage, code=3).stderr
    shutil.rmtree(links[0])
    for link in links[1:]:
        link.unlink()
    assert "share/pagewise/events" in run(stage, code=3).stderr
    assert not stage.results.exists()


def test_a_result_with_broken_events_is_refused(made, stage: Stage):
    folder = shutil.copytree(made[0].result(), stage.folder / "broken")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["counters"]["events"]["metrics"][0]["formula"] = "NONE / CPU_CYCLES"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    errors = stage.run("report", str(folder), code=3).stderr
    assert "metrics.0" in errors and "NONE" in errors
