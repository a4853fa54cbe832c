"""Every fault of the red team is reported with its code, and nothing that has it is ranked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from red_team import BASE, OF_KERNELS, SOFTWARE, THP, Fault
from stage import TRIAD, Stage

pytestmark = pytest.mark.long
FAULTS = Path(__file__).parent
KERNEL = {**TRIAD, "feels": [*TRIAD["feels"], "library"], "sweeps": []}
# A program of its own for each configuration, with a shared library, which runs the stand-in.
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
        # What tells configurations with one label apart.
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


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Stage, dict[str, Any], dict[str, str]]:
    """One comparison with all faults of kernels: the stage, what it reported, and modules by fault."""
    stage = Stage(tmp_path_factory.mktemp("red-team"))
    stage.add("gcc-12.2.0", BASE, [KERNEL])
    stage.add("gcc-12.2.0", THP, [KERNEL], factor="0.5")
    modules = {fault.name: add(stage, fault) for fault in OF_KERNELS}
    marker = stage.folder / "competing"
    with subprocess.Popen([sys.executable, "-c", COMPETITOR, str(marker)]) as competitor:
        try:
            chosen = ("--rounds", "8", "--no-sweep", "--memory", "bind:0", "--json")
            done = stage.run("compare", "--results", str(stage.results), *chosen, timeout=300)
        finally:
            competitor.kill()
    assert done.returncode == 1, done.stderr
    return stage, json.loads(done.stdout), modules


def row_of(told: dict[str, Any], module: str) -> dict[str, Any]:
    [row] = [row for row in told["kernels"][0]["configurations"] if row["module"] == module]
    return row


def test_what_is_sound_is_ranked(session: tuple[Stage, dict[str, Any], dict[str, str]]):
    _, told, modules = session
    sound = [
        row for row in told["kernels"][0]["configurations"] if row["module"] not in set(modules.values())
    ]
    assert [row["code"] for row in sound] == [None, None]
    assert [row["verdict"] for row in sound] == [None, "faster"]


@pytest.mark.parametrize("fault", OF_KERNELS, ids=lambda fault: fault.name)
def test_a_fault_of_a_kernel_is_reported_and_not_ranked(
    fault: Fault, session: tuple[Stage, dict[str, Any], dict[str, str]]
):
    _, told, modules = session
    row = row_of(told, modules[fault.name])
    assert (row["code"] or "") == fault.code, row["invalid"]
    assert row["verdict"] == (None if fault.code else "cannot tell")
    found = [one["code"] for one in told["findings"] if one["module"] == modules[fault.name]]
    assert found == ([fault.code] if fault.code else [])
    assert os.environ.get("PW_FAKE_FAULT") is None
