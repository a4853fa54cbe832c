"""Limits of control groups: what they leave, and that a run that reached one is explained by it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from fake_root import tree
from launched import Launcher
from own_program import needs_thp
from pagewise.machine.groups import Reached, memory_left, pool_pages_left, read_reached
from pagewise.machine.host import read_host
from pagewise.workloads.doctor import page_findings
from scripts import called
from stage import ROOT, Stage

MIB, HUGE, GIB = 1 << 20, 2 << 20, 1 << 30
WITH_FILES = ROOT / "kernels/pages/tests/with_files"
POOL = "2 MiB hugetlb pool"
TOUCH = f"print(len(bytearray({400 * MIB})))"
SKIPPED = 77


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({}, {HUGE: None, GIB: None}),
        ({"job/hugetlb.2MB.max": "max", "job/hugetlb.2MB.current": 0}, {HUGE: None}),
        ({"job/hugetlb.2MB.max": 5 * HUGE, "job/hugetlb.2MB.current": 2 * HUGE}, {HUGE: 3, GIB: None}),
        ({"job/hugetlb.2MB.max": HUGE, "job/hugetlb.2MB.current": 2 * HUGE}, {HUGE: 0}),
        # Reservations have their own limit, and a group above may have a lower one.
        (
            {"job/hugetlb.2MB.max": 9 * HUGE, "job/hugetlb.2MB.current": 0}
            | {"job/hugetlb.2MB.rsvd.max": 7 * HUGE, "job/hugetlb.2MB.rsvd.current": 0},
            {HUGE: 7},
        ),
        ({"hugetlb.1GB.max": 0, "hugetlb.1GB.current": 0}, {HUGE: None, GIB: 0}),
        ({"hugetlb.64KB.max": 1 << 17, "hugetlb.64KB.current": 1 << 16}, {1 << 16: 1}),
    ],
)
@pytest.mark.parametrize("base", ["sys/fs/cgroup", "sys/fs/cgroup/unified"])
def test_pages_that_control_groups_leave(tmp_path: Path, base: str, files, left: Mapping[int, int | None]):
    root = tree(tmp_path, {"proc/self/cgroup": "4:memory:/other\n0::/job"})
    (root / base).mkdir(parents=True)
    tree(root / base, files)
    assert {size: pool_pages_left(size, root) for size in left} == left


def test_pages_that_control_groups_of_the_first_version_leave(tmp_path: Path):
    tree(tmp_path, {"proc/self/cgroup": "7:hugetlb:/batch/job"})
    for folder, limit, used, left in (("batch/job", (1 << 63) - HUGE, 0, None), ("batch", 4 * HUGE, HUGE, 3)):
        file = f"sys/fs/cgroup/hugetlb/{folder}/hugetlb.2MB"
        tree(tmp_path, {f"{file}.limit_in_bytes": limit, f"{file}.usage_in_bytes": used})
        assert pool_pages_left(HUGE, tmp_path) == left


def test_the_innermost_limit_that_was_reached_is_the_cause(tmp_path: Path):
    base = "sys/fs/cgroup/batch"
    files = {
        "proc/self/cgroup": "0::/batch/job",
        f"{base}/job/memory.max": "max",
        f"{base}/job/memory.events": "oom 0\noom_kill 0",
        f"{base}/memory.max": 300 * MIB,
        f"{base}/memory.events": "oom 1\noom_kill 1",
        f"{base}/hugetlb.2MB.max": 4 * MIB,
        f"{base}/hugetlb.2MB.events": "max 3",
    }
    before = read_reached(tree(tmp_path, files))

    def cause(events: Mapping[str, str]) -> str | None:
        """The cause after these changes of events."""
        tree(tmp_path, {f"{base}/{name}.events": text for name, text in events.items()})
        return read_reached(tmp_path).cause(before)

    assert cause({}) is None
    reached = cause({"hugetlb.2MB": "max 4"})
    assert reached and "hugetlb.2MB" in reached and "4 MiB" in reached and f"{base} " in reached
    # The limit of the group above was reached, and the process was of this one.
    reached = cause({"job/memory": "oom 0\noom_kill 1", "memory": "oom 2\noom_kill 2"})
    assert reached and "300 MiB" in reached and f"{base} " in reached
    # No limit was reached: the node had no memory left.
    reached = cause({"memory": "oom 1\noom_kill 2"})
    assert reached and "MiB" not in reached


def test_counts_of_the_first_version(tmp_path: Path):
    group = "sys/fs/cgroup/memory/job"
    files = {
        "proc/self/cgroup": "5:cpu,memory:/job\n3:hugetlb:/job",
        f"{group}/memory.limit_in_bytes": 64 * MIB,
        f"{group}/memory.failcnt": 5,
        f"{group}/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2",
        "sys/fs/cgroup/hugetlb/job/hugetlb.2MB.limit_in_bytes": 0,
        "sys/fs/cgroup/hugetlb/job/hugetlb.2MB.failcnt": 1,
    }
    root = tree(tmp_path, files)
    reached = read_reached(root)
    memory, pool = ("memory", root / group), ("hugetlb.2MB", root / "sys/fs/cgroup/hugetlb/job")
    assert reached.killed == 2 and reached.limits[memory] == 5 and reached.limits[pool] == 1
    cause = reached.cause(Reached({}, 1))
    assert cause is not None and "64 MiB" in cause
    assert list(memory_left(root)) == []


def test_doctor_shows_the_remaining_limit_and_hidden_files(tmp_path: Path):
    pool = "sys/kernel/mm/hugepages/hugepages-2048kB"
    files = {"proc/meminfo": "Hugepagesize: 2048 kB", "proc/self/cgroup": "0::/"}
    root = tree(tmp_path, files | {f"{pool}/nr_hugepages": 8, f"{pool}/free_hugepages": 8})

    def state(name: str) -> str:
        actual = {finding.name: finding for finding in page_findings(read_host(root), root)}
        return actual[name].state if name in actual else ""

    assert state(POOL) == "good" and state("/proc") == ""
    limits = "sys/fs/cgroup/hugetlb.2MB"
    for size, expected in ((8 * HUGE, "good"), (3 * HUGE, "note"), (0, "note")):
        tree(root, {f"{limits}.max": size, f"{limits}.current": 0})
        assert state(POOL) == expected
    (root / "proc/meminfo").unlink()
    assert state("/proc") == "missing"


def test_the_launcher_refuses_pages_that_a_limit_forbids(launcher: Launcher):
    names = ("hugetlb.2MB.max", "hugetlb.2MB.current")
    names += ("hugetlb/hugetlb.2MB.limit_in_bytes", "hugetlb/hugetlb.2MB.usage_in_bytes")
    pool = "/sys/kernel/mm/hugepages/hugepages-2048kB"
    if not Path(pool).exists():
        pytest.skip("this kernel has no pool of pages of 2 MiB")
    program = ("--", launcher.program, "hugetlbfs:2m", "--", "/bin/echo", "started")
    for limits in ([f"/sys/fs/cgroup/{name}=0" for name in names], []):
        done = called([WITH_FILES, f"{pool}/free_hugepages=9", "/sys/fs/cgroup=", *limits, *program])
        if done.returncode == SKIPPED:
            pytest.skip(done.stderr)
        assert not limits or (done.returncode, done.stdout) == (3, "")
        assert ("hugetlb.*.max" in done.stderr) == bool(limits), done


Unmounted = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def unmounted(tmp_path: Path) -> Unmounted:
    """Runs a command where nothing is mounted at a place."""

    def run(mount: str, *command: str | Path) -> subprocess.CompletedProcess[str]:
        inside = f'mount --make-rprivate / && umount --lazy {mount} && exec "$@"'
        words = ["unshare", "--mount", "sh", "-c", inside, "sh", *command]
        return called(words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT / "runners")})

    probe = run("/sys", "true")
    if probe.returncode != 0:
        pytest.skip(f"needs root, and a mount namespace: {probe.stderr}")
    return run


@pytest.mark.parametrize("policy", ["thp", "thp:64k", "hugetlbfs", "shared", "collapse", "advised"])
def test_without_sys_huge_pages_are_unknown(launcher: Launcher, unmounted: Unmounted, policy: str):
    done = unmounted("/sys", launcher.program, policy, "--", "/bin/echo", "started")
    assert (done.returncode, done.stdout) == (3, "") and "/sys" in done.stderr.split("remedy:")[1], done


def test_without_proc_nothing_is_called_static_and_none_works_without_sys(launcher, unmounted: Unmounted):
    assert unmounted("/sys", launcher.program, "none", "--", "/bin/echo", "started").stdout == "started\n"
    done = unmounted("/proc", launcher.program, "thp", "--", "/bin/echo", "started")
    assert (done.returncode, done.stdout) == (4, "") and "/proc" in done.stderr.split("remedy:")[1], done


@pytest.mark.long
def test_policies_are_listed_with_missing_mounts(unmounted: Unmounted):
    listed = (sys.executable, "-m", "pagewise", "list", "policies", "--json", "--", "/bin/echo")
    done = unmounted("/proc", *listed)
    assert (done.returncode, done.stdout) == (4, "") and "/proc" in done.stderr.split("remedy:")[1], done
    rows = json.loads(unmounted("/sys", *listed).stdout)["policies"]
    reasons = {row["policy"]: row["unavailable_reason"] for row in rows}
    assert reasons["none"] is None and reasons["reuse"] is None
    for name in ("thp", "malloc", "hugetlbfs", "shared", "advised"):
        assert "/sys/kernel/mm" in reasons[name], name


@needs_thp
@pytest.mark.parametrize("refusing", [True, False])
def test_a_program_that_refuses_huge_pages_is_named_as_the_cause(launcher: Launcher, refusing: bool):
    if os.uname().machine != "x86_64":
        pytest.skip("the number of this system call is that of x86-64")
    # By a system call: the preloaded library does not see it.
    call = "ctypes.CDLL(None).syscall(157, 41, 1, 0, 0, 0)" if refusing else "pass"
    code = f"import ctypes; {call}; x = bytearray({64 * MIB})"
    done = launcher.run("malloc", "--", sys.executable, "-c", code)
    assert done.returncode == 0 and ("PR_SET_THP_DISABLE" in done.stderr) == refusing, done


def group_of_memory() -> Path | None:
    """The folder of the control groups of memory, if this user may create one there."""
    for folder in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")):
        enabled = folder / "cgroup.subtree_control"
        has_memory = folder.name == "memory" or (enabled.exists() and "memory" in enabled.read_text())
        if has_memory and os.access(folder / "cgroup.procs", os.W_OK):
            return folder
    return None


@pytest.fixture
def limited() -> Iterator[Path]:
    """A control group with 200 MiB of memory."""
    above = group_of_memory()
    if above is None:
        pytest.skip("no control group of memory can be created here (/sys/fs/cgroup)")
    group = above / f"pagewise-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as fault:
        pytest.skip(f"no control group of memory can be created here: {fault}")
    limit = group / ("memory.limit_in_bytes" if above.name == "memory" else "memory.max")
    limit.write_text(str(200 * MIB))
    yield group
    with contextlib.suppress(OSError):
        (group / "memory.force_empty").write_text("0")
    group.rmdir()


@pytest.mark.long
def test_a_program_that_its_control_group_killed_is_explained(limited: Path, tmp_path: Path):
    stage = Stage(tmp_path)

    def enter() -> None:
        (limited / "cgroup.procs").write_text(str(os.getpid()))

    words = ("--rounds", "1", "--policies", "none", "--", sys.executable, "-c", TOUCH)
    command = stage.command("compare", "--output", str(stage.results), *words)
    called(command, env=stage.variables(), cwd=tmp_path, preexec_fn=enter)
    failure = stage.read_result().records[0].failure
    assert failure is not None and failure.exit_code == 137 and failure.remedy
    assert str(limited) in failure.message and "200 MiB" in failure.message
