"""`pagewise peers` over real Lmod and hyperfine, with stand-in kernels and peers."""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from json_schema import faults
from pagewise.core.manifest import Manifest
from pagewise.core.result import read_result
from pagewise.core.suggestions import choose_of
from pagewise.workloads.peers.analysis import Sample, samples
from pagewise.workloads.peers.known import PEERS
from stage import TRIAD, Stage

pytestmark = pytest.mark.long
HERE = Path(__file__).parent
KERNEL = {**TRIAD, "name": "schoenauer_triad", "executable": "pw-schoenauer_triad"}
#: What fake_peer.py prints, and the dynamic linker.
CANNOT_PIN, NO_LIBRARY = "Error: cannot pin thread", "cannot open shared object file"
ONE = "schoenauer_triad/memory/likwid-bench"
DGEMM = {
    **{key: TRIAD[key] for key in ("schema", "group", "title", "summary", "sensitive_to", "compare")},
    "name": "dgemm",
    "executable": "pw-dgemm",
    "metrics": [{"field": "gflop_per_s", "label": "Arithmetic", "unit": "Gflop/s", "better": "higher"}],
}


@pytest.fixture
def alone(stage: Stage) -> Stage:
    """A stage on which no peer is installed."""
    tools = stage.folder / "tools"
    tools.mkdir()
    for name in ("hyperfine", "git", "lstopo-no-graphics"):
        (tools / name).symlink_to(shutil.which(name))
    stage.environment = {"PATH": str(tools), "PAGEWISE_PEERS": str(stage.folder / "peers")}
    for compiler, factor in (("gcc-12.2.0", "1"), ("llvm-22.1.8", "1.2")):
        for pages in ("none", "thp"):
            stage.add(compiler, (pages, "hardware", "regular"), [KERNEL], factor=factor)
    return stage


def install(stage: Stage, mode: str = "ok") -> None:
    folder = stage.folder / "peers"
    folder.mkdir()
    text = (HERE / "fake_peer.py").read_text().replace('MODE = "ok"', f'MODE = "{mode}"')
    # Its memory is on no huge pages, so the candidate that was asked for them is left out.
    (folder / "likwid-bench").write_text(f"#!{sys.executable} -SE\n{text}")
    (folder / "likwid-bench").chmod(0o755)
    shutil.copy(HERE / "peer_outputs" / "likwid-bench.txt", folder / "output.txt")


def measured(stage: Stage) -> tuple[Manifest, list[Sample]]:
    """The manifest of the newest result, and the figures of its records."""
    result = read_result(stage.result())
    assert result.manifest.kind == "peers" and result.skipped == [] and result.altered is None
    return result.manifest, samples(result.records, result.manifest.changed_files)


def missing(stage: Stage, done: subprocess.CompletedProcess[str]) -> set[str]:
    """The peers and kernels that the printed reasons of the newest result name as missing."""
    reasons = {match["missing"] for match in measured(stage)[0].peers.matches}
    assert all(reason in done.stdout for reason in reasons)
    names = {"likwid-bench", "hpcc", "fftw", "transpose", "stream_copy", "fft"}
    return {name for reason in reasons for name in names if name in re.findall(r"[\w-]+", reason)}


def peers(stage: Stage, *arguments: str) -> subprocess.CompletedProcess[str]:
    return stage.run("peers", "--output", str(stage.results), "--kernels", ONE, *arguments)


def test_a_comparison_with_a_peer_from_finding_to_files(alone: Stage):
    install(alone)
    done = peers(alone, "--rounds", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(alone.folder / "peers" / "likwid-bench") in done.stderr and "multichase" in done.stderr
    assert "4/4" in done.stderr and "schoenauer_triad" in done.stdout and "likwid-bench" in done.stdout
    assert "pages_unavailable" in {r.status for r in read_result(alone.result()).records}
    folder = alone.result()
    rows = {row["scope"]: row for row in csv.DictReader((folder / "peers.csv").open())}
    assert set(rows) == {"all", "gcc", "llvm"}
    assert float(rows["all"]["speedup"]) == pytest.approx(1.0, abs=0.03)
    assert rows["all"]["theirs_candidate"] == "likwid-bench triad_mem_avx_fma"
    assert rows["llvm"]["answer"] == "not met" and rows["gcc"]["kernel"] == "schoenauer_triad"
    reported, taken = measured(alone)
    assert reported.state == "complete" and reported.rounds_done == 4
    assert reported.peers.programs["multichase"] == []
    assert reported.placement.cpus and len(reported.peers.programs["likwid-bench"][0]["sha256"]) == 64
    assert {s.series for s in taken} == {"trial", "compare", "aa"}
    assert not any("triad_sp" in s.candidate.label for s in taken)
    assert [s.series for s in taken if s.candidate.label == "likwid-bench triad"] == ["trial"]
    orders = [
        [s.candidate.label for s in taken if s.round == number and s.series == "compare"]
        for number in range(1, 5)
    ]
    assert len({tuple(order) for order in orders}) > 1 and len({frozenset(order) for order in orders}) == 1
    assert "| memory |" in (folder / "summary.md").read_text()


@pytest.mark.parametrize(
    ("mode", "exit_code", "named"),
    [("garbage", 0, "MByte/s:"), ("fail", 3, CANNOT_PIN), ("hang", -signal.SIGTERM, "0.5 s")],
)
def test_a_peer_that_does_not_work_is_reported_and_is_a_fault(
    alone: Stage, mode: str, exit_code: int, named: str
):
    install(alone, mode)
    done = peers(alone, "--rounds", "1", "--timeout", "0.5")
    assert done.returncode == 1 and named in done.stdout
    rows = list(csv.DictReader((alone.result() / "peers.csv").open()))
    assert all(row["ours"] and not row["theirs"] and "theirs" in row["missing"].split() for row in rows)
    failures = [record.failure for record in read_result(alone.result()).records if record.failure]
    assert {exit_code} == {one.exit_code for one in failures if named in one.message}


def test_a_peer_that_is_replaced_during_the_session_has_no_figure(alone: Stage):
    """It replaces itself by an equal one that reports twice the speed."""
    install(alone)
    program = alone.folder / "peers" / "likwid-bench"
    lines = (
        "count = Path(__file__).with_name('count')",
        "with count.open('ab') as stream: stream.write(b'1')",
        "if count.stat().st_size == 6:",
        "    other = Path(__file__).with_name('other')",
        "    other.write_text(Path(__file__).read_text() + '\\n')",
        "    other.chmod(0o755)",
        "    other.replace(__file__)",
    )
    program.write_text(program.read_text() + "\n".join(lines) + "\n")
    done = peers(alone, "--rounds", "4", "--json")
    assert done.returncode == 1
    reported, taken = measured(alone)
    changed = {entry.module for entry in reported.changed_files}
    assert changed and all(label.startswith("likwid-bench") for label in changed)
    theirs = [sample for sample in taken if sample.candidate.label in changed]
    assert theirs and {sample.value for sample in theirs} == {None}
    assert {row["speedup"] for row in json.loads(done.stdout)["comparisons"]} == {None}


def test_figures_that_were_edited_are_not_collected(alone: Stage):
    install(alone)
    assert peers(alone, "--rounds", "1").returncode == 0
    file = alone.result() / "records.jsonl"
    store = ("--store", str(alone.folder / "store"), "--json")
    assert json.loads(alone.run("results", "collect", str(alone.results), *store).stdout)["taken"] == 1
    records = [json.loads(line) for line in file.read_text().splitlines()]
    sample = next(r["sample"] for r in records if r["sample"]["value"] is not None)
    sample["value"] *= 2
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    collected = json.loads(alone.run("results", "collect", str(alone.results), *store).stdout)
    assert collected["taken"] == 0 and list(collected["skipped"]) == [str(alone.result())]
    [listed] = json.loads(alone.run("results", "list", str(alone.results), "--json").stdout)["results"]
    assert listed["altered"] is not None


def test_a_peer_that_does_not_start_is_reported(alone: Stage):
    install(alone)
    program = alone.folder / "peers" / "likwid-bench"
    program.write_text("#!/nonexistent\n")
    done = peers(alone, "--rounds", "1")
    assert done.returncode == 1 and os.strerror(errno.ENOENT) in done.stdout


def test_peers_and_kernels_that_are_not_here_are_reported_and_no_fault(alone: Stage):
    once = ("peers", "--output", str(alone.results), "--rounds", "1", "--kernels")
    done = alone.run(*once, f"{ONE},transpose")
    assert done.returncode == 0, done.stderr
    assert missing(alone, done) == {"likwid-bench", "hpcc"}
    install(alone)
    done = alone.run(*once, "stream_copy/memory/*")
    assert done.returncode == 0 and missing(alone, done) == {"stream_copy"}


def test_a_broken_kernel_is_not_compared(alone: Stage):
    install(alone)
    alone.add("nag-7", ("none", "hardware", "regular"), [KERNEL], mode="check_failed")
    done = peers(alone, "--rounds", "1", "--json")
    assert done.returncode == 1
    reported = json.loads(done.stdout)
    assert reported["schema"] == "pagewise.peer-verdicts/1"
    assert Path(reported["folder"]) == alone.result() and reported["rounds_done"] == 1
    assert {one["scope"] for one in reported["comparisons"] if one["missing"]} == {"nag"}
    rows = {row["scope"]: row for row in csv.DictReader((alone.result() / "peers.csv").open())}
    assert rows["nag"]["missing"] and rows["all"]["speedup"]


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("--peers", "hpcc"), 3, ("hpcc", "--peer-path", "PAGEWISE_PEERS")),
        (("--peers", "streem"), 2, ("streem", "--peers", choose_of("streem", PEERS))),
        (("--kernels", "nothing", "--peers", "likwid-bench"), 2, ("--kernels, --peers",)),
    ],
)
def test_what_is_asked_for_by_name_must_be_there(alone: Stage, arguments, code, named):
    install(alone)
    done = alone.run("peers", "--output", str(alone.results), *arguments)
    assert done.returncode == code and all(one in done.stderr for one in named)
    assert not alone.results.exists()


def test_an_interrupt_keeps_what_was_measured_and_ends_the_peer(alone: Stage):
    install(alone)
    process = subprocess.Popen(
        alone.command("peers", "--output", str(alone.results), "--kernels", ONE, "--rounds", "500"),
        env=alone.variables(),
        cwd=alone.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if "3/500" in line:
            break
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "schoenauer_triad" in printed and "likwid-bench" in printed
    reported, _ = measured(alone)
    assert reported.state == "interrupted" and reported.rounds_done >= 2


def test_a_plan_starts_nothing(alone: Stage):
    install(alone)
    plan = json.loads(peers(alone, "--rounds", "2", "--plan", "--json").stdout)
    assert faults("plan", plan) == [] and not alone.results.exists()
    assert [kernel["name"] for kernel in plan["kernels"]] == ["schoenauer_triad_memory_likwid_bench"]


def test_rounds_are_added_within_the_budget(alone: Stage):
    install(alone)
    done = peers(alone, "--rounds", "2", "--until", "0.0001%", "--budget", "0.1s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert measured(alone)[0].until.ended == "budget"


def test_every_command_reads_such_a_result(alone: Stage):
    install(alone)
    assert peers(alone, "--rounds", "3").returncode == 0
    folder = str(alone.result())
    [listed] = json.loads(alone.run("results", "list", str(alone.results), "--json").stdout)["results"]
    assert listed["kind"] == "peers" and listed["state"] == "complete" and listed["faults"] == []
    shown = json.loads(alone.run("results", "show", folder, "--json").stdout)
    assert shown["kind"] == "peers" and {"peers.csv", "report.html", "summary.md"} <= set(shown["files"])
    table = (alone.result() / "peers.csv").read_bytes()
    (alone.result() / "peers.csv").unlink()
    done = alone.run("report", folder, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["folder"] == folder
    assert (alone.result() / "peers.csv").read_bytes() == table


@pytest.mark.parametrize("found", [True, False])
def test_a_kernel_stands_against_direct_calls_of_the_library_that_it_uses(alone: Stage, found: bool):
    """A stand-in kernel; the true program of direct calls, compiled on the way, and the true library."""
    for name in ("cc", "as", "ld"):
        (alone.folder / "tools" / name).symlink_to(shutil.which(name))
    library = next(Path("/usr").glob("lib*/**/blas/libblas.so")).resolve()
    file = str(library) if found else str(alone.folder / "libblas.so")
    where = ("none", "hardware", "regular")
    alone.add("gcc-12.2.0", where, [DGEMM], library="netlib-lapack", library_file=file)
    chosen = ("--kernels", "dgemm", "--rounds", "2")
    done = alone.run("peers", "--output", str(alone.results), *chosen)
    reported, taken = measured(alone)
    assert reported.peers.libraries == {"netlib-lapack": file}
    (row,) = csv.DictReader((alone.result() / "peers.csv").open())
    assert row["comparison"] == "dgemm/250 rows/cblas/netlib-lapack" and row["unit"] == "Gflop/s"
    if not found:
        assert done.returncode == 1 and "theirs" in row["missing"].split() and row["ours"]
        assert NO_LIBRARY in done.stdout
        return
    assert done.returncode == 0, done.stdout + done.stderr
    assert float(row["speedup"]) > 0 and row["theirs_candidate"].startswith("cblas dgemm")
    ours, theirs = ([s for s in taken if s.candidate.side == side] for side in ("ours", "theirs"))
    assert all("--rows" in s.command for s in ours) and all(file in s.command for s in theirs)


def test_a_library_that_is_not_here_is_reported_and_no_fault(alone: Stage):
    done = alone.run("peers", "--output", str(alone.results), "--kernels", "fft", "--rounds", "1")
    assert done.returncode == 0 and missing(alone, done) == {"fftw"}
    assert any("fftw" in line and "CC=" in line for line in done.stderr.splitlines())
