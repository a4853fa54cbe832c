"""Page policies of allocators and kinds of memory, with real runs: observed pages and unchanged results."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from launched import MIB, Launcher, recorded, share
from own_program import POOL, THP, Own, build, needs_madvise
from pagewise.workloads.program.policy import FILE
from scripts import called

LIBRARIES = {
    "jemalloc": "libjemalloc.so.2",
    "mimalloc": "libmimalloc.so",
    "tcmalloc": "libtcmalloc_minimal.so",
    "TBB": "libtbbmalloc_proxy.so.2",
}
SHARED = THP / "shmem_enabled"
needs_collapse = pytest.mark.skipif(os.geteuid() != 0, reason="only root may move the memory of others")
PYTHON = Path("/usr/bin/python3")
SMALL_OBJECTS = (
    "table = {number: str(number) for number in range(400_000)}; print(sum(map(len, table.values())))"
)


def library(name: str) -> str:
    """The file of an allocator; Debian's package is in setup/system-packages.tsv."""
    files = sorted(Path("/usr/lib").glob(f"*/{LIBRARIES[name]}"))
    if not files:
        pytest.skip(f"{name} is not installed")
    return str(files[-1])


def check_output(launcher: Launcher, policy: str, *command: str | Path, **environment: str) -> None:
    """The last line that a program prints is the same as under the policy none."""
    none, done = (launcher.run("--quiet", name, "--", *command, **environment) for name in ("none", policy))
    assert none.returncode == done.returncode == 0
    assert done.stdout.splitlines()[-1] == none.stdout.splitlines()[-1]


@pytest.fixture
def pool() -> Iterator[None]:
    """200 MiB in the default pool; the lock of tests that change the machine is held."""
    before = POOL.read_text()
    POOL.write_text("100")
    yield
    POOL.write_text(before)


@needs_madvise
@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("policy", ["thp", "malloc"])
def test_advice_reaches_every_allocator(launcher: Launcher, programs: Path, name: str, policy: str):
    preloaded = {"LD_PRELOAD": library(name)}
    record = recorded(launcher, policy, programs / "memory", "pieces", "0.1", **preloaded)
    assert record["met"] is True and record["coverage"] >= 0.8, record
    check_output(launcher, policy, programs / "memory", "pieces", "0.01", **preloaded)


@pytest.mark.parametrize("pages", ["100", "4"])
@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.changes_machine
def test_the_pool_serves_every_allocator(
    launcher: Launcher, programs: Path, pool: None, name: str, pages: str
):
    """4 pages are as many as one of the pieces needs: the allocator gets base pages for the rest."""
    POOL.write_text(pages)
    is_enough = pages == "100"
    preloaded = {"LD_PRELOAD": library(name)}
    record = recorded(launcher, "hugetlbfs", programs / "memory", "pieces", "0.1", **preloaded)
    assert record["met"] is is_enough, record
    if is_enough:
        assert record["coverage"] >= 0.8 and record["kinds"]["anonymous"]["huge_bytes"] >= 80 * MIB


@pytest.fixture(scope="session")
def pieces(programs: Path) -> Path:
    """own_programs/pieces.c: maps memory as some interpreters do."""
    return build("pieces.c", programs / "pieces")


WAYS = ("aligned", "refused", "following", "committed", "protected", "moved", "exact")


# What is left on base pages: up to a huge page at the end, and the program's start.
@pytest.mark.long
@needs_madvise
@pytest.mark.parametrize(
    ("policy", "pattern"),
    [
        *(("thp", way) for way in WAYS),
        # It does not come by itself.
        ("reuse", "committed"),
    ],
)
def test_advice_reaches_memory_in_small_pieces(launcher: Launcher, pieces: Path, policy: str, pattern: str):
    record = recorded(launcher, policy, pieces, pattern)
    huge = record["kinds"]["anonymous"]["huge_bytes"]
    assert huge >= 40 * MIB if policy == "thp" else huge == 0, record
    check_output(launcher, policy, pieces, pattern)


@needs_madvise
@pytest.mark.parametrize("policy", ["thp", "malloc"])
def test_small_objects_of_python_are_on_huge_pages(launcher: Launcher, policy: str):
    record = recorded(launcher, policy, PYTHON, "-I", "-c", SMALL_OBJECTS)
    assert record["met"] is True and share(record, "anonymous") > 0.8


@pytest.mark.long
@needs_madvise
def test_freed_memory_is_kept_by_the_settings_of_jemalloc(own: Own):
    own.stage.environment["LD_PRELOAD"] = library("jemalloc")
    own.run("--policies", "none,reuse", "--rounds", "1", way="again", code=0)
    faults = {one.configuration.hugepages: one.page_faults.compute_minor for one in own.records()}
    assert faults["reuse"] < faults["none"] / 2


@pytest.mark.changes_machine
def test_static_data_and_shared_memory_are_on_pages_of_the_pool(
    launcher: Launcher, programs: Path, pool: None
):
    record = recorded(launcher, "hugetlbfs-data", programs / "memory-data", "static")
    assert record["met"] is True and record["kinds"]["bss"]["huge_bytes"] >= 60 * MIB
    assert record["kinds"].get("data", {"resident_bytes": 0})["resident_bytes"] < 4 * MIB
    check_output(launcher, "hugetlbfs-data", programs / "memory-data", "static", "0.01")
    (launcher.folder / "pages.jsonl").unlink()
    record = recorded(launcher, "hugetlbfs-shared", programs / "memory", "shared")
    assert record["met"] is True and record["kinds"]["shared"]["huge_bytes"] >= 48 * MIB


@pytest.mark.long
def test_shared_memory_of_the_pool_keeps_its_content(programs: Path, tmp_path: Path):
    """With a pool of base pages, because none may be reserved."""
    library = build("pool.c", tmp_path / "pool.so", "-fPIC", "-shared", f"-I{FILE.parent}")
    preloaded = {"LD_PRELOAD": str(library), "PAGEWISE_PRELOAD": "pool-shared"}
    for variables in ({}, preloaded):
        assert subprocess.run([programs / "memory", "kept"], env=variables, check=False).returncode == 0


@pytest.mark.changes_machine
def test_shared_memory_is_advised_where_the_system_allows_it(launcher: Launcher, programs: Path):
    assert launcher.run("shared", "--", "true").returncode == 3 or "never" not in SHARED.read_text()
    before = SHARED.read_text().split("[")[1].split("]")[0]
    try:
        SHARED.write_text("advise")
        record = recorded(launcher, "shared", programs / "memory", "shared")
    finally:
        SHARED.write_text(before)
    assert record["met"] is True and record["kinds"]["shared"]["huge_bytes"] >= 40 * MIB


@pytest.mark.long
@pytest.mark.changes_machine
def test_a_comparison_over_kinds_of_memory(own: Own):
    """The pool's size comes from the memory that the policies are for; settings are restored."""
    before = POOL.read_text(), SHARED.read_text()
    policies = "none,shared,hugetlbfs-shared"
    own.run("--policies", policies, "--rounds", "1", "--prepare-pages", way="shared 0.3", code=0)
    assert own.statuses() == {policy: {"ok"} for policy in policies.split(",")}
    assert (POOL.read_text(), SHARED.read_text()) == before


@pytest.mark.long
@needs_collapse
@pytest.mark.alone
def test_the_memory_of_a_static_program_is_moved_from_outside(own: Own):
    options = ("--rounds", "1", "--enough-coverage", "50%", "--end-leftovers")
    own.run("--policies", "none,collapse", *options, program="memory-static", way="large 3", code=0)
    assert own.statuses() == {"none": {"ok"}, "collapse": {"ok"}}
    moved = next(one for one in own.records() if one.configuration.hugepages == "collapse")
    assert moved.program.kinds["anonymous"].peak.huge_bytes >= 48 * MIB and moved.run.left_behind is None


@needs_collapse
def test_processes_that_move_memory_end_with_the_program(launcher: Launcher, programs: Path):
    done = launcher.run("--quiet", "collapse", "--", "sh", "-c", "echo $PPID $$; kill -TERM $$")
    assert done.returncode == -15 and done.stderr == ""
    own = os.getpgrp()
    listed = called(["ps", "-eo", "pgid=,stat=,comm="], check=True)
    running = [line.split() for line in listed.stdout.splitlines() if "pagewise-exec" in line]
    assert not [words for words in running if int(words[0]) == own and "Z" not in words[1]]
    assert launcher.run("--quiet", "collapse", "--", "/nonexistent").returncode == 127
