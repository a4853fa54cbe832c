"""pagewise compare -- PROGRAM with real programs in C: what they are, how they run and how they end."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from own_program import SOURCES, Own, needs_thp
from pagewise.stack.binary import examine
from pagewise.workloads.program.program import Program
from scripts import write_script

pytestmark = pytest.mark.long

#: What own_programs/memory.c prints.
ABOUT_TO_CRASH, WENT_WRONG = "about to crash", "this went wrong"


@pytest.mark.parametrize(
    ("arguments", "way", "status", "reported"),
    [
        (["--check", "PASSED"], "large", "check_failed", "'PASSED'"),
        (["--metric", "gflops=Gflops: (\\S+)"], "large", "check_failed", "gflops"),
        (["--timeout", "0.5"], "sleep 30", "failed", "0.5 s"),
        ([], "crash", "failed", ABOUT_TO_CRASH),
        ([], "wrong", "failed", WENT_WRONG),
        (["--case", "case.yaml"], "wrong", "ok", ""),
    ],
)
def test_a_wrong_result_is_reported_once_with_its_output_and_excluded(
    own: Own, arguments: list[str], way: str, status: str, reported: str
):
    own.case(exit_codes=[3])
    done = own.run("--policies", "none,reuse", "--rounds", "2", *arguments, way=way)
    assert done.returncode == (status != "ok"), done.stdout + done.stderr
    assert own.statuses() == {"none": {status}, "reuse": {status}}
    assert len(own.records()) == (4 if status == "ok" else 2)
    for record in own.records() if status != "ok" else ():
        assert reported in record.failure.message and (own.stage.result() / record.run.log).is_file()


@pytest.mark.parametrize(("method", "measured"), [("turns", ("turns", False)), ("auto", ("runs", True))])
def test_the_metrics_of_programs_in_slices_are_not_recorded(own: Own, method: str, measured):
    """The clocks that a program reads continue while it is stopped."""
    selected = ("--policies", "none,reuse", "--rounds", "1", "--method", method, "--metric", "sum=(\\d+)")
    own.run(*selected, way="large 0.3", code=0)
    runs = [record for record in own.records() if record.run.series != "trial"]
    assert {(each.run.method, "sum" in each.figures) for each in runs} == {measured}


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--", "no-such-program"], "no-such-program"),
        (["--policies", "huge", "--", "true"], "'huge'"),
        (["--metric", "x", "--", "true"], "--metric"),
        (["--check", "(", "--", "true"], "--check"),
        (["--prepare-pages", "much", "--", "true"], "--prepare-pages"),
        (["--baseline", "libhugetlbfs", "--", "true"], "--baseline"),
        (["--threads", "4000", "--", "true"], "4000"),
    ],
)
def test_wrong_usage_is_reported_before_anything_is_run(own: Own, arguments: list[str], reported: str):
    assert reported in own.stage.compare(*arguments, code=2).stderr
    assert not own.stage.results.exists()


def test_files_that_are_not_executable_or_not_programs(own: Own):
    plain = own.folder / "plain"
    plain.write_text("text")
    absent = own.stage.run("compare", "--", "./other").stderr
    for mode, named in ((0o644, "PATH"), (0o755, "#!")):
        plain.chmod(mode)
        done = own.stage.run("compare", "--", "./plain", code=2)
        assert "plain" in done.stderr and named in done.stderr
        assert done.stderr.replace("plain", "other") != absent


@needs_thp
def test_the_policies_of_a_script_are_decided_by_the_programs_that_it_starts(own: Own):
    script = write_script(own.folder / "run.sh", f"#!/bin/sh\n{own.programs / 'memory'} static\n")
    own.stage.compare("--policies", "none,bss,text", "--rounds", "1", "--", str(script), code=0)
    assert own.statuses() == {"none": {"ok"}, "bss": {"ok"}, "text": {"pages_unavailable"}}
    program = own.stage.read_result().manifest.programs["run_sh"]
    assert [Path(ran["path"]).name for ran in program["programs"]] == ["memory"]
    reasons = {policy["name"]: policy["unavailable_reason"] is not None for policy in program["policies"]}
    assert reasons == {"none": False, "bss": False, "text": True}
    listed = json.loads(own.stage.run("list", "policies", "--json", "--", str(script)).stdout)
    assert listed["starts_others"]


def test_a_launcher_and_a_program_that_starts_none(own: Own):
    memory, environment = str(own.programs / "memory"), dict(os.environ)
    shared = {"name": "x", "environment": environment, "folder": own.folder}
    for command, starts_others in (("env", memory), True), ((memory, "large"), False):
        program = Program(command=command, binary=examine(command[0], environment), **shared)
        assert program.starts_others == starts_others


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="there is no musl-gcc")
def test_musl_is_known(tmp_path: Path):
    made = tmp_path / "memory"
    subprocess.run(["musl-gcc", "-O2", SOURCES / "memory.c", "-o", str(made)], check=True)
    assert examine(str(made), os.environ).c_library == "musl"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file away")
def test_a_program_with_rights_of_another_is_known(own: Own):
    copy = Path(shutil.copy(own.programs / "memory", own.folder / "memory"))
    os.chown(copy, 65534, 65534)
    copy.chmod(copy.stat().st_mode | stat.S_ISUID)
    own.stage.compare("--policies", "none,malloc", "--rounds", "1", "--", str(copy), "short", code=0)
    assert "set-user-ID" in own.reason("malloc")
