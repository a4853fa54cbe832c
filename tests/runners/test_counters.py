"""`pagewise counters`: from modules to the tables of the studies."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest

from pagewise.core.events import EventFile
from pagewise.core.result import read_result
from pagewise.report.model import Table
from pagewise.report.views import report_of
from pagewise.workloads.counters.machine import kernel_events
from stage import CHASE, EVENTS, TRIAD, Stage

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


def run(stage: Stage, *arguments: str) -> subprocess.CompletedProcess[str]:
    return stage.run("counters", "--output", str(stage.results), *arguments)


def counted(
    stage: Stage, *arguments: str, code: int = 0, **behaviour: str
) -> subprocess.CompletedProcess[str]:
    """Counting with programs of one compiler, which ends with this code."""
    done = run(filled(stage, compilers=("gcc-12.2.0",), **behaviour), *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def notes(stage: Stage, done: subprocess.CompletedProcess[str], word: str) -> list[str]:
    """The notes of the result that name this; the report printed them."""
    named = [note for note in report_of(read_result(stage.result())).notes if re.search(rf"\b{word}\b", note)]
    assert all(note in " ".join(done.stdout.split()) for note in named)
    return named


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Stage, subprocess.CompletedProcess[str]]:
    stage = filled(Stage(tmp_path_factory.mktemp("counters")))
    return stage, run(stage, "--events", "a64fx", "--groups", "tlb,l1", "--rounds", "3")


@pytest.mark.long
def test_counting_from_modules_to_the_three_tables(made):
    stage, done = made
    assert done.returncode == 0, done.stdout + done.stderr
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
        for row in rows(folder / "comparisons.csv")
        if row["kind"] == "pages"
    }
    assert ratios[("gcc-12.2.0", "thp", "L1D_TLB_REFILL")] == pytest.approx(0.1, rel=0.1)
    raw = rows(folder / "counts.csv")
    assert len(raw) == 3 * 6 * 12 and {row["group"] for row in raw} == {"tlb", "l1"}
    assert all(float(row["count"]).is_integer() for row in raw)
    values = rows(folder / "counters.csv")
    assert {row["kind"] for row in values} == {"run", "count", "rate", "imbalance"}
    own = [row for row in values if row["kind"] == "imbalance"]
    assert {row["value"] for row in own} == {"1.25"}
    assert not {row["quantity"] for row in own} & {
        row["quantity"] for row in rows(folder / "comparisons.csv")
    }
    # Of each compiler one of load imbalance: counts without a column of units.
    assert sum(table.columns[1].kind == "count" for table in tables_of(folder)) == 2


def tables_of(folder: Path) -> list[Table]:
    """The tables of a kernel."""
    blocks = report_of(read_result(folder)).sections[0].blocks
    return [block for block in blocks if isinstance(block, Table)]


@pytest.mark.long
def test_a_machine_without_counters_counts_software_events(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    """Named here, for the tester's machine may have counters; a VM without them comes to it by itself."""
    done = counted(stage, "--events", "software", "--rounds", "1", papi="off")
    (rate,) = (metric.title for metric in SOFTWARE.metrics if metric.name == "page_fault_rate")
    assert "PAGE_FAULTS" in done.stdout and rate in done.stdout
    ratios = {row["quantity"]: float(row["ratio"]) for row in rows(stage.result() / "comparisons.csv")}
    assert ratios["PAGE_FAULTS"] == pytest.approx(0.1, rel=0.2)


@pytest.mark.long
def test_each_placement_is_counted(stage: Stage):
    placements = ("--threads", "1", "--bind", "first-touch,membind:0")
    counted(stage, "--events", "a64fx", "--groups", "tlb", "--rounds", "3", *placements)
    ratios = rows(stage.result() / "comparisons.csv")
    actual = {(row["hugepages"], row["placement"]) for row in ratios}
    assert actual == set(product(("thp", "hugetlbfs"), ("first-touch", "membind:0")))


@pytest.mark.long
def test_a_crash_in_one_group_is_reported_and_the_rest_is_used(stage: Stage):
    arguments = ("--events", "zen4", "--groups", "tlb,walks", "--rounds", "2")
    done = counted(stage, *arguments, code=1, crash_on=ZEN4.events["TLB_FLUSHES"].native)
    assert sorted("SIGSEGV" in note for note in notes(stage, done, "walks")) == [False, True]
    records = read_result(stage.result()).records
    assert [r.run.group for r in records if r.status == "failed"] == ["walks"] * 3
    assert [r.run.group for r in records if r.status == "ok"] == ["tlb"] * 8
    assert len(list((stage.result() / "logs").iterdir())) == 3


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
def test_one_region_of_the_program(stage: Stage):
    counted(stage, "--events", "zen4", "--groups", "tlb", "--region", "hydro")
    values = rows(stage.result() / "counters.csv")
    whole = {r.configuration.hugepages: r for r in read_result(stage.result()).records}["none"]
    reported = next(row for row in values if row["quantity"] == "CYCLES" and row["hugepages"] == "none")
    cycles = whole.counters["CYCLES_NOT_IN_HALT"] / len(whole.seconds.repetitions)
    assert float(reported["value"]) == pytest.approx(cycles / 2, rel=0.2)
    assert "whole_time" in {row["quantity"] for row in values}


@pytest.mark.long
def test_wrong_wishes(stage: Stage):
    filled(stage, compilers=("gcc-12.2.0",))
    group = run(stage, "--events", "zen4", "--groups", "nothing")
    assert group.returncode == 2 and all(
        one in group.stderr for one in ("--groups", "nothing", "tlb", "walks")
    )
    events = run(stage, "--events", "nothing")
    assert events.returncode == 2 and all(one in events.stderr for one in ("--events", "nothing", "zen4"))
    assert not stage.results.exists()
    for link in stage.folder.glob("opt/*/share/pagewise/events"):
        link.unlink()
    none = run(stage)
    assert none.returncode == 3 and "share/pagewise/events" in none.stderr


@pytest.mark.long
@pytest.mark.parametrize("content", ["another", "broken"])
def test_event_files_that_differ_between_builds_or_are_broken_are_refused(stage: Stage, content: str):
    filled(stage, compilers=("gcc-12.2.0",))
    link = next(stage.folder.glob("opt/*-thp-hardware-regular/share/pagewise/events"))
    link.unlink()
    shutil.copytree(EVENTS, link)
    file = link / "zen4.yaml"
    text = file.read_text().replace("nothing was fetched", "nothing came")
    file.write_text(text if content == "another" else "schema: pagewise.events/1\n")
    done = run(stage)
    assert done.returncode == 3 and "zen4.yaml" in done.stderr


def test_a_result_with_broken_events_is_refused(made, stage: Stage):
    folder = shutil.copytree(made[0].result(), stage.folder / "broken")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["counters"]["events"]["metrics"][0]["formula"] = "NONE / CPU_CYCLES"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    again = stage.run("report", str(folder))
    assert again.returncode == 3 and "metrics.0" in again.stderr and "NONE" in again.stderr
