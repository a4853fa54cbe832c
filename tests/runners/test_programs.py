"""pagewise compare -- PROGRAM with real programs in C: their real memory, on this machine's real pages."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from killed_sessions import settle
from pagewise.core.record import Record
from pagewise.core.result import read_result
from pagewise.machine.host import chosen
from pagewise.stack.binary import examine
from stage import Stage
from test_commands import wait_for

pytestmark = pytest.mark.long
SOURCE = Path(__file__).with_name("own_programs") / "memory.c"
THP = Path("/sys/kernel/mm/transparent_hugepage")
POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
SMALL = THP / "hugepages-64kB/enabled"

needs_thp = pytest.mark.skipif(
    not THP.exists() or chosen((THP / "enabled").read_text()) == "never",
    reason="transparent huge pages are switched off on this machine",
)
needs_madvise = pytest.mark.skipif(
    not THP.exists() or chosen((THP / "enabled").read_text()) != "madvise",
    reason="this machine gives transparent huge pages to all, or to none",
)


def build(folder: Path, name: str, *options: str) -> Path:
    made = folder / name
    subprocess.run(
        ["gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", *options, str(SOURCE), "-o", str(made)],
        check=True,
    )
    return made


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program: dynamic, static, with much machine code; compiled libraries stay in it."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / ".pagewise").mkdir()
    build(folder, "memory")
    build(folder, "memory-static", "-static")
    build(folder, "memory-code", "-DLARGE_TEXT")
    return folder


@pytest.fixture
def own(programs: Path, tmp_path: Path) -> Iterator[Own]:
    yield Own(programs, tmp_path)


class Own:
    """Compares a program in a fresh folder."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder = programs, folder
        self.stage = Stage(folder, {"PAGEWISE_ROOT": str(programs)})

    def command(self, *arguments: str) -> list[str]:
        return self.stage.command("compare", "--output", str(self.stage.results), *arguments)

    def run(
        self, *arguments: str, program: str = "memory", way: str = "large"
    ) -> subprocess.CompletedProcess[str]:
        words = ["compare", "--output", str(self.stage.results), *arguments]
        return self.stage.run(*words, "--", str(self.programs / program), *way.split(), timeout=120)

    def records(self, series: str = "compare") -> list[Record]:
        return [one for one in read_result(self.stage.result()).records if one.run.series == series]

    def statuses(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for one in self.records():
            found.setdefault(one.configuration.hugepages, set()).add(one.status)
        return found

    def reason(self, policy: str) -> str:
        reported = next(one for one in self.records() if one.configuration.hugepages == policy)
        return reported.failure.message


@needs_thp
def test_a_program_with_a_large_array(own: Own):
    done = own.run(
        *("--policies", "none,thp,glibc,reuse+glibc", "--rounds", "3", "--name", "large"),
        *("--metric", "rate[GB/s]=rate: (\\S+)", "--check", "sum: -?[0-9]", "--check", "! nan"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.statuses() == {policy: {"ok"} for policy in ("none", "thp", "glibc", "reuse+glibc")}
    for one in own.records():
        huge = one.configuration.hugepages != "none"
        assert (one.pages.huge_coverage > 0.8) == huge
        assert one.metrics["rate"] == 1.5 and one.validation.passed
        assert one.program.full_samples >= 3 and one.program.processes == 1
    assert len(own.records("aa")) == 3 and len(own.records("trial")) == 4
    for reported in ("Memory by kind", "anonymous", "rate [GB/s]", "2 MiB"):
        assert reported in done.stdout
    folder = own.stage.result()
    assert folder.name.endswith("-large")
    page = (folder / "report.html").read_text()
    assert "Memory by kind" in page and "transparent huge pages for malloc alone" in page
    metrics = list(csv.DictReader((folder / "metrics.csv").open()))
    assert {row["hugepages"] for row in metrics if row["metric"] == "rate"} == {
        "none",
        "thp",
        "glibc",
        "reuse+glibc",
    }
    memory = list(csv.DictReader((folder / "memory.csv").open()))
    heap = next(row for row in memory if row["hugepages"] == "reuse+glibc" and row["kind"] == "heap")
    assert int(heap["peak_bytes"]) >= 60 << 20 and float(heap["mean_coverage"]) > 0.8
    reported = json.loads((folder / "manifest.json").read_text())["program"]
    assert reported["sha256"] == own.records()[0].run.hash and reported["c_library"] == "glibc"
    again = own.stage.run("report", str(folder))
    assert again.returncode == 0 and "Memory by kind" in again.stdout, again.stderr


@needs_thp
@pytest.mark.parametrize("way", ["small", "fork", "again"])
def test_programs_that_allocate_otherwise(own: Own, way: str):
    done = own.run("--policies", "none,glibc,reuse", "--rounds", "1", way=way)
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.statuses() == {"none": {"ok"}, "glibc": {"ok"}, "reuse": {"ok"}}
    if way == "fork":
        assert all(one.program.processes >= 2 for one in own.records())
    if way == "again":
        faults = {one.configuration.hugepages: one.page_faults.compute_minor for one in own.records()}
        # Twenty times 40 MiB, or once.
        assert faults["none"] > 150_000 and max(faults["reuse"], faults["glibc"]) < 50_000


@needs_madvise
def test_static_arrays_get_huge_pages_by_advice_and_not_by_malloc(own: Own):
    done = own.run("--policies", "none,bss,thp,glibc", "--rounds", "1", way="static 0.2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.statuses() == {"none": {"ok"}, "bss": {"ok"}, "thp": {"ok"}, "glibc": {"pages_unavailable"}}
    assert "(heap, anonymous)" in own.reason("glibc")


@needs_madvise
def test_what_a_program_maps_itself_is_reached_by_advice_alone(own: Own):
    done = own.run("--policies", "none,thp,glibc", "--rounds", "1", way="mapped")
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.statuses() == {"none": {"ok"}, "thp": {"ok"}, "glibc": {"pages_unavailable"}}
    (glibc,) = [one for one in own.records() if one.configuration.hugepages == "glibc"]
    assert glibc.pages.huge_coverage < 0.001


@needs_thp
def test_machine_code_is_moved_onto_huge_pages(own: Own):
    # Pages count over time, and on a virtual machine it may take a tenth of a second to get them.
    done = own.run("--policies", "none,text", "--rounds", "1", program="memory-code", way="code 1.2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.statuses() == {"none": {"ok"}, "text": {"ok"}}
    text = next(one for one in own.records() if one.configuration.hugepages == "text")
    assert text.program.kinds["text"].peak.huge_bytes >= 6 << 20


@needs_madvise
def test_a_static_program_gets_what_its_own_glibc_knows_and_the_rest_is_refused(own: Own):
    # Pages count over time, and on a busy virtual machine it may take a tenth of a second to get them.
    done = own.run(
        "--policies", "none,glibc,thp,bss", "--rounds", "1", program="memory-static", way="large 1.2"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.statuses() == {
        "none": {"ok"},
        "glibc": {"ok"},
        "thp": {"pages_unavailable"},
        "bss": {"pages_unavailable"},
    }, done.stdout


@needs_thp
def test_a_program_too_short_to_sample_is_verified_in_an_untimed_run(own: Own):
    # As rarely as this no timed run is seen often enough.
    done = own.run("--policies", "none,glibc", "--rounds", "1", "--sample-interval", "60", way="short")
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.statuses() == {"none": {"ok"}, "glibc": {"ok"}}
    assert all("untimed run" in one.program.method for one in own.records())


def test_an_empty_pool_is_reported_before_anything_is_run(own: Own):
    if int(POOL.read_text()) > 0:
        pytest.skip("this machine has a pool")
    done = own.run("--policies", "none,hugetlbfs", "--rounds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    refused_run = next(one for one in own.records() if one.configuration.hugepages == "hugetlbfs")
    assert refused_run.status == "pages_unavailable" and "--reserve-hugepages" in refused_run.failure.remedy
    assert refused_run.run.wall_seconds is None


def test_a_wrong_result_is_reported_once_with_its_output_and_is_not_ranked(own: Own):
    done = own.run("--policies", "none,reuse", "--rounds", "2", "--check", "PASSED")
    assert done.returncode == 1, done.stdout + done.stderr
    assert own.statuses() == {"none": {"check_failed"}, "reuse": {"check_failed"}}
    assert "'PASSED'" in own.reason("none") and "'PASSED'" in done.stdout
    log = own.records()[0].run.log
    assert "sum: " in (own.stage.result() / log).read_text()


@pytest.mark.parametrize(
    ("way", "reason"),
    [("crash", "crashed by SIGSEGV: about to crash"), ("wrong", "ended with exit code 3: this went wrong")],
)
def test_a_program_that_fails(own: Own, way: str, reason: str):
    done = own.run("--policies", "none,reuse", "--rounds", "2", way=way)
    assert done.returncode == 1, done.stdout + done.stderr
    assert own.reason("none") == reason and own.statuses() == {"none": {"failed"}, "reuse": {"failed"}}


def test_another_exit_code_may_be_good(own: Own):
    done = own.run("--policies", "none", "--rounds", "1", "--exit-code", "3", way="wrong")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_metric_that_is_missing_is_a_wrong_result(own: Own):
    done = own.run("--policies", "none", "--rounds", "1", "--metric", "gflops=Gflops: (\\S+)")
    assert done.returncode == 1 and "gflops" in own.reason("none")


def test_a_program_that_takes_too_long_is_ended(own: Own):
    done = own.run("--policies", "none", "--rounds", "1", "--timeout", "0.5", way="sleep 30")
    assert done.returncode == 1, done.stdout + done.stderr
    assert own.reason("none").startswith("ended after 0.5 s")


def test_input_and_output_files_in_a_fresh_folder(own: Own):
    (own.folder / "input.txt").write_text("41\n")
    script = own.folder / "app.sh"
    script.write_text("#!/bin/sh\necho out; ls | wc -l; echo answer $(($(cat input.txt) + 1)) > result.txt\n")
    script.chmod(0o755)
    done = own.stage.run(
        *("compare", "--output", str(own.stage.results), "--policies", "none", "--rounds", "2"),
        *("--input", "input.txt", "--read", "result.txt", "--metric", "answer=answer (\\d+)"),
        *("--check", "^1$", "--", str(script)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [one.metrics["answer"] for one in own.records()] == [42.0, 42.0]
    assert not (own.folder / "result.txt").exists()


def test_the_environment_is_the_users_less_what_is_a_policy(own: Own):
    own.stage.environment |= {
        "MINE": "kept",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=2:glibc.malloc.arena_max=1",
    }
    done = own.run(
        *("--policies", "none", "--rounds", "1", "--check", "^MINE=kept$"),
        *("--check", "^GLIBC_TUNABLES=glibc.malloc.arena_max=1$"),
        way="environment",
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--", "no-such-program"], "no-such-program"),
        (["--"], "--"),
        (["--policies", "huge", "--", "true"], "'huge'"),
        (["--metric", "x", "--", "true"], "--metric"),
        (["--check", "(", "--", "true"], "--check"),
        (["--pool-memory", "much", "--", "true"], "--pool-memory"),
        (["--baseline", "libhugetlbfs", "--", "true"], "--baseline"),
        (["--threads", "4000", "--", "true"], "4000"),
    ],
)
def test_wrong_usage_is_reported_before_anything_is_run(own: Own, arguments: list[str], reported: str):
    done = own.stage.run("compare", "--output", str(own.stage.results), *arguments)
    assert done.returncode == 2 and reported in done.stderr
    assert not own.stage.results.exists()


def test_what_may_not_be_run_and_what_is_no_program(own: Own):
    plain = own.folder / "plain"
    plain.write_text("text")
    for mode, reported in ((0o644, "not executable"), (0o755, "neither an ELF program nor a script")):
        plain.chmod(mode)
        done = own.stage.run("compare", "--", "./plain")
        assert done.returncode == 2 and reported in done.stderr


def test_the_list_of_policies_and_what_a_program_can_have(own: Own):
    alone = own.stage.run("list", "policies")
    assert alone.returncode == 0 and "reuse" in alone.stdout and "glibc.malloc.hugetlb=2" in alone.stdout
    done = own.stage.run("list", "policies", "--", str(own.programs / "memory-static"))
    assert done.returncode == 0 and "static, glibc" in done.stdout
    assert "libhugetlbfs" in done.stdout


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_keeps_and_reports_what_was_measured(own: Own, number: int, code: int):
    process = subprocess.Popen(
        own.command(
            "--policies",
            "none,reuse",
            "--rounds",
            "1000",
            "--",
            str(own.programs / "memory"),
            "large",
            "0.01",
        ),
        env=own.stage.variables(),
        cwd=own.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(
        lambda: any(f.read_bytes().count(b"\n") >= 14 for f in own.stage.results.glob("*/records.jsonl"))
    )
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == code, errors
    assert "interrupted" in errors and "Memory by kind" in output
    assert read_result(own.stage.result()).manifest.state == "interrupted"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file away")
def test_a_program_with_rights_of_another_is_known(own: Own):
    copy = Path(shutil.copy(own.programs / "memory", own.folder / "memory"))
    os.chown(copy, 65534, 65534)
    copy.chmod(copy.stat().st_mode | stat.S_ISUID)
    assert examine(str(copy), os.environ).secured == "it is set-user-ID"
    done = own.stage.run(
        *("compare", "--output", str(own.stage.results), "--policies", "none,glibc", "--rounds", "1"),
        *("--", str(copy), "short"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "set-user-ID" in own.reason("glibc")


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="there is no musl-gcc")
def test_musl_is_known(tmp_path: Path):
    made = tmp_path / "memory"
    subprocess.run(["musl-gcc", "-O2", str(SOURCE), "-o", str(made)], check=True)
    assert examine(str(made), os.environ).c_library == "musl"


def test_this_pythons_image_and_a_script_of_it(tmp_path: Path):
    script = tmp_path / "script"
    script.write_text(f"#!/usr/bin/env -S {sys.executable} -u\n")
    script.chmod(0o755)
    found = examine(str(script), os.environ)
    assert found.script and "python" in found.image.name and found.c_library == "glibc"


def test_an_allocator_inside_is_known_by_its_words(own: Own):
    copy = Path(shutil.copy(own.programs / "memory", own.folder / "memory"))
    with copy.open("ab") as stream:
        stream.write(b"\0MALLOC_CONF\0")
    assert examine(str(copy), os.environ).allocator == "jemalloc (inside)"
    assert (
        examine(str(own.programs / "memory"), {**os.environ, "LD_PRELOAD": "/x/libtcmalloc.so.4"}).allocator
        == "tcmalloc"
    )


@pytest.mark.changes_machine
def test_pages_are_reserved_used_and_given_back(own: Own):
    before = POOL.read_text()
    done = own.run("--policies", "none,hugetlbfs", "--rounds", "1", "--reserve-hugepages", way="large 0.2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.statuses() == {"none": {"ok"}, "hugetlbfs": {"ok"}}
    assert POOL.read_text() == before
    assert json.loads((own.stage.result() / "manifest.json").read_text())["pool"][0]["needed"] >= 32


@pytest.mark.changes_machine
def test_pages_that_a_run_holds_are_given_back_when_the_comparison_is_killed(own: Own):
    before = POOL.read_text()
    arguments = ("--policies", "none,hugetlbfs", "--rounds", "9", "--reserve-hugepages")
    process = subprocess.Popen(
        own.command(*arguments, "--", str(own.programs / "memory"), "large", "2"),
        env=own.stage.variables(),
        cwd=own.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    free = POOL.with_name("free_hugepages")
    wait_for(lambda: int(POOL.read_text()) - int(free.read_text()) >= 16)
    process.kill()
    process.wait()
    settle(Path("/"))
    assert POOL.read_text() == before


@pytest.mark.changes_machine
def test_a_pool_that_runs_short_is_not_ranked(own: Own):
    done = own.run(
        *("--policies", "none,hugetlbfs", "--rounds", "1", "--reserve-hugepages", "--pool-memory", "8MiB"),
        way="large 0.2",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.statuses() == {"none": {"ok"}, "hugetlbfs": {"pages_unavailable"}}
    (short,) = [one for one in own.records() if one.configuration.hugepages == "hugetlbfs"]
    assert short.pages.huge_coverage < 0.8


@pytest.mark.changes_machine
def test_multi_size_pages_for_their_runs_alone(own: Own):
    before = {file: file.read_text() for file in THP.glob("hugepages-*kB/enabled")}
    done = own.run("--policies", "none,thp,thp:64k", "--rounds", "1", "--set-thp-sizes", way="large 0.2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.statuses() == {"none": {"ok"}, "thp": {"ok"}, "thp:64k": {"ok"}}
    assert {file: file.read_text() for file in before} == before
    small = next(one for one in own.records() if one.configuration.hugepages == "thp:64k")
    assert small.pages.page_size_observed_bytes == 64 << 10 and small.program.given.peak > 500


@pytest.mark.changes_machine
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_whatever_ends_a_comparison_the_sizes_are_restored(own: Own, number: int, code: int):
    before = {file: file.read_text() for file in THP.glob("hugepages-*kB/enabled")}
    arguments = ("--policies", "none,thp:64k", "--rounds", "1000", "--set-thp-sizes")
    process = subprocess.Popen(
        own.command(*arguments, "--", str(own.programs / "memory"), "sleep", "1"),
        env=own.stage.variables(),
        cwd=own.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: SMALL.read_text() != before[SMALL])
    process.send_signal(number)
    assert process.wait(timeout=30) == code
    settle(Path("/"))
    assert {file: file.read_text() for file in before} == before
