"""What of the caller's environment reaches a measured program, and that nothing of it goes unrecorded."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from pagewise.core.environment import influences, without_influences
from pagewise.core.errors import SetupError
from pagewise.core.result import read_result
from pagewise.session.launch import implausible
from pagewise.stack.provenance import find_hyperfine
from pagewise.store.diff import differences
from scripts import called, write_script
from stage import BASE, CHASE, Stage

CALLERS = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=2:glibc.malloc.arena_max=1",
    "MALLOC_TOP_PAD_": "1048576",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_CONF": "narenas:2,thp:always",
    "JAVA_TOOL_OPTIONS": "-XX:+UseLargePages -Xmx1g",
    "MIMALLOC_ALLOW_LARGE_OS_PAGES": "1",
    "MIMALLOC_ARENA_RESERVE": "1GiB",
    "TCMALLOC_RELEASE_RATE": "1",
    "HUGETLB_MORECORE": "yes",
    "XOS_MMM_L_HPAGE_TYPE": "hugetlbfs",
    "LD_LIBRARY_PATH": "/nowhere/lib",
    "OMP_NUM_THREADS": "3",
    "KMP_AFFINITY": "compact",
}
# No run-time page policy is changed behind the policies that are compared.
POLICIES = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=2",
    "HUGETLB_MORECORE": "yes",
    "JAVA_TOOL_OPTIONS": "-XX:+UseLargePages",
    "MALLOC_CONF": "thp:always",
    "MALLOC_TOP_PAD_": "1048576",
    "MIMALLOC_ALLOW_LARGE_OS_PAGES": "1",
    "TCMALLOC_RELEASE_RATE": "1",
}


# What a comparison of a program ends with, before the program.
OWN = ("--policies", "none", "--rounds", "1")


def variables_of(printed: str) -> dict[str, str]:
    """What `env` printed."""
    return dict(line.partition("=")[::2] for line in printed.splitlines())


def test_a_kernel_has_its_modules_environment_alone(stage: Stage):
    others = {"PATH": "/bin", "HOME": "/", "LDFLAGS": "-O2", "MALLOC": "x", "MY_OMP_X": "1"}
    assert influences({**CALLERS, **others}) == dict(sorted(CALLERS.items()))
    assert without_influences({**CALLERS, **others}) == others
    stage.add("gcc-12.2.0", BASE, [CHASE], seen="1")
    stage.environment = CALLERS
    seen = variables_of(stage.run("run", "*", "--", "env", code=0).stdout)
    assert seen["PW_FAKE_SEEN"] == "1" and influences(seen) == {}


@pytest.mark.long
def test_a_users_program_has_the_callers_environment_and_it_is_recorded(stage: Stage):
    """Except variables that set a page policy; another environment is another comparison."""
    stage.environment = {"PAGEWISE_ROOT": str(stage.folder), **CALLERS}
    seen = stage.folder / "seen"
    program = ("--", "/bin/sh", "-c", f"env >{seen}")
    stage.compare(*OWN, *program, code=0)
    first = stage.result()
    reported = json.loads((first / "manifest.json").read_text())["programs"]["sh"]["environment"]
    assert reported["removed"] == POLICIES
    assert reported["passed"].items() >= {
        "GLIBC_TUNABLES": "glibc.malloc.arena_max=1", "MALLOC_ARENA_MAX": "2", "MALLOC_CONF": "narenas:2",
        "JAVA_TOOL_OPTIONS": "-Xmx1g",
        "LD_LIBRARY_PATH": "/nowhere/lib", "OMP_NUM_THREADS": "3", "KMP_AFFINITY": "compact",
    }.items()  # fmt: skip
    # The launcher preloads a library.
    actual = {name: value for name, value in variables_of(seen.read_text()).items() if name != "LD_PRELOAD"}
    assert influences(actual) == reported["passed"]

    # Threads that are requested count instead of the caller's.
    stage.environment["MALLOC_ARENA_MAX"] = "1"
    stage.compare(*OWN, "--threads", "1", *program, code=0)
    (second,) = set(stage.results.iterdir()) - {first}
    changed = [(one.part, one.old, one.new) for one in differences(read_result(first), read_result(second))]
    assert ("system", "MALLOC_ARENA_MAX 2, OMP_NUM_THREADS 3", "MALLOC_ARENA_MAX 1") in changed
    manifest = json.loads((second / "manifest.json").read_text())
    assert "OMP_NUM_THREADS" not in manifest["programs"]["sh"]["environment"]["passed"]
    assert manifest["placements"][0]["environment"]["OMP_NUM_THREADS"] == "1"


def hyperfine(folder: Path, reports: str, does: str = "exit 1") -> dict[str, str]:
    """PATH with a stand-in for hyperfine before all else."""
    folder.mkdir(exist_ok=True)
    write_script(
        folder / "hyperfine", f'#!/bin/sh\n[ "$1" != --version ] || {{ {reports}; exit; }}\n{does}\n'
    )
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    "reports",
    [
        "echo hyperfine 1.14.0", "echo hyperfine 2.0.0", "echo hyperfine", "echo 1.18.0", ":", "exit 1",
        "echo hyperfine 1.18.0 or so", "echo hyperfine newest", "echo a script of mine, 1.18.0",
    ],
)  # fmt: skip
def test_a_hyperfine_of_unknown_version_is_refused(
    reports: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", hyperfine(tmp_path, reports)["PATH"])
    with pytest.raises(SetupError):
        find_hyperfine()


def test_the_hyperfines_of_distributions_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for version in ("1.15.0", "1.18.0", "1.19", "1.20.1"):
        monkeypatch.setenv("PATH", hyperfine(tmp_path, f"echo hyperfine {version}")["PATH"])
        assert find_hyperfine() == str(tmp_path / "hyperfine")


def test_a_time_must_agree_with_the_clock_around_it():
    for wall, elapsed in ((1.0, 1.0), (1.0, 1.05), (0.001, 1.0), (100.0, 106.0), (None, 5.0)):
        assert implausible(wall, elapsed) is None
    for wall, elapsed in ((1.1, 1.0), (0.001, 3.0), (100.0, 110.0)):
        assert implausible(wall, elapsed)


@pytest.mark.long
@pytest.mark.parametrize("seconds", ["9.0", "0.0001; sleep 2.2"])
def test_impossible_times_are_excluded(seconds: str, stage: Stage):
    """A stand-in that reports the version, runs the program and exports an invented time."""
    value, _, wait = seconds.partition("; ")
    export = json.dumps({"results": [{"times": [float(value)], "exit_codes": [0], "user": 0, "system": 0}]})
    does = f'for word; do [ "$last" != --export-json ] || file=$word; last=$word; done\n{wait or ":"}\n'
    does += f'sh -c "$last"\ncat >"$file" <<\'E\'\n{export}\nE'
    stage.environment = hyperfine(stage.folder / "bin", "echo hyperfine 1.18.0", does)
    stage.add("gcc-12.2.0", BASE, [CHASE])
    stage.compare("--rounds", "1", "--no-sweep", code=1)
    assert {one.status for one in stage.read_result().records} == {"failed"}
    stage.compare(*OWN, "--", "/bin/true", code=1)
    assert "ok" not in {one.status for one in stage.read_result().records}


def test_a_folders_matplotlibrc_decides_nothing(tmp_path: Path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nfont.size: 40\n")
    script = "import pagewise.report.render.figure, matplotlib as m; print(m.rcParams['text.usetex'])"
    done = called([sys.executable, "-c", script], cwd=tmp_path, env=Stage(tmp_path).variables())
    assert done.stdout == "False\n"
