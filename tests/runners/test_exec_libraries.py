"""pagewise exec: filtered system calls, early libraries, other allocators, children that a signal ended."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from launched import MIB, Launcher, recorded
from own_program import Own, build, needs_madvise


@pytest.fixture(scope="session")
def filtered(programs: Path) -> Path:
    return build("filtered.c", programs / "filtered")


# `asked` is only a question whether there is a filter.
@pytest.mark.parametrize("way", ["prctl", "raw", "seccomp", "strict", "asked"])
@pytest.mark.parametrize("policy", ["none", "reuse"])
def test_no_call_of_pagewise_follows_a_filter(launcher: Launcher, filtered: Path, policy: str, way: str):
    done = launcher.run("--record", "pages.jsonl", policy, "--", filtered, way)
    output = "before\n" if way in ("strict", "asked") else "before\nafter\n"
    assert (done.returncode, done.stdout) == (5, output), done.stderr
    (record,) = launcher.records()
    assert record["met"] is (True if way == "asked" else None) and record["observed_bytes"] >= 32 * MIB
    assert len(done.stderr.splitlines()) == 1


@needs_madvise
@pytest.mark.parametrize("policy", ["bss", "text"])
def test_memory_after_a_filter_is_not_advised(launcher: Launcher, filtered: Path, policy: str):
    assert launcher.run(policy, "--", filtered, "prctl").returncode == 5


def test_the_advising_library_makes_no_call_after_a_filter(launcher: Launcher, filtered: Path):
    """With all that it does for memory; glibc's own tunable for advice is not set."""
    library = launcher.program.parents[1] / "lib/pagewise/remap.so"
    actions = "advise,advise-malloc,shared,bss,pool-shared"
    variables = {"LD_PRELOAD": str(library), "PAGEWISE_PRELOAD": actions}
    done = subprocess.run([filtered, "prctl"], env=variables, stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stdout) == (5, "before\nafter\n")


@pytest.mark.long
def test_trial_runs_of_a_comparison_survive_a_filter(own: Own, filtered: Path):
    options = ("--policies", "none,reuse", "--rounds", "1", *own.case(exit_codes=[5]))
    own.run(*options, program="filtered", way="prctl")
    assert own.statuses() == {"none": {"ok"}, "reuse": {"ok"}}


SHARED = ("-shared", "-fPIC")


@pytest.fixture(scope="session")
def linked(programs: Path) -> Path:
    """A program with a library that is initialised before any preloaded one."""
    library = build("missing_symbols.c", programs / "libmissing.so", *SHARED)
    options = ("-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{programs}")
    return build("memory.c", programs / "memory-linked", *options)


@pytest.mark.parametrize("policy", ["none", "malloc", "reuse"])
def test_a_library_may_ask_for_symbols_before_any_constructor(launcher: Launcher, linked: Path, policy: str):
    record = recorded(launcher, policy, linked, "large", "0.01")
    assert record["peak_bytes"] >= 64 * MIB and record["met"] is not None


def test_snapshots_of_trial_runs_are_safe_before_any_constructor(launcher: Launcher, linked: Path):
    stem = str(launcher.folder / "smaps")
    done = launcher.run("--quiet", "none", "--", linked, "large", "0.01", PAGEWISE_SNAPSHOT=stem)
    assert (done.returncode, done.stderr) == (0, "")
    ends = [file.read_text().splitlines()[-1] for file in launcher.folder.glob("smaps.*")]
    assert ends and set(ends) == {f"Of: {linked.resolve()}"}


@pytest.mark.parametrize("style", ["gnu", "sysv"])
def test_an_allocator_need_not_report_the_size_of_its_blocks(launcher: Launcher, programs: Path, style: str):
    """Its functions are found in each kind of hash table."""
    options = (*SHARED, "-fno-builtin", f"-Wl,--hash-style={style}")
    allocator = build("own_malloc.c", launcher.folder / "own_malloc.so", *options)
    words = ("none", programs / "memory", "large", "0.01")
    record = recorded(launcher, *words, LD_PRELOAD=str(allocator))
    assert record["observed_bytes"] >= 64 * MIB and record["met"] is True


# Starts children with memory, ends them by a signal, or lets them end themselves, and waits for them.
POOL = """
import os, signal, sys
way, number, size, by = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
reader, writer = os.pipe()
children = []
for _ in range(number):
    pid = os.fork()
    if pid == 0:
        memory = bytearray(b"1") * size
        os.write(writer, b"x")
        if by:
            signal.pause()
        os._exit(0)
    children.append(pid)
for _ in children:
    os.read(reader, 1)
for pid in children:
    if by:
        os.kill(pid, by)
for pid in children:
    if way == "waitid":
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.waitid(os.P_PID, pid, os.WEXITED)
    else:
        arguments = {"wait": (), "wait3": (0,)}.get(way, (pid, 0))
        getattr(os, way)(*arguments)
"""


@pytest.mark.parametrize(
    ("way", "size", "by", "unobserved"),
    [(way, 32 * MIB, 15, 3) for way in ("wait", "wait3", "wait4", "waitpid", "waitid")]
    # They report, or have little memory.
    + [("waitpid", 32 * MIB, 0, 0), ("waitpid", 1024, 15, 0), ("waitpid", 1024, 0, 0)],
)
def test_children_that_a_signal_ended_are_counted(launcher: Launcher, way, size: int, by: int, unobserved):
    arguments = [sys.executable, "-SE", "-c", POOL, way, "3", str(size), str(by)]
    done = launcher.run("--record", "pages.jsonl", "none", "--", *arguments)
    assert done.returncode == 0, done.stderr
    records = launcher.records()
    assert len(records) == (1 if by or size < 16 * MIB else 4)
    waiting = next(record for record in records if record["peak_bytes"] < 24 * MIB)
    assert waiting["unobserved_processes"] == unobserved and ("signals" in done.stderr) == (unobserved > 0)
    assert not unobserved or (waiting["met"] is None and str(unobserved) in done.stderr.split())


def test_a_small_process_between_reports_its_children(launcher: Launcher):
    arguments = [sys.executable, "-SE", "-c", POOL, "waitpid", "2", str(32 * MIB), "15"]
    launcher.run("--record", "pages.jsonl", "none", "--", "sh", "-c", '"$@"; exit 0', "sh", *arguments)
    records = launcher.records()
    assert sorted(record["unobserved_processes"] for record in records) == [0, 2], json.dumps(records)
