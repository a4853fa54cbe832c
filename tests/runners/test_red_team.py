"""Every fault of the red team is reported with its code, and nothing that has it is ranked."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from red_team import ALL, BASE, OF_COUNTERS, OF_KERNELS, OF_PROGRAMS, OF_RECORDS, SOFTWARE, THP, Fault
from stage import ROOT, TRIAD, Stage, write_case
from test_altered import CHANGES, fifth

pytestmark = pytest.mark.long
FAULTS = Path(__file__).parent
KERNEL = {**TRIAD, "sensitive_to": [*TRIAD["sensitive_to"], "library"], "sweeps": []}
# A separate program for each configuration, with a shared library, which runs the stand-in.
PROGRAM = """
#include <stdlib.h>
#include <unistd.h>
int work(void);
int main(int count, char **words) { return work() + execv(getenv("PW_FAKE_PROGRAM"), words) + count; }
"""
COMPETITOR = """
import os, sys, time
from pathlib import Path
marker = Path(sys.argv[1])
if os.geteuid() == 0:
    os.nice(-19)
while True:
    try:
        os.sched_setaffinity(0, {int(cpu) for cpu in marker.read_text().split(",")})
    except (OSError, ValueError):
        time.sleep(0.005)
        continue
    # By sleeping it is before others when it wakes.
    ends = time.monotonic() + 5e-5
    while time.monotonic() < ends:
        pass
    time.sleep(5e-5)
"""


def compiled(folder: Path, program: str, *options: str) -> Path:
    """A program that calls `work` of libwork.so, which lies beside it; both are made in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    compiler = shutil.which("cc") or "gcc"
    for name, text, more in (
        ("libwork.so", "int work(void) { return 0; }", ["-shared", "-fPIC"]),
        ("program", program, ["-L.", "-lwork", "-Wl,-rpath,$ORIGIN", *options]),
    ):
        made = [compiler, "-x", "c", "-", "-o", name]
        if name == "program":
            made = [compiler, "-x", "c", "-", "-x", "none", "-o", name, *more]
        else:
            made += more
        subprocess.run(made, input=text, text=True, cwd=folder, check=True, timeout=60)
    return folder / "program"


def add(stage: Stage, fault: Fault) -> str:
    """A configuration with this fault; the module's name."""
    behaviour = {
        # What distinguishes configurations with the same label.
        "library": fault.name if fault.label in (SOFTWARE, THP) else "",
        "factor": "0.5",
        "fault": fault.name,
        "faults": str(FAULTS),
        "state": str(stage.folder / f"{fault.name}.runs"),
        "marker": str(stage.folder / "competing"),
    }
    name = stage.add("gcc-12.2.0", fault.label, [KERNEL], **behaviour)
    if fault.name == "module-edited":
        stage.set(name, "PW_FAKE_MODULE", str(stage.modules / f"{name}.lua"))
    if fault.name == "library-edited":
        prefix = stage.prefix(name)
        inner = prefix / "libexec" / "pw-triad"
        inner.parent.mkdir()
        (prefix / "bin" / "pw-triad").rename(inner)
        shutil.copytree(compiled(stage.folder / "compiled", PROGRAM).parent, prefix / "lib")
        (prefix / "lib" / "program").rename(prefix / "bin" / "pw-triad")
        (prefix / "lib" / "libwork.so").rename(prefix / "bin" / "libwork.so")
        stage.set(name, "PW_FAKE_PROGRAM", str(inner))
        stage.set(name, "PW_FAKE_LIBRARY", str(prefix / "bin" / "libwork.so"))
    return name


def test_every_fault_of_a_kernel_is_reported_and_not_ranked(stage: Stage):
    """One comparison has all of them; what is sound in it is ranked."""
    faults = [fault for fault in OF_KERNELS if fault.name != "competing-load"]
    stage.add("gcc-12.2.0", THP, [KERNEL], factor="0.5")
    rows, findings = outcome(stage, faults, "--bind", "membind:0")
    verdicts = {fault.name: rows[fault.name]["verdict"] for fault in faults}
    assert verdicts == {fault.name: None if fault.code else "inconclusive" for fault in faults}
    assert findings == {fault.name: fault.code for fault in faults if fault.code}
    sound = [row for name, row in rows.items() if name not in verdicts]
    assert [(row["code"], row["verdict"]) for row in sound] == [(None, None), (None, "faster")]


@pytest.mark.alone
def test_competing_load_is_reported(stage: Stage):
    """Beside other tests the baseline would be disturbed too."""
    marker = stage.folder / "competing"
    with subprocess.Popen([sys.executable, "-c", COMPETITOR, str(marker)]) as competitor:
        try:
            outcome(stage, [fault for fault in OF_KERNELS if fault.name == "competing-load"], "--cpus", "0")
        finally:
            competitor.kill()


def outcome(
    stage: Stage, faults: Sequence[Fault], *arguments: str
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The rows and the codes of the findings of a comparison with these faults, by fault, else by module."""
    stage.add("gcc-12.2.0", BASE, [KERNEL])
    names = {add(stage, fault): fault.name for fault in faults}
    chosen = ("--rounds", "8", "--no-sweep", *arguments, "--json")
    done = stage.run("kernels", "--output", str(stage.results), *chosen, timeout=300)
    assert done.returncode == 1, done.stderr
    reported = json.loads(done.stdout)
    configurations = reported["kernels"][0]["configurations"]
    rows = {names.get(row["module"], row["module"]): row for row in configurations}
    assert {fault.name: rows[fault.name]["code"] or "" for fault in faults} == {
        fault.name: fault.code for fault in faults
    }
    return rows, {names[one["module"]]: one["code"] for one in reported["findings"]}


def test_records_that_are_edited_during_their_session_have_no_verdict(stage: Stage):
    stage.add("gcc-12.2.0", BASE, [KERNEL])
    fault = {
        "fault": "records-edited-during-the-session",
        "faults": str(FAULTS),
        "state": str(stage.folder / "runs"),
    }
    stage.add("gcc-12.2.0", THP, [KERNEL], results=str(stage.results), **fault)
    done = stage.compare("--rounds", "5", "--no-sweep", "--json")
    reported = json.loads(done.stdout)
    assert done.returncode == 1 and reported["altered"] is not None
    assert {row["code"] for row in reported["kernels"][0]["configurations"]} == {"records_altered"}


def test_changes_of_records_are_those_of_the_table():
    assert {*CHANGES, "records-edited-during-the-session"} == {fault.name for fault in OF_RECORDS}


@pytest.mark.parametrize("fault", OF_PROGRAMS, ids=lambda fault: fault.name)
def test_a_fault_of_the_users_program_is_reported_and_not_ranked(fault: Fault, stage: Stage):
    program = compiled(stage.folder / "own", PROGRAM)
    given = stage.folder / "own" / "input.txt"
    given.write_text("1")
    script = stage.folder / "own" / "script"
    script.write_text(f"#!{sys.executable} -SE\n" + (FAULTS / "faulty_program.py").read_text())
    script.chmod(0o755)
    stage.environment |= {
        "PW_FAKE_PROGRAM": str(script),
        "PW_FAKE_OWN": fault.name,
        "PW_FAKE_FOLDER": str(stage.folder / "own"),
    }
    case = write_case(stage.folder, checks=["all is well"], inputs=[str(given)])
    chosen = ("--policies", "none,reuse", "--rounds", "4", "--case", case)
    done = stage.run("compare", "--output", str(stage.results), *chosen, "--json", "--", str(program))
    assert done.returncode == 1, done.stderr
    reported = json.loads(done.stdout)
    rows = [row for row in reported["kernels"][0]["configurations"] if row["code"]]
    assert {row["code"] for row in rows} == {fault.code} == {one["code"] for one in reported["findings"]}
    assert {row["verdict"] for row in rows} == {None}
    if fault.code == "file_changed":
        assert len(rows) == 2 and reported["program"] == {"memory": [], "advice": None}
        assert reported["comparisons"] == []


@pytest.mark.parametrize("fault", OF_COUNTERS[:-1], ids=lambda fault: fault.name)
def test_a_fault_of_a_counted_program_is_reported_and_has_no_counts(fault: Fault, stage: Stage):
    stage.add("gcc-12.2.0", BASE, [KERNEL])
    inner = {
        "counted-program-replaced": "program-replaced",
        "counted-check-failed-once": "failed-check-once",
        "counted-pages-lost": "pages-lost",
    }
    faulty = {"fault": inner[fault.name], "faults": str(FAULTS), "state": str(stage.folder / "runs")}
    stage.add("gcc-12.2.0", THP, [KERNEL], **faulty)
    chosen = ("--events", "software", "--rounds", "6", "--json")
    done = stage.run("counters", "--output", str(stage.results), *chosen)
    assert done.returncode == 1, done.stderr
    reported = json.loads(done.stdout)
    assert [(one["hugepages"], one["code"]) for one in reported["not_counted"]] == [("thp", fault.code)]
    assert {one["hugepages"] for one in reported["values"]} == {"none"} and reported["comparisons"] == []


def test_counts_whose_records_were_edited_are_not_shown(stage: Stage):
    for label in (BASE, THP):
        stage.add("gcc-12.2.0", label, [KERNEL])
    stage.run("counters", "--output", str(stage.results), "--events", "software", "--rounds", "2")
    file = stage.result() / "records.jsonl"
    file.write_bytes(b"".join(fifth(file.read_bytes().splitlines(keepends=True))))
    done = stage.run("report", str(stage.result()), "--json")
    reported = json.loads(done.stdout)
    assert done.returncode == 1 and reported["values"] == reported["comparisons"] == []
    assert {one["code"] for one in reported["not_counted"]} == {OF_COUNTERS[-1].code}


def test_the_documentation_lists_the_faults_of_the_table():
    text = (ROOT / "docs/explanation/trust.md").read_text()
    rows = re.findall(r"^\| `?([a-z_ ]+)`? \|.*\|(.*)\|$", text, re.MULTILINE)
    listed = [(name, code) for code, names in rows for name in re.findall(r"`([a-z-]+)`", names)]
    assert sorted(listed) == sorted((fault.name, fault.code or "inconclusive") for fault in ALL)
    assert len({fault.name for fault in ALL}) == len(ALL) >= 30
