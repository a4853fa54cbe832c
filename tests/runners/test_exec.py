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
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from launched import MIB, Launcher, recorded, share
from own_program import POOL, THP, Own, needs_madvise, needs_thp
from pagewise.core.schemas import faults
from pagewise.machine.host import read, read_host
from pagewise.machine.settings.thp import supports_advised
from pagewise.stack.binary import examine
from pagewise.stack.lmod import USUAL_PLACES, find_init
from pagewise.workloads.program.applied import AppliedPolicy
from pagewise.workloads.program.machine import read_machine
from pagewise.workloads.program.policy import IN_MODULES, parse_policy
from pagewise.workloads.program.production import MODULES, REFUSALS, module_text
from pagewise.workloads.program.table import LISTINGS, PARTS, Chosen
from stage import RUNNERS, Stage

needs_advised = pytest.mark.skipif(
    not supports_advised(), reason="PR_THP_DISABLE_EXCEPT_ADVISED needs Linux 6.18"
)
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"


@needs_thp
@pytest.mark.parametrize(
    ("policy", "way", "kind"),
    [
        ("thp", "large", "anonymous"),
        ("malloc", "large", "anonymous"),
        ("reuse+malloc", "large", "heap"),
        pytest.param("thp", "mapped", "anonymous", marks=needs_madvise),
        pytest.param("bss", "static", "bss", marks=needs_madvise),
    ],
)
def test_the_memory_of_a_policy_is_on_huge_pages(
    launcher: Launcher, programs: Path, policy: str, way: str, kind: str
):
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
@pytest.mark.parametrize("by", ["program", "malloc"])
def test_only_advised_memory_is_on_huge_pages(launcher: Launcher, programs: Path, by: str):
    if by == "malloc":
        record = recorded(launcher, "advised+malloc", programs / "memory", "large")
        assert record["met"] is True and share(record, "anonymous") > 0.8
        return
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
    code = "import ctypes; print(ctypes.CDLL(None).prctl(42, 0, 0, 0, 0))"
    forget = "import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 0, 0, 0, 0);"
    forget += "os.execv(sys.argv[1], sys.argv[1:])"
    for policy, expected in (("advised", "3"), ("none", "1"), ("malloc", "0")):
        words = (sys.executable, "-c", forget, sys.executable, "-c", code)
        assert launcher.run("--quiet", policy, "--", *words).stdout.split() == [expected]


@needs_madvise
def test_a_policy_that_was_not_met_is_a_warning(launcher: Launcher, programs: Path):
    # What the program maps itself is none of malloc's.
    done = launcher.run("--record", "pages.jsonl", "malloc", "--", programs / "memory", "mapped")
    (record,) = launcher.records()
    assert done.returncode == 0 and record["met"] is False and record["coverage"] < 0.2
    assert "warning" in done.stderr and len(done.stderr.splitlines()) == 1


def test_one_line_on_standard_error_unless_quiet(launcher: Launcher, programs: Path):
    done = launcher.run("none", "--", programs / "memory", "large")
    assert len(done.stderr.splitlines()) == 1 and "warning" not in done.stderr
    assert done.stdout.startswith("sum:")
    quiet = launcher.run("--quiet", "none", "--", programs / "memory", "large")
    assert (quiet.returncode, quiet.stderr, list(launcher.folder.iterdir())) == (0, "", [])


@pytest.mark.parametrize(
    "policy",
    [
        *("thp", "none", "reuse+malloc", "malloc", "text+bss+reuse", "bss+malloc"),
        pytest.param("advised+malloc", marks=needs_advised),
    ],
)
@needs_thp
def test_the_launcher_sets_what_the_runner_sets(launcher: Launcher, policy: str):
    machine = read_machine(read_host(), settable=False, reserving=False)
    mine = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=2:glibc.malloc.arena_max=1", "MALLOC_TOP_PAD_": "1"}
    given = {**os.environ, **mine}
    applied = AppliedPolicy(parse_policy(policy), examine(sys.executable, given), machine)
    done = launcher.run("--quiet", policy, "--", sys.executable, "-c", SHOW, **mine)
    inside = json.loads(done.stdout)
    for name, value in applied.chosen.changes(given).items():
        assert inside.get(name) == value, name
    actions = inside["PAGEWISE_PRELOAD"].split(",") if inside.get("PAGEWISE_PRELOAD") else []
    assert actions == [*applied.chosen.actions, *REFUSALS[applied.policy.thp]]
    untouched = {"HOME", "PATH", "LANG"} & set(given)
    assert all(inside[name] == given[name] for name in untouched)


@pytest.mark.parametrize(
    "policy", ["", "huge", "malloc:64k", "thp:big", "none+reuse", "thp+malloc", "bss+bss"]
)
def test_an_unknown_policy_is_wrong_usage_and_the_known_ones_are_listed(launcher: Launcher, policy: str):
    done = launcher.run(policy, "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert all(f"\n  {part} " in done.stderr for part in PARTS)


@pytest.mark.parametrize("words", [(), ("thp",), ("thp", "--"), ("--odd", "thp", "--", "true")])
def test_wrong_usage(launcher: Launcher, words: tuple[str, ...]):
    assert launcher.run(*words).returncode == 2


def unavailable() -> Iterator[str]:
    """Policies that this machine cannot have now."""
    if int(POOL.read_text() if POOL.exists() else 0) == 0:
        yield "hugetlbfs"
    for folder in sorted(THP.glob("hugepages-*kB")):
        if "[never]" in (read(folder / "enabled") or ""):
            yield f"thp:{int(folder.name[10:-2])}k"
            break
    yield "thp:4k"
    if not supports_advised():
        yield "advised"


@pytest.mark.parametrize("policy", unavailable())
def test_an_unavailable_policy_starts_nothing(launcher: Launcher, policy: str):
    done = launcher.run(policy, "--", "touch", "started")
    assert done.returncode == 3 and not (launcher.folder / "started").exists()
    assert done.stderr.startswith("pagewise: error:")
    if policy == "hugetlbfs":
        assert "nr_hugepages" in done.stderr.split("remedy:")[1]


@needs_madvise
def test_what_needs_a_preloaded_library_is_unavailable_to_a_static_program(
    launcher: Launcher, programs: Path
):
    static = programs / "memory-static"
    assert launcher.run("thp", "--", static, "large").returncode == 3
    assert launcher.run("bss", "--", static, "static").returncode == 3
    done = launcher.run("--record", "pages.jsonl", "malloc", "--", static, "large")
    assert done.returncode == 0 and launcher.records() == [] and "not observed" in done.stderr


@needs_thp
def test_a_static_program_refuses_huge_pages_by_inheritance(launcher: Launcher):
    done = launcher.run("--quiet", "none", "--", "grep", "THP_enabled", "/proc/self/status")
    assert done.stdout.split() == ["THP_enabled:", "0"]
    # A policy with huge pages accepts them again.
    nested = launcher.run(
        "--quiet",
        "none",
        "--",
        launcher.program,
        "--quiet",
        "malloc",
        "--",
        "grep",
        "THP_e",
        "/proc/self/status",
    )
    assert nested.stdout.split() == ["THP_enabled:", "1"]


@pytest.mark.parametrize(
    ("name", "code"), [("/nonexistent", 127), ("no-such-program", 127), ("/etc/passwd", 126)]
)
def test_a_program_that_cannot_be_executed(launcher: Launcher, name: str, code: int):
    assert launcher.run("none", "--", name).returncode == code


def test_exit_codes_and_signals_are_the_programs(launcher: Launcher, programs: Path):
    assert launcher.run("none", "--", programs / "memory", "wrong").returncode == 3
    assert launcher.run("none", "--", programs / "memory", "crash").returncode == -signal.SIGSEGV
    script = "kill -TERM $$"
    assert launcher.run("none", "--", "sh", "-c", script).returncode == -signal.SIGTERM


def test_it_becomes_the_program(launcher: Launcher):
    code = "import os; print(os.getpid(), os.getpgrp(), os.getppid(), end='')"
    started = subprocess.Popen(
        [launcher.program, "--quiet", "none", "--", sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    out, _ = started.communicate(timeout=60)
    assert list(map(int, out.split())) == [started.pid, os.getpgrp(), os.getpid()]


def test_scripts_and_their_children(launcher: Launcher, programs: Path):
    script = launcher.folder / "job"
    script.write_text(
        f"#!/bin/sh\ncat\n'{programs / 'memory'}' large\n'{programs / 'memory'}' fork\n/bin/true\n"
    )
    script.chmod(0o755)
    done = subprocess.run(
        [launcher.program, "--record", "pages.jsonl", "none", "--", "./job"],
        cwd=launcher.folder,
        input="given",
        capture_output=True,
        text=True,
        check=True,
    )
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
    environment: Mapping[str, str] = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    done = subprocess.run(
        [*command, programs / "memory", "large"],
        cwd=launcher.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(record["rank"] for record in launcher.records()) == [0, 1]


def test_the_installation_can_be_moved_and_needs_no_python(installed: Path, tmp_path: Path):
    prefix = tmp_path / "moved"
    shutil.copytree(installed.parents[1], prefix)
    link = tmp_path / "link"
    link.symlink_to(prefix / "bin" / installed.name)
    done = subprocess.run(
        [link, "none", "--", "/usr/bin/env"],
        env={"PATH": "/nonexistent"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{prefix}/lib/pagewise/report.so:{prefix}/lib/pagewise/remap.so" in done.stdout


def test_a_preloaded_library_of_the_user_is_kept_and_ours_are_there_once(launcher: Launcher):
    mine = launcher.program.parents[1] / "lib/pagewise/remap.so"
    inner = (launcher.program, "--quiet", "none", "--", "env")
    done = launcher.run("none", "--", *inner, LD_PRELOAD=f"libdl.so.2:{mine}")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("LD_PRELOAD=")]
    words = line.partition("=")[2].split(":")
    assert words.count(str(mine)) == 1 and words[-1] == "libdl.so.2"


needs_lmod = pytest.mark.skipif(
    not any((Path(place) / "init/bash").is_file() for place in USUAL_PLACES), reason="Lmod is not installed"
)


def with_module(launcher: Launcher, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A shell in which the modules of the installation are known, with a clean environment."""
    tree = launcher.program.parents[1] / MODULES
    init = find_init(None)
    return subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", f". {init}; module use {tree}; {script}"],
        cwd=launcher.folder,
        env={"PATH": os.environ["PATH"], "HOME": str(launcher.folder), "LMOD_PAGER": "none", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@needs_lmod
@needs_thp
@pytest.mark.parametrize(("policy", "way"), [("thp", "large"), ("reuse+malloc", "large"), ("none", "large")])
def test_a_module_applies_a_policy_to_a_whole_script(
    launcher: Launcher, programs: Path, policy: str, way: str
):
    script = f"module load pagewise-pages/{policy}; {programs / 'memory'} {way}; true"
    # The user's own page policy is overridden.
    mine = {"GLIBC_TUNABLES": f"glibc.malloc.hugetlb={'0' if policy == 'none' else '2'}"}
    done = with_module(launcher, script, PAGEWISE_EXEC_RECORD=str(launcher.folder / "pages.jsonl"), **mine)
    assert done.stdout.startswith("sum:") and "pagewise" not in done.stderr, done.stderr
    records = [one for one in launcher.records() if one["program"] == str(programs / "memory")]
    (record,) = records
    assert record["policy"] == policy and record["met"] is True


@needs_lmod
@needs_madvise
def test_a_module_warns_if_its_policy_was_not_met(launcher: Launcher, programs: Path):
    done = with_module(launcher, f"module load pagewise-pages/malloc; {programs / 'memory'} mapped")
    assert [line for line in done.stderr.splitlines() if line.startswith("pagewise: warning")]
    alone = with_module(launcher, f"module load pagewise-pages/malloc; {programs / 'memory'} large; true")
    assert "warning" not in alone.stderr


@needs_lmod
def test_a_module_replaces_another_and_leaves_nothing(launcher: Launcher):
    script = "; ".join(["unset LD_PRELOAD", "module load pagewise-pages/thp pagewise-pages/reuse", "env"])
    inside = with_module(launcher, script).stdout.splitlines()
    assert "PAGEWISE_EXEC_POLICY=reuse" in inside and "PAGEWISE_PRELOAD=refuse" in inside
    assert not [line for line in inside if "malloc.hugetlb" in line and line.startswith("GLIBC_TUNABLES")]
    mine = {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}
    script = "module load pagewise-pages/thp; module unload pagewise-pages/thp; env"
    inside = with_module(launcher, script, **mine).stdout.splitlines()
    assert "GLIBC_TUNABLES=glibc.malloc.arena_max=1" in inside
    assert not [line for line in inside if line.startswith(("PAGEWISE_", "LD_PRELOAD="))]


@pytest.mark.parametrize("name", IN_MODULES)
def test_modules_and_launcher_set_the_same_where_programs_must_ask(name: str):
    policy = parse_policy(name)
    text = module_text(policy)
    chosen = Chosen(policy.parts, None, ("advised", "replaced"))
    for listing in LISTINGS:
        for entry in chosen.entries(listing):
            assert f'append_path("{listing.variable}", "{entry}", "{listing.separator}")' in text
    assert ("refuse" in text) == (policy.thp != "allowed")
    assert policy.module == f"pagewise-pages/{name}" and parse_policy("hugetlbfs:1g").module is None


def test_pagewise_exec_becomes_the_launcher(own: Own):
    stage = Stage(own.folder, {"PAGEWISE_ROOT": str(own.programs)})

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pagewise", "exec", *words],
            cwd=own.folder,
            env={**stage.variables(), "PYTHONPATH": str(RUNNERS), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    done = run("--record", "pages.jsonl", "none", "--", str(own.programs / "memory"), "wrong")
    assert done.returncode == 3 and "went wrong" in done.stdout
    (record,) = Launcher(own.programs, own.folder).records()
    assert record["policy"] == "none"
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
    done = own.run("--json", "--policies", "none,reuse", "--rounds", "5", way="again")
    assert done.returncode == 0, done.stderr
    advice = json.loads(done.stdout)["program"]["advice"]
    assert advice["policy"] == "reuse" and advice["module"] == "pagewise-pages/reuse"
    name, *words = advice["command"]
    assert name == "pagewise" and shlex.join(advice["command"]) in done.stderr
    again = own.stage.run("report", str(own.stage.result()))
    assert shlex.join(advice["command"]) in again.stdout and advice["module"] in again.stdout
    applied = subprocess.run(
        [sys.executable, "-m", "pagewise", *words],
        cwd=own.folder,
        env={**own.stage.variables(), "PYTHONPATH": str(RUNNERS)},
        capture_output=True,
        text=True,
        check=True,
    )
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


def test_kinds_of_memory_are_those_of_the_runner(launcher: Launcher, programs: Path):
    """The launcher's account of a process and the runner's, of the same program."""
    from pagewise.workloads.program import smaps

    code = (
        "import mmap, pathlib; one = mmap.mmap(-1, 24 << 20); one.write(b'x' * (24 << 20));"
        "block = bytearray(32 << 20); text = pathlib.Path('/proc/self/smaps').read_text();"
        "pathlib.Path('smaps').write_text(text);"
        "__import__('os')._exit(0)"
    )
    record = recorded(launcher, "none", sys.executable, "-c", code)
    mappings = smaps.parse((launcher.folder / "smaps").read_text())
    expected = smaps.by_kind(mappings, record["page_size_bytes"])
    for kind in ("anonymous", "shared", "heap", "stack", "text"):
        seen = record["kinds"].get(kind, {"resident_bytes": 0})["resident_bytes"]
        assert abs(seen - expected.get(kind, smaps.Usage()).resident) < 2 * MIB, kind


def test_the_record_schema_refuses_what_is_foreign():
    assert faults("exec", {"schema": "pagewise.exec/1", "odd": 1})
