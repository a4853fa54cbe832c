"""Every fault of the red team is reported with its code, and nothing that has it is ranked."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from faulty import FAULTS as OF_KERNELS
from red_team import CODES
from scripts import called, write_script
from stage import BASE, THP, TRIAD, Stage, write_case
from test_altered import CHANGES, fifth
from test_real_kernels import OF_MACHINE, OF_MEMORY

pytestmark = pytest.mark.long
FAULTS = Path(__file__).parent
SOFTWARE = ("none", "software", "regular")
#: The configurations with a fault, except those with THP.
LABELS = {
    "huge-pages-on-base": SOFTWARE,
    "dropped-flag": ("thp", "block", "regular"),
    "another-version": ("thp", "software", "regular"),
}
EDITED = "records-edited-during-the-session"
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


def compiled(folder: Path) -> Path:
    """A program that calls `work` of libwork.so, which lies next to it; both are made in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [shutil.which("cc") or "gcc", "-x", "c", "-"]
    shared = [*words, "-shared", "-fPIC", "-o", "libwork.so"]
    called(shared, input="int work(void) { return 0; }", cwd=folder, check=True)
    linked = [*words, "-x", "none", "-o", "program", "-L.", "-lwork", "-Wl,-rpath,$ORIGIN"]
    called(linked, input=PROGRAM, cwd=folder, check=True)
    return folder / "program"


def add(stage: Stage, fault: str) -> str:
    """A configuration with this fault; the module's name."""
    label = LABELS.get(fault, THP)
    behaviour = {
        # What distinguishes configurations with the same label.
        "library": fault if label in (SOFTWARE, THP) else "",
        "factor": "0.5",
        "fault": fault,
        "faults": str(FAULTS),
        "state": str(stage.folder / f"{fault}.runs"),
        "marker": str(stage.folder / "competing"),
        "results": str(stage.results),
    }
    name = stage.add("gcc-12.2.0", label, [KERNEL], **behaviour)
    if fault == "module-edited":
        stage.set(name, "PW_FAKE_MODULE", str(stage.modules / f"{name}.lua"))
    if fault == "library-edited":
        prefix = stage.prefix(name)
        inner, folder = prefix / "libexec" / "pw-triad", prefix / "bin"
        inner.parent.mkdir()
        (folder / "pw-triad").rename(inner)
        compiled(folder).rename(folder / "pw-triad")
        stage.set(name, "PW_FAKE_PROGRAM", str(inner))
        stage.set(name, "PW_FAKE_LIBRARY", str(folder / "libwork.so"))
    return name


def test_every_fault_of_a_kernel_is_reported_and_excluded(stage: Stage):
    """One comparison has all of them; what is sound in it is ranked."""
    faults = OF_KERNELS.keys() - {"competing-load", EDITED}
    stage.add("gcc-12.2.0", THP, [KERNEL], factor="0.5")
    rows, findings = outcome(stage, faults, "--bind", "membind:0")
    kept = {fault for fault in faults if CODES[fault] == "inconclusive"}
    verdicts = {fault: rows[fault]["verdict"] for fault in faults}
    assert verdicts == {fault: "inconclusive" if fault in kept else None for fault in faults}
    assert findings == {fault: CODES[fault] for fault in faults - kept}
    sound = [row for name, row in rows.items() if name not in verdicts]
    assert [(row["code"], row["verdict"]) for row in sound] == [(None, None), (None, "faster")]


@pytest.mark.alone
def test_competing_load_is_reported(stage: Stage):
    """Other tests would disturb the baseline too. The scheduler decides how often it is disturbed."""
    marker = stage.folder / "competing"
    with subprocess.Popen([sys.executable, "-c", COMPETITOR, str(marker)]) as competitor:
        try:
            for attempt in range(3):
                with suppress(AssertionError) if attempt < 2 else nullcontext():
                    outcome(stage, ["competing-load"], "--cpus", "0")
                    break
        finally:
            competitor.kill()


def outcome(
    stage: Stage, faults: Iterable[str], *arguments: str
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The rows and the codes of the findings of a comparison with these faults, by fault, else by module."""
    stage.add("gcc-12.2.0", BASE, [KERNEL])
    names = {add(stage, fault): fault for fault in faults}
    done = stage.compare("--rounds", "8", "--no-sweep", *arguments, "--json", code=1)
    reported = json.loads(done.stdout)
    configurations = reported["kernels"][0]["configurations"]
    rows = {names.get(row["module"], row["module"]): row for row in configurations}
    assert all((rows[fault]["code"] or "inconclusive") == CODES[fault] for fault in faults), rows
    return rows, {names[one["module"]]: one["code"] for one in reported["findings"]}


def test_records_that_are_edited_during_their_session_have_no_verdict(stage: Stage):
    stage.add("gcc-12.2.0", BASE, [KERNEL])
    add(stage, EDITED)
    reported = json.loads(stage.compare("--rounds", "5", "--no-sweep", "--json", code=1).stdout)
    assert reported["altered"] is not None
    assert {row["code"] for row in reported["kernels"][0]["configurations"]} == {"records_altered"}


@pytest.mark.parametrize("fault", [name for name in CODES if name.startswith("own-")])
def test_a_fault_of_the_users_program_is_reported_and_excluded(fault: str, stage: Stage):
    own = stage.folder / "own"
    program, given = compiled(own), own / "input.txt"
    given.write_text("1")
    code = f"#!{sys.executable} -SE\n" + (FAULTS / "faulty_program.py").read_text()
    script = write_script(own / "script", code)
    stage.environment |= {"PW_FAKE_PROGRAM": str(script), "PW_FAKE_OWN": fault, "PW_FAKE_FOLDER": str(own)}
    case = write_case(stage.folder, checks=["all is well"], inputs=[str(given)])
    selected = ("--policies", "none,reuse", "--rounds", "4", "--case", case, "--json")
    done = stage.compare(*selected, "--", str(program), code=1)
    reported = json.loads(done.stdout)
    rows = [row for row in reported["kernels"][0]["configurations"] if row["code"]]
    assert {row["code"] for row in rows} == {CODES[fault]} == {one["code"] for one in reported["findings"]}
    assert {row["verdict"] for row in rows} == {None}
    if CODES[fault] == "file_changed":
        assert len(rows) == 2 and reported["program"] == {"memory": [], "advice": None}
        assert reported["comparisons"] == []


#: Faults of programs whose events are counted, by those of kernels.
OF_COUNTERS = {
    "program-replaced": "counted-program-replaced",
    "failed-check-once": "counted-check-failed-once",
    "pages-lost": "counted-pages-lost",
}


@pytest.mark.parametrize("fault", OF_COUNTERS)
def test_a_fault_of_a_counted_program_is_reported_and_has_no_counts(fault: str, stage: Stage):
    stage.add("gcc-12.2.0", BASE, [KERNEL])
    faulty = {"fault": fault, "faults": str(FAULTS), "state": str(stage.folder / "runs")}
    stage.add("gcc-12.2.0", THP, [KERNEL], **faulty)
    selected = ("--events", "software", "--rounds", "6", "--json")
    done = stage.run("counters", "--output", str(stage.results), *selected, code=1)
    reported = json.loads(done.stdout)
    (excluded,) = reported["not_counted"]
    assert (excluded["hugepages"], excluded["code"]) == ("thp", CODES[OF_COUNTERS[fault]])
    assert {one["hugepages"] for one in reported["values"]} == {"none"} and reported["comparisons"] == []


def test_counts_with_edited_records_are_not_shown(stage: Stage):
    for label in (BASE, THP):
        stage.add("gcc-12.2.0", label, [KERNEL])
    stage.run("counters", "--output", str(stage.results), "--events", "software", "--rounds", "2")
    file = stage.result() / "records.jsonl"
    file.write_bytes(b"".join(fifth(file.read_bytes().splitlines(keepends=True))))
    reported = json.loads(stage.run("report", str(stage.result()), "--json", code=1).stdout)
    assert reported["values"] == reported["comparisons"] == []
    assert {one["code"] for one in reported["not_counted"]} == {CODES["counted-records-edited"]}


def test_the_documentation_lists_the_faults_that_are_made():
    others = {name for name in CODES if name.split("-")[0] in ("own", "counted", "simulated")}
    assert CODES.keys() - others == {*OF_KERNELS, *CHANGES, *OF_MACHINE, *OF_MEMORY}
    assert {*OF_COUNTERS.values(), "counted-records-edited"} < others and len(others) == 11
