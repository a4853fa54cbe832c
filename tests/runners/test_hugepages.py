"""The page pool: reserved when asked for, and put back whatever happens."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_root import tree
from killed_sessions import guardian_of, settle
from pagewise.core.errors import Interrupted, RefusedError
from pagewise.core.result import read_result
from pagewise.core.signals import interruptible
from pagewise.machine.settings.hugepages import (
    MARGIN_PAGES,
    PAGE_BYTES,
    pages_needed,
    pools_of,
    reserve_pages,
)
from pagewise.machine.settings.kinds import Pool
from scripts import HANGS_AFTER
from stage import TRIAD, Stage

POOL = "sys/kernel/mm/hugepages/hugepages-2048kB"
MACHINE = Path("/") / POOL / "nr_hugepages"


class FakePool(Pool):
    """A pool in a folder: a kernel that grants at most `limit` pages, more after compaction."""

    def put(self, value: str) -> None:
        limit, pages = self.folder / "limit", int(value)
        granted = min(pages, int(limit.read_text())) if limit.exists() else pages
        used = self.total() - self.free()
        super().put(str(granted))
        (self.folder / "free_hugepages").write_text(str(max(0, granted - used)))


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    files = {f"{POOL}/nr_hugepages": 10, f"{POOL}/free_hugepages": 4, "proc/sys/vm/compact_memory": ""}
    return FakePool(tree(tmp_path, files) / POOL)


def test_free_pages_are_added_to_used_ones(tmp_path: Path, pool: Pool):
    with reserve_pages([pool], 100, tmp_path) as reservation:
        assert (pool.total(), pool.free()) == (106, 100)
        assert (reservation.before, reservation.needed, reservation.now) == (10, 100, 106)
    with reserve_pages([pool], 3, tmp_path):
        assert pool.total() == 10
    assert pool.total() == 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_pool_and_a_second_one_does_not_hinder(tmp_path, pool: Pool, number):
    with pytest.raises(Interrupted) as caught, interruptible(), reserve_pages([pool], 100, tmp_path):
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), number)
    assert caught.value.exit_code == 128 + number
    assert pool.total() == 10


def test_too_few_pages_are_refused_and_given_back(tmp_path: Path, pool: Pool):
    (pool.folder / "limit").write_text("50")
    with pytest.raises(RefusedError) as caught, reserve_pages([pool], 100, tmp_path):
        pytest.fail("the block must not run")
    assert {"44", "100"} <= set(re.findall(r"\d+", caught.value.message))
    assert "compact_memory" in str(caught.value) and "hugepages=100" in str(caught.value)
    assert (tmp_path / "proc/sys/vm/compact_memory").read_text() == "1\n"
    assert pool.total() == 10


def test_larger_pages_are_used_as_far_as_they_fit(tmp_path: Path):
    files = {"nr_hugepages": 1, "free_hugepages": 0, "limit": 3}
    tree(tmp_path / "sys/kernel/mm/hugepages/hugepages-1048576kB", files)
    pool = FakePool(pools_of([0], tmp_path, 1 << 30)[0].folder)
    assert pages_needed([("--working-set", "64MiB"), ("--working-set", "2GiB")], 1 << 30) == 2 + 3
    with reserve_pages([pool], 5, tmp_path) as reservation:
        assert (reservation.page_bytes, reservation.needed, reservation.now) == (1 << 30, 5, 3)
    assert pool.total() == 1


def test_the_pools_of_the_nodes_in_use(tmp_path: Path):
    none = pools_of([0], tmp_path)
    with pytest.raises(RefusedError, match="2 MiB") as caught, reserve_pages(none, 1, tmp_path):
        pytest.fail("the block must not run")
    assert caught.value.where.endswith("hugepages-2048kB/nr_hugepages")
    for number in (0, 1):
        (tmp_path / f"sys/devices/system/node/node{number}/hugepages/hugepages-2048kB").mkdir(parents=True)
    assert [pool.folder.parts[-3] for pool in pools_of([1], tmp_path)] == ["node1"]
    assert [pool.folder.parts[-3] for pool in pools_of([1, 0, 1], tmp_path)] == ["node0", "node1"]


@pytest.mark.parametrize(
    ("arguments", "pages"),
    [
        ([("--working-set", "64MiB"), ("--working-set=1GiB", "--repetitions", "3")], 512),
        ([("--working-set", "3000000")], 2),
        ([("--problem", "sedov", "--memory", "1GiB", "--fill-memory")], 512),
        ([("--sweep", "stride")], 256),
        ([("--sweep", "working-set", "--working-set", "64MiB")], 32),
        ([("--sweep", "working-set=2MiB,64MiB,4MiB")], 32),
    ],
)
def test_pages_for_the_largest_working_set(arguments, pages: int):
    assert pages_needed(arguments, PAGE_BYTES) == pages + MARGIN_PAGES


def test_a_user_without_root_is_reported(monkeypatch, pool: Pool):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RefusedError) as caught, reserve_pages([pool], 1):
        pytest.fail("the block must not run")
    assert caught.value.where == "--prepare-pages" and f"{pool.folder}/nr_hugepages" in caught.value.remedy


@pytest.fixture
def pages_before() -> int:
    return int(MACHINE.read_text())


@pytest.fixture
def reserving(stage: Stage) -> Iterator[subprocess.Popen[str]]:
    """A comparison that has reserved pages of this machine and measures."""
    small = {**TRIAD, "compare": {**TRIAD["compare"], "arguments": ["--working-set", "8MiB"]}, "sweeps": []}
    for pages in ("none", "hugetlbfs"):
        stage.add("gcc-12.2.0", (pages, "hardware", "regular"), [small], sleep="0.02")
    process = stage.start("kernels", "--rounds", "9", "--prepare-pages")
    yield process
    process.kill()
    process.communicate(timeout=HANGS_AFTER)
    settle(Path("/"))


@pytest.mark.long
@pytest.mark.changes_machine
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_comparison_that_is_ended_puts_this_machines_pool_back(pages_before, reserving, number):
    assert int(MACHINE.read_text()) >= pages_before + 4 + MARGIN_PAGES
    reserving.send_signal(number)
    reserving.communicate(timeout=HANGS_AFTER)
    assert reserving.returncode == (143 if number == signal.SIGTERM else -number)
    settle(Path("/"))
    assert int(MACHINE.read_text()) == pages_before


def listed(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [one["state"] for one in json.loads(done.stdout)["findings"] if one["topic"] == "Settings"]


@pytest.mark.long
@pytest.mark.changes_machine
@pytest.mark.parametrize("then", ["resume", "compare", "doctor"])
def test_pages_that_a_killed_comparison_left(pages_before, stage: Stage, reserving, then: str):
    os.kill(guardian_of(reserving.pid), signal.SIGKILL)
    reserving.kill()
    reserving.communicate(timeout=HANGS_AFTER)
    assert int(MACHINE.read_text()) > pages_before
    folder = stage.result()
    actual = stage.run("doctor", "--no-noise", "--json")
    assert actual.returncode == 1 and listed(actual) == ["missing"]
    if then == "doctor":
        left = int(MACHINE.read_text())
        plain = stage.compare("--rounds", "1")
        assert plain.returncode == 0 and "nr_hugepages" in plain.stderr and int(MACHINE.read_text()) == left
        actual = stage.run("doctor", "--no-noise", "--json", "--restore")
        assert actual.returncode == 0 and listed(actual) == ["good"]
    elif then == "resume":
        stage.resume(folder, code=0)
        assert read_result(folder).manifest.state == "complete"
    else:
        stage.compare("--rounds", "1", "--prepare-pages", code=0)
        manifest = stage.read_result().manifest
        assert {pool.before for pool in manifest.pool} == {pages_before}
        [pool] = [one for one in manifest.host.pools if one.page_bytes == PAGE_BYTES]
        assert pool.total == pages_before
    assert int(MACHINE.read_text()) == pages_before


@pytest.mark.long
@pytest.mark.changes_machine
def test_a_second_comparison_that_reserves_pages_is_refused(pages_before, stage: Stage, reserving):
    reserved_now = int(MACHINE.read_text())
    second = stage.compare("--rounds", "1", "--prepare-pages")
    assert second.returncode == 4 and str(reserving.pid) in second.stderr, second.stderr
    assert len(list(stage.results.iterdir())) == 1 and int(MACHINE.read_text()) == reserved_now
    _, errors = reserving.communicate(timeout=HANGS_AFTER)
    assert reserving.returncode == 0, errors
    assert {record.status for record in stage.read_result().records} == {"ok"}
    assert int(MACHINE.read_text()) == pages_before
