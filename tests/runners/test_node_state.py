"""The state of the node's memory: recorded for every run, and reported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from builders import BASE, a_manifest, compared, record, varied
from builders import THP as THP_BUILD
from fake_root import THP, tree
from json_schema import faults
from own_program import bytes_on_huge_pages, needs_thp
from pagewise.core.configuration import Configuration
from pagewise.core.host import Thp
from pagewise.core.node_state import (
    NodeState,
    change,
    obtainable_blocks,
    parse_buddyinfo,
    parse_reserves,
    unusable_index,
)
from pagewise.core.record import Record
from pagewise.core.result import Result
from pagewise.machine.host import read_host
from pagewise.machine.node_state import predict, read_state, unit_of_process
from pagewise.machine.settings.kinds import Word
from pagewise.report.views.tables import evidence as views
from pagewise.session.node_states import NodeStates, compact
from pagewise.workloads.doctor import supply_findings
from scripts import called
from stage import PAGES, TRIAD, Stage

BUDDYINFO = """\
Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3
Node 0, zone   Normal  11705   5848   1829    927   2124   1225    525    303    196    128    957
Node 1, zone   Normal      4      0      0      0      0      0      0      0      0      0      0
"""
VMSTAT = """\
nr_free_pages 100
numa_hit 20
compact_stall 3
thp_fault_alloc 10
thp_fault_fallback 5
unevictable_pgs_culled 7
"""


@pytest.mark.parametrize(
    ("blocks", "order", "index"),
    [
        ((0, 0, 0, 4), 3, 0.0),
        ((8, 0, 0, 0), 3, 1.0),
        ((8, 0, 0, 3), 3, 0.25),
        # No zone has blocks of this order.
        ((8, 2), 9, 1.0),
        ((0, 0), 1, None),
    ],
)
def test_the_unusable_free_space_index(blocks: tuple[int, ...], order: int, index: float | None):
    assert unusable_index({"0/Normal": blocks}, order) == index


def test_changes_by_a_run():
    before = NodeState(
        free_blocks={"0/Normal": (8, 0, 0, 3)}, huge_order=3, counters={"a": 1, "b": 2, "c": 5}
    )
    after = NodeState(free_blocks={}, huge_order=3, counters={"a": 4, "b": 2, "c": 4, "new": 9})
    node = change(before, after)
    assert (node.free_blocks, node.unusable_index) == (before.free_blocks, 0.25)
    assert node.counted == {"a": 3}


def test_a_state_is_read_from_its_files(tmp_path: Path):
    root = tree(
        tmp_path,
        {
            "proc/buddyinfo": BUDDYINFO,
            "proc/vmstat": VMSTAT,
            f"{THP}/enabled": "always [madvise] never\n",
            f"{THP}/hpage_pmd_size": "2097152\n",
            f"{THP}/khugepaged/pages_collapsed": "12\n",
            f"{THP}/khugepaged/max_ptes_none": "511\n",
            "sys/bus/virtio/drivers/virtio_balloon/virtio0/features": "0110010100\n",
        },
    )
    state = read_state(root)
    assert state.huge_order == 9 and list(state.free_blocks) == ["0/DMA", "0/Normal", "1/Normal"]
    assert state.free_blocks["0/DMA"] == (0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 3)
    assert state.counters == {
        "numa_hit": 20,
        "compact_stall": 3,
        "thp_fault_alloc": 10,
        "thp_fault_fallback": 5,
        "khugepaged_pages_collapsed": 12,
    }
    host = read_host(root)
    assert host.khugepaged == {"max_ptes_none": 511, "pages_collapsed": 12}
    assert host.free_page_reporting is True
    # A kernel that reports nothing.
    nothing = read_state(root / "none")
    assert nothing == NodeState(free_blocks={}, huge_order=None, counters={})
    assert change(nothing, nothing).unusable_index is None
    assert read_host(root / "none").free_page_reporting is None


TOUCH = """
import re, sys
from pagewise.machine import memory
memory.free_page_reporting = lambda: sys.argv[1] == "reports"
memory.request_back(64 << 20)
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.parametrize(("machine", "touches"), [("reports", True), ("keeps", False)])
def test_memory_is_touched_on_nodes_with_free_page_reporting(machine: str, touches: bool):
    printed = called([sys.executable, "-c", TOUCH, machine], check=True).stdout
    assert (int(printed) > 64 << 10) is touches


def run(
    of: Configuration,
    number: int,
    fallbacks: int,
    index: float,
    series: str = "compare",
    *,
    uncharged: int = 0,
) -> Record:
    """A record with the state of the node."""
    counted = {"thp_fault_alloc": 6, "thp_fault_fallback": fallbacks, "thp_fault_fallback_charge": uncharged}
    node = {"free_blocks": {}, "unusable_index": index, "counted": counted}
    return varied(record(of, 1.0, number=number, series=series), "run", node=node)


def test_the_share_of_faults_that_fell_back(tmp_path: Path):
    kernels = [compared({BASE: 2.0, THP_BUILD: 1.0})]
    first = run(THP_BUILD, 1, 2, 0.1)
    # Two records of a run have its state twice; trial runs do not count.
    several = [first, first, run(THP_BUILD, 2, 4, 0.3), run(THP_BUILD, 3, 60, 0.9, "trial")]
    result = Result(tmp_path, a_manifest(), [], [run(BASE, 1, 0, 0.1), *several], [])
    *_, section = views.sections(result, kernels)
    assert len(section.blocks[0].rows) == 2
    rows = {row.hugepages: row for row in views.node_rows(result, kernels)}
    thp = rows["thp"]
    assert (thp.runs, thp.thp_faults, thp.thp_fallbacks) == (2, 12, 6)
    assert thp.thp_fallback_share == pytest.approx(1 / 3) and thp.unusable_index == pytest.approx(0.2)
    assert rows["none"].thp_fallback_share == 0.0
    (note,) = views.node_notes(result, kernels)
    # A limit of memory, not of free blocks, refused most of them.
    limited = replace(result, records=[run(BASE, 1, 0, 0.1), run(THP_BUILD, 1, 4, 0.1, uncharged=3)])
    (by_limit,) = views.node_notes(limited, kernels)
    assert "control group" in by_limit and "control group" not in note
    # Results of earlier versions have no state.
    without = views.sections(replace(result, records=[record(BASE, 1.0)]), kernels)
    assert section.title not in {each.title for each in without}


def test_every_run_records_the_state(stage: Stage):
    for label in PAGES:
        stage.add("gcc-12.2.0", label, [TRIAD])
    done = stage.compare("--rounds", "2", "--no-sweep", "--json", code=0)
    shown = json.loads(done.stdout)
    assert faults("verdicts", shown) == []
    assert {row["hugepages"]: row["runs"] for row in shown["node_state"]} == {"none": 4, "thp": 2}
    nodes = [record.run.node for record in stage.read_result().records]
    assert len(nodes) == 6 and all(node.free_blocks for node in nodes)
    assert all(0 <= node.unusable_index <= 1 for node in nodes if node.unusable_index is not None)


ZONEINFO = """\
Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 1457
  pages free     3840
        boost    0
        min      23
        low      28
        protection: (0, 3019, 12491, 12491, 12491)
Node 0, zone   Normal
  pages free     800580
        boost    100
        min      12796
        low      15995
        protection: (0, 0, 0, 0, 0)
  pagesets
    cpu: 0
              count:    2
"""


def test_the_reserve_of_the_kernel():
    assert parse_reserves(ZONEINFO) == {"0/DMA": 23 + 12491, "0/Normal": 12896}
    assert parse_reserves("") == {}


@pytest.mark.parametrize(
    ("blocks", "reserve", "expected"),
    [
        # Of order 3: one free block of 8 pages, two of order 4.
        ((0, 0, 0, 1, 2), 0, 5),
        # The watermark keeps a part of the last block.
        ((0, 0, 0, 1, 2), 1, 4),
        ((64, 0, 0, 0, 0), 0, 0),
        ((64, 0, 0, 0, 1), 8, 2),
        ((64, 0, 0, 1, 0), 100, 0),
    ],
)
def test_blocks_that_page_faults_get(blocks: tuple[int, ...], reserve: int, expected: int):
    assert obtainable_blocks({"0/Normal": blocks}, {"0/Normal": reserve}, 3) == expected


def test_prediction_and_outcome_on_this_machine():
    supply = predict(read_host().thp)
    if supply is None or supply.page_bytes != 2 << 20:
        pytest.skip("no THP of 2 MiB on this machine")
    if 0 < supply.obtainable < 64:
        pytest.skip("other programs could take the few huge pages that are left")
    got = bytes_on_huge_pages(16 << 20)
    assert got == 16 << 20 or not supply.obtainable


def node(root: Path) -> Path:
    return tree(
        root,
        {
            "proc/buddyinfo": BUDDYINFO,
            "proc/zoneinfo": ZONEINFO,
            f"{THP}/hpage_pmd_size": "2097152\n",
            "proc/meminfo": "MemAvailable: 1048576 kB\n",
        },
    )


MADVISE = Thp("madvise", "madvise", {"2048kB": "inherit", "64kB": "never"})


@pytest.mark.parametrize(
    ("thp", "process", "share", "state"),
    [
        (MADVISE, "allowed", 1, "good"),
        (MADVISE, "advised", 1, "good"),
        (MADVISE, "refused", 0, "note"),
        (replace(MADVISE, sizes={"2048kB": "never"}), "allowed", 0, None),
        (Thp("never", "madvise", {}), "allowed", 0, None),
    ],
)
def test_settings_and_limits_bound_the_prediction(tmp_path: Path, thp: Thp, process, share: int, state):
    root = node(tmp_path)
    supply = predict(thp, process, root)
    # 1 GiB is available, though more is free.
    assert supply is not None and (supply.obtainable, supply.process) == (512 * share, process)
    assert supply.usable_share == pytest.approx(1 - unusable_index(parse_buddyinfo(BUDDYINFO), 9))
    assert [finding.state for finding in supply_findings(supply, root)] == ([state] if state else [])
    tree(root, {"proc/meminfo": "MemAvailable: 99999999 kB"})
    zone = parse_buddyinfo(BUDDYINFO)["0/Normal"]
    more = predict(thp, process, root)
    assert more is not None and more.obtainable == (zone[9] + 2 * zone[10]) * share
    assert predict(None, process, root) is None and predict(thp, process, root / "none") is None


def test_a_control_group_and_little_memory_in_blocks_bound_the_prediction(tmp_path: Path):
    group = "sys/fs/cgroup/system.slice/job.service"
    limits = {f"{group}/memory.max": 64 << 20, f"{group}/memory.current": 32 << 20}
    root = tree(node(tmp_path), {"proc/self/cgroup": "0::/system.slice/job.service", **limits})
    supply = predict(Thp("always", "madvise", {}), "allowed", root)
    assert supply is not None and (supply.obtainable, supply.limit_bytes) == (16, 32 << 20)
    assert unit_of_process(root) == "job.service" and unit_of_process(tmp_path / "none") is None
    tree(root, {"proc/buddyinfo": "Node 0, zone   Normal  90000 0 0 0 0 0 0 0 0 0 0"})
    (finding,) = supply_findings(predict(MADVISE, "allowed", root), root)
    assert finding.state == "note" and finding.remedy
    assert list(supply_findings(None, root)) == []


def test_a_process_that_may_not_use_thp():
    code = """
import ctypes
from pagewise.machine.settings.thp import process_thp
print(process_thp(), ctypes.CDLL(None).prctl(41, 1, 0, 0, 0), process_thp())
print(ctypes.CDLL(None).prctl(41, 1, 2, 0, 0), process_thp())
"""
    done = called([sys.executable, "-c", code], check=True)
    before, result, after, flagged, advised = done.stdout.split()
    assert (before, result, after) == ("allowed", "0", "refused")
    # PR_THP_DISABLE_EXCEPT_ADVISED needs Linux 6.18.
    assert advised == ("advised" if flagged == "0" else "refused")


HUGE = 2 << 20
#: Huge pages that are left free; other free memory is held. At the highest level 200 of them stay whole: the
#: kernel's lists per CPU have some dozens that no file shows, and a program gets so many more.
LEFT = 4096
#: Shares of these that are fragmented.
LEVELS = (0.0, 0.25, 0.5, 0.7, 0.85, 0.95)
#: Sizes of programs relative to the prediction.
SIZES = (0.5, 0.9, 1.2, 1.5)
#: As much of a program's memory as page verification wants.
ENOUGH = 0.99


@contextmanager
def holder(count: int) -> Iterator[subprocess.Popen[str]]:
    """A process that holds so many huge pages."""
    code = f"from pagewise.session.holder import take; held = take({count}, {HUGE}); print(); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "\n"
        yield process
        process.kill()


@needs_thp
@pytest.mark.release
@pytest.mark.changes_machine
def test_prediction_and_outcome_over_levels_of_real_fragmentation(tmp_path: Path) -> None:
    compact()
    actual = predict(read_host().thp)
    if actual is None or actual.page_bytes != HUGE or actual.obtainable < 1.5 * LEFT:
        pytest.skip("needs 12 GiB of free memory in huge pages of 2 MiB")
    cases: list[tuple[float, int, int, bool, bool]] = []
    setting = Word(Path("/", THP, "defrag"))
    with ExitStack() as stack:
        stack.callback(setting.put, setting.get())
        # Page faults take free huge pages and do not wait for more: what `obtainable` predicts.
        setting.put("never")
        rest = stack.enter_context(holder(actual.obtainable - LEFT))
        for level in LEVELS:
            with NodeStates(tmp_path, most=int(level * LEFT)) as states:
                if level > 0:
                    states.enter("aged")
                for size in SIZES:
                    supply = predict(read_host().thp)
                    assert supply is not None
                    predicted = supply.obtainable
                    count = max(1, int(size * predicted))
                    share = bytes_on_huge_pages(count * HUGE) / (count * HUGE)
                    cases.append((level, predicted, count, count <= predicted, share >= ENOUGH))
                states.check()
        assert rest.poll() is None, "the kernel ended the process that holds the rest"
    right = sum(would == does for *_, would, does in cases)
    assert {would for *_, would, _ in cases} == {True, False}
    assert right >= 0.9 * len(cases), cases
