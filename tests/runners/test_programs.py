"""pagewise compare -- PROGRAM with real programs in C: the pages of their memory on this machine."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from killed_sessions import settle
from own_program import POOL, THP, Own, needs_thp
from pagewise.workloads.program.memory import from_snapshots
from pagewise.workloads.program.policy import PARTS
from pagewise.workloads.program.smaps import Usage
from scripts import HANGS_AFTER
from stage import csv_rows
from test_commands import wait_for

pytestmark = pytest.mark.long
SMALL = THP / "hugepages-64kB/enabled"


def start(own: Own, *arguments: str, way: str) -> subprocess.Popen[bytes]:
    words = own.command(*arguments, "--prepare-pages", "--", str(own.programs / "memory"), *way.split())
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(words, env=own.stage.variables(), cwd=own.folder, **silent)


@needs_thp
def test_a_program_with_a_large_array(own: Own):
    done = own.run(
        *("--policies", "none,thp,malloc,reuse+malloc", "--rounds", "3", "--name", "large"),
        *("--metric", "rate[GB/s]=rate: (\\S+)", "--check", "sum: -?[0-9]", "--check", "! nan"),
        way="large 0.3",
        code=0,
    )
    policies = {"none", "thp", "malloc", "reuse+malloc"}
    assert own.statuses() == {policy: {"ok"} for policy in policies}
    for one in own.records():
        huge = one.configuration.hugepages != "none"
        assert (one.pages.huge_coverage > 0.8) == huge
        assert one.metrics["rate"] == 1.5 and one.validation.passed
        assert one.program.full_samples >= 3 and one.program.processes == 1
    assert len(own.records("aa")) == 3 and len(own.records("trial")) == 4
    assert "rate [GB/s]" in done.stdout and "2 MiB" in done.stdout
    folder = own.stage.result()
    assert folder.name.endswith("-large")
    page = (folder / "report.html").read_text()
    assert "anonymous" in page and PARTS["malloc"].meaning in page
    metrics = csv_rows(folder / "comparisons.csv")
    assert {row["hugepages"] for row in metrics if row["label"] == "rate"} == policies
    memory = csv_rows(folder / "memory.csv")
    heap = next(row for row in memory if row["hugepages"] == "reuse+malloc" and row["kind"] == "heap")
    assert int(heap["peak_bytes"]) >= 60 << 20 and float(heap["mean_coverage"]) > 0.8
    reported = json.loads((folder / "manifest.json").read_text())["programs"]["memory"]
    assert reported["sha256"] == own.records()[0].run.hash and reported["c_library"] == "glibc"
    own.stage.environment["COLUMNS"] = "100"
    brief = own.stage.run("report", str(folder)).stdout.splitlines()
    rows = [line for line in brief if (" MiB " in line or "──" in line) and not line.endswith(".")]
    assert max(map(len, rows)) <= 100
    again = own.stage.run("report", "--verbose", str(folder), code=0)
    for shown in ("anonymous", "rate [GB/s]", "2 MiB"):
        assert shown in again.stdout


@needs_thp
def test_a_program_too_short_to_sample_is_verified_in_an_untimed_run(own: Own):
    # As rarely as this no timed run is seen often enough.
    own.run("--policies", "none,malloc", "--rounds", "1", "--sample-interval", "60", way="short", code=0)
    assert own.statuses() == {"none": {"ok"}, "malloc": {"ok"}}
    untimed = from_snapshots([[{"heap": Usage()}]]).method
    assert all(untimed in one.program.method for one in own.records())


@pytest.mark.changes_machine
def test_pages_are_reserved_used_and_given_back(own: Own):
    before = POOL.read_text()
    own.run("--policies", "none,hugetlbfs", "--rounds", "1", "--prepare-pages", way="large 0.2", code=0)
    assert own.statuses() == {"none": {"ok"}, "hugetlbfs": {"ok"}}
    assert POOL.read_text() == before
    assert json.loads((own.stage.result() / "manifest.json").read_text())["pool"][0]["needed"] >= 32


@pytest.mark.changes_machine
def test_pages_that_a_run_holds_are_given_back_when_the_comparison_is_killed(own: Own):
    before = POOL.read_text()
    process = start(own, "--policies", "none,hugetlbfs", "--rounds", "9", way="large 2")
    free = POOL.with_name("free_hugepages")
    wait_for(lambda: int(POOL.read_text()) - int(free.read_text()) >= 16)
    process.kill()
    process.wait()
    settle(Path("/"))
    assert POOL.read_text() == before


@pytest.mark.changes_machine
def test_a_pool_that_runs_short_is_excluded(own: Own):
    selected = ("--policies", "none,hugetlbfs", "--rounds", "1", "--prepare-pages", "2M:8MiB")
    own.run(*selected, way="large 0.2", code=0)
    assert own.statuses() == {"none": {"ok"}, "hugetlbfs": {"pages_unavailable"}}
    (short,) = [one for one in own.records() if one.configuration.hugepages == "hugetlbfs"]
    assert short.pages.huge_coverage < 0.8


@pytest.mark.changes_machine
def test_multi_size_pages_for_their_runs_alone(own: Own):
    before = {file: file.read_text() for file in THP.glob("hugepages-*kB/enabled")}
    own.run("--policies", "none,thp,thp:64k", "--rounds", "1", "--prepare-pages", way="large 0.2", code=0)
    assert own.statuses() == {"none": {"ok"}, "thp": {"ok"}, "thp:64k": {"ok"}}
    assert {file: file.read_text() for file in before} == before
    small = next(one for one in own.records() if one.configuration.hugepages == "thp:64k")
    assert small.pages.page_size_observed_bytes == 64 << 10 and small.program.given.peak > 500


@pytest.mark.changes_machine
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_whatever_ends_a_comparison_the_sizes_are_restored(own: Own, number: int, code: int):
    before = {file: file.read_text() for file in THP.glob("hugepages-*kB/enabled")}
    process = start(own, "--policies", "none,thp:64k", "--rounds", "1000", way="sleep 1")
    wait_for(lambda: SMALL.read_text() != before[SMALL])
    process.send_signal(number)
    assert process.wait(timeout=HANGS_AFTER) == code
    settle(Path("/"))
    assert {file: file.read_text() for file in before} == before
