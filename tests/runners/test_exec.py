"""pagewise exec: programs in production under page policies, with real runs of the launcher in C."""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from launched import MIB, Launcher, recorded, share
from own_program import POOL, Own, needs_advised, needs_madvise, needs_thp
from pagewise.workloads.program import smaps
from scripts import HANGS_AFTER, called, write_script


@needs_thp
@pytest.mark.parametrize(
    ("policy", "way", "kind"),
    [
        ("thp", "large", "anonymous"),
        ("malloc", "large", "anonymous"),
        ("reuse+malloc", "large", "heap"),
        pytest.param("advised+malloc", "large", "anonymous", marks=needs_advised),
        pytest.param("thp", "mapped", "anonymous", marks=needs_madvise),
        pytest.param("bss", "static", "bss", marks=needs_madvise),
    ],
)
def test_the_memory_of_a_policy_is_on_huge_pages(launcher: Launcher, programs: Path, policy, way, kind):
    record = recorded(launcher, policy, programs / "memory", way)
    assert record["policy"] == policy and record["program"] == str(programs / "memory")
    assert record["met"] is True and record["coverage"] >= 0.8
    assert share(record, kind) > 0.8 and record["peak_bytes"] >= 40 * MIB


@needs_thp
def test_machine_code_is_on_huge_pages(launcher: Launcher, programs: Path):
    record = recorded(launcher, "text", programs / "memory-code", "code", "0.2")
    assert record["met"] is True and record["kinds"]["text"]["huge_bytes"] >= 6 * MIB


@pytest.mark.parametrize("policy", ["none", "reuse"])
def test_huge_pages_are_refused(launcher: Launcher, programs: Path, policy: str):
    record = recorded(launcher, policy, programs / "memory", "large", GLIBC_TUNABLES="glibc.malloc.hugetlb=1")
    assert record["met"] is True and not any(used["huge_bytes"] for used in record["kinds"].values())
    assert record["peak_bytes"] >= 64 * MIB


@needs_thp
@needs_advised
def test_only_advised_memory_is_on_huge_pages(launcher: Launcher):
    code = (
        "import ctypes, mmap; maps = [mmap.mmap(-1, 32 << 20, mmap.MAP_PRIVATE) for _ in range(2)];"
        "maps[0].madvise(mmap.MADV_HUGEPAGE);"
        "[one.write(b'x' * len(one)) for one in maps]; print(ctypes.CDLL(None).prctl(42, 0, 0, 0, 0))"
    )
    done = launcher.run("--record", "pages.jsonl", "advised", "--", sys.executable, "-c", code)
    (record,) = launcher.records()
    assert done.stdout.split() == ["3"] and record["met"] is True
    assert 28 * MIB < record["kinds"]["anonymous"]["huge_bytes"] <= 34 * MIB


@needs_thp
@needs_advised
def test_the_preloaded_library_limits_programs_to_advised_memory(launcher: Launcher):
    """Where ranks do not inherit what the launcher set (srun)."""
    code = "import ctypes; print(ctypes.CDLL(None).prctl(42, 0, 0, 0, 0), end='')"
    forget = (
        "import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 0, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
    )
    words = ("--", sys.executable, "-c", forget, sys.executable, "-c", code)
    for policy, expected in (("advised", "3"), ("none", "1"), ("malloc", "0")):
        assert launcher.run("--quiet", policy, *words).stdout == expected


@needs_madvise
def test_a_policy_that_was_not_met_is_a_warning(launcher: Launcher, programs: Path):
    # What the program maps itself is none of malloc's.
    done = launcher.run("--record", "pages.jsonl", "malloc", "--", programs / "memory", "mapped")
    (record,) = launcher.records()
    assert done.returncode == 0 and record["met"] is False and record["coverage"] < 0.2
    assert "warning" in done.stderr and len(done.stderr.splitlines()) == 1


def test_exit_codes_and_signals_are_the_programs(launcher: Launcher, programs: Path):
    assert launcher.run("none", "--", programs / "memory", "wrong").returncode == 3
    assert launcher.run("none", "--", programs / "memory", "crash").returncode == -signal.SIGSEGV
    assert launcher.run("none", "--", "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


def test_it_becomes_the_program(launcher: Launcher):
    code = "import os; print(os.getpid(), os.getpgrp(), os.getppid(), end='')"
    started = subprocess.Popen(
        [launcher.program, "--quiet", "none", "--", sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    out, _ = started.communicate(timeout=HANGS_AFTER)
    assert list(map(int, out.split())) == [started.pid, os.getpgrp(), os.getpid()]


def test_scripts_and_their_children(launcher: Launcher, programs: Path):
    memory = programs / "memory"
    write_script(launcher.folder / "job", f"#!/bin/sh\ncat\n'{memory}' large\n'{memory}' fork\n/bin/true\n")
    words = [launcher.program, "--record", "pages.jsonl", "none", "--", "./job"]
    done = called(words, cwd=launcher.folder, input="given", check=True)
    assert done.stdout.startswith("given")
    records = launcher.records()
    # The script itself, the program, and two children of fork; `cat` and `true` have little memory.
    sizes = sorted(record["peak_bytes"] // (30 * MIB) for record in records)
    assert sizes == [0, 1, 1, 2] and len({record["process"] for record in records}) == 4


def test_a_process_that_ends_by_exit_or_vforks_reports_once(launcher: Launcher):
    code = "import os, subprocess; block = bytearray(32 << 20); subprocess.run(['true']); os._exit(5)"
    done = launcher.run("--record", "pages.jsonl", "none", "--", sys.executable, "-c", code)
    (record,) = launcher.records()
    assert done.returncode == 5 and record["peak_bytes"] >= 32 * MIB


@needs_thp
def test_memory_that_was_given_back_unobserved_is_not_verified(launcher: Launcher):
    # A raw system call, which no preloaded library sees.
    code = (
        "import ctypes, mmap; libc = ctypes.CDLL(None); at = ctypes.c_void_p;"
        "libc.mmap.restype = at; size = 64 << 20;"
        "one = libc.mmap(at(), ctypes.c_size_t(size), 3, 0x22, -1, ctypes.c_long(0));"
        "ctypes.memset(at(one), 1, size);"
        "assert libc.syscall(ctypes.c_long(11), at(one), ctypes.c_size_t(size)) == 0"
    )
    if platform.machine() != "x86_64":
        pytest.skip("the number of munmap is that of x86-64")
    for policy in ("thp", "none"):
        done = launcher.run("--record", f"{policy}.jsonl", policy, "--", sys.executable, "-c", code)
        assert done.returncode == 0, done.stderr
        (record,) = launcher.records(f"{policy}.jsonl")
        assert record["met"] is None and record["observed_bytes"] < record["peak_bytes"] / 2


def test_the_report_never_reaches_another_file(launcher: Launcher):
    code = "import os; os.close(2); os.open('data', os.O_CREAT | os.O_WRONLY)"
    assert launcher.run("none", "--", sys.executable, "-c", code).returncode == 0
    assert (launcher.folder / "data").read_bytes() == b""


def test_the_record_names_host_and_process_and_a_folder_that_is_missing_is_refused(launcher: Launcher):
    assert launcher.run("--quiet", "--record=%h-%p.jsonl", "none", "--", "true").returncode == 0
    (file,) = launcher.folder.iterdir()
    (record,) = launcher.records(file.name)
    assert file.name == f"{record['host']}-{record['process']}.jsonl"
    assert launcher.run("--record", "missing/pages.jsonl", "none", "--", "true").returncode == 4


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"])
def test_the_record_names_the_rank(launcher: Launcher, variable: str):
    others = dict.fromkeys(("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"), "")
    assert recorded(launcher, "none", "true", **{**others, variable: "3"})["rank"] == 3


@pytest.mark.skipif(shutil.which("mpiexec") is None, reason="MPI is not installed")
def test_ranks_of_mpiexec(launcher: Launcher, programs: Path):
    command = ["mpiexec", "-n", "2", launcher.program, "--record", "pages.jsonl", "none", "--"]
    settings = ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe")
    environment = os.environ | {f"OMPI_{name}": "1" for name in settings}
    called([*command, programs / "memory", "large"], cwd=launcher.folder, env=environment, check=True)
    assert sorted(record["rank"] for record in launcher.records()) == [0, 1]


def test_the_installation_can_be_moved_and_needs_no_python(installed: Path, tmp_path: Path):
    prefix = tmp_path / "moved"
    shutil.copytree(installed.parents[1], prefix)
    link = tmp_path / "link"
    link.symlink_to(prefix / "bin" / installed.name)
    done = called([link, "none", "--", "/usr/bin/env"], env={"PATH": "/nonexistent"}, check=True)
    assert f"{prefix}/lib/pagewise/report.so:{prefix}/lib/pagewise/remap.so" in done.stdout


def test_preloaded_libraries_of_the_user_are_kept_and_pagewises_loaded_once(launcher: Launcher):
    mine = launcher.program.parents[1] / "lib/pagewise/remap.so"
    inner = (launcher.program, "--quiet", "none", "--", "env")
    done = launcher.run("none", "--", *inner, LD_PRELOAD=f"libdl.so.2:{mine}")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("LD_PRELOAD=")]
    words = line.partition("=")[2].split(":")
    assert words.count(str(mine)) == 1 and words[-1] == "libdl.so.2"
    assert list(launcher.folder.iterdir()) == []


@pytest.mark.long
def test_pagewise_exec_becomes_the_launcher(own: Own):
    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return called(
            own.stage.command("exec", *words), cwd=own.folder, env=own.stage.variables() | environment
        )

    done = run("--record", "pages.jsonl", "none", "--", str(own.programs / "memory"), "wrong")
    assert done.returncode == 3 and "went wrong" in done.stdout
    assert [record["policy"] for record in Launcher(own.programs, own.folder).records()] == ["none"]
    assert run("huge", "--", "true").returncode == 2
    assert run("none").returncode == 2 and run("--", "true").returncode == 2
    # Python ignores SIGPIPE; the program does not.
    ignored = run("--quiet", "none", "--", "grep", "SigIgn", "/proc/self/status").stdout.split()[1]
    assert int(ignored, 16) & (1 << (signal.SIGPIPE - 1)) == 0
    made = run("--install", str(own.folder / "prefix")).stdout.strip()
    assert Path(made) == own.folder / "prefix/bin/pagewise-exec" and os.access(made, os.X_OK)
    assert run("--install", str(own.folder / "prefix"), "none", "--", "true").returncode == 2
    # Without a compiler, what the set-up installed is used.
    without = {"CC": "/nonexistent/cc", "PAGEWISE_ROOT": str(own.folder)}
    assert run("none", "--", "true", **without).returncode == 3
    shutil.copytree(own.folder / "prefix", own.folder / ".pagewise" / "exec")
    assert run("none", "--", "true", **without).returncode == 0


@pytest.mark.long
def test_a_comparison_ends_with_the_command_that_applies_its_advice(own: Own):
    # Memory that is freed and allocated again takes a fifth of the time.
    done = own.run("--json", "--policies", "none,reuse", "--rounds", "5", way="again", code=0)
    advice = json.loads(done.stdout)["program"]["advice"]
    assert advice["policy"] == "reuse" and advice["module"] == "pagewise-pages/reuse"
    name, *words = advice["command"]
    assert name == "pagewise" and shlex.join(advice["command"]) in done.stderr
    again = own.stage.run("report", str(own.stage.result()))
    assert shlex.join(advice["command"]) in again.stdout and advice["module"] in again.stdout
    applied = called(own.stage.command(*words), cwd=own.folder, env=own.stage.variables(), check=True)
    assert applied.stdout.startswith("sum:") and advice["policy"] in applied.stderr


@needs_thp
@pytest.mark.changes_machine
def test_malloc_takes_pages_of_the_pool(launcher: Launcher, programs: Path):
    before = POOL.read_text()
    POOL.write_text("64")
    try:
        record = recorded(launcher, "hugetlbfs", programs / "memory", "large")
    finally:
        POOL.write_text(before)
    assert record["met"] is True and share(record, "anonymous") > 0.8 and record["peak_bytes"] >= 64 * MIB


def test_kinds_of_memory_match_the_runner(launcher: Launcher, programs: Path):
    """The launcher's account of a process and the runner's, of the same program."""
    code = (
        "import mmap, pathlib; one = mmap.mmap(-1, 24 << 20); one.write(b'x' * (24 << 20));"
        "block = bytearray(32 << 20); text = pathlib.Path('/proc/self/smaps').read_text();"
        "pathlib.Path('smaps').write_text(text);"
        "__import__('os')._exit(0)"
    )
    record = recorded(launcher, "none", sys.executable, "-c", code)
    # A record is of one process: what it shares counts whole, in the runner's sums over processes in part.
    mappings = smaps.parse((launcher.folder / "smaps").read_text().replace("Pss:", "-"))
    expected = smaps.by_kind(mappings, record["page_size_bytes"])
    for kind in ("anonymous", "shared", "heap", "stack", "text"):
        seen = record["kinds"].get(kind, {"resident_bytes": 0})["resident_bytes"]
        assert abs(seen - expected.get(kind, smaps.Usage()).resident) < 2 * MIB, kind
