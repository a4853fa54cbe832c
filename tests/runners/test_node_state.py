"""The state of the node's memory: recorded for every run, and reported."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from builders import a_manifest, compared, configuration, record, varied
from pagewise.analysis.node_state import use_by_cell
from pagewise.core.configuration import Configuration
from pagewise.core.node_state import NodeState, change, parse_buddyinfo, parse_counters, unusable_index
from pagewise.core.plan import key_of
from pagewise.core.record import Record
from pagewise.core.result import Result, read_result
from pagewise.core.schemas import faults
from pagewise.machine.host import read_host
from pagewise.machine.node_state import read_state
from pagewise.report.views import node_state as views
from stage import TRIAD, Stage

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
BASE, THP_BUILD = configuration(), configuration(label=("thp", "hardware", "regular"))
THP = "sys/kernel/mm/transparent_hugepage"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_free_blocks_by_zone():
    free = parse_buddyinfo(BUDDYINFO)
    assert list(free) == ["0/DMA", "0/Normal", "1/Normal"]
    assert free["0/DMA"] == (0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 3)
    assert parse_buddyinfo("nothing of this kind\n") == {}


@pytest.mark.parametrize(
    ("blocks", "order", "index"),
    [
        ((0, 0, 0, 4), 3, 0.0),
        ((8, 0, 0, 0), 3, 1.0),
        ((8, 0, 0, 3), 3, 0.25),
        # No zone has blocks of this order.
        ((8, 2), 9, 1.0),
        ((0, 0), 1, None),
        ((), 1, None),
    ],
)
def test_the_unusable_free_space_index(blocks: tuple[int, ...], order: int, index: float | None):
    assert unusable_index({"0/Normal": blocks}, order) == index


def test_what_a_run_changed():
    before = NodeState(
        free_blocks={"0/Normal": (8, 0, 0, 3)}, huge_order=3, counters={"a": 1, "b": 2, "c": 5}
    )
    after = NodeState(free_blocks={}, huge_order=3, counters={"a": 4, "b": 2, "c": 4, "new": 9})
    node = change(before, after)
    assert (node.free_blocks, node.unusable_index) == (before.free_blocks, 0.25)
    assert node.counted == {"a": 3}


def test_a_state_is_read_from_its_files(tmp_path: Path):
    root = write(
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
    assert state.huge_order == 9 and state.free_blocks == parse_buddyinfo(BUDDYINFO)
    assert state.counters == {
        "numa_hit": 20,
        "compact_stall": 3,
        "thp_fault_alloc": 10,
        "thp_fault_fallback": 5,
        "khugepaged_pages_collapsed": 12,
    }
    host = read_host(root)
    assert host.thp is not None and host.thp.khugepaged == {"max_ptes_none": 511, "pages_collapsed": 12}
    assert host.free_page_reporting is True


def test_a_kernel_that_reports_nothing(tmp_path: Path):
    state = read_state(tmp_path)
    assert state == NodeState(free_blocks={}, huge_order=None, counters={})
    assert change(state, state).unusable_index is None
    assert parse_counters("") == {}
    assert read_host(tmp_path).free_page_reporting is None


def run(of: Configuration, number: int, fallbacks: int, index: float, series: str = "compare") -> Record:
    """A record with the state of the node."""
    counted = {"thp_fault_alloc": 6, "thp_fault_fallback": fallbacks}
    node = {"free_blocks": {}, "unusable_index": index, "counted": counted}
    return varied(record(of, 1.0, number=number, series=series), "run", node=node)


def test_the_share_of_faults_that_fell_back():
    first = run(THP_BUILD, 1, 2, 0.1)
    # Two records of a run have its state twice; trial runs do not count.
    records = [
        first,
        first,
        run(THP_BUILD, 2, 4, 0.3),
        run(THP_BUILD, 3, 60, 0.9, "trial"),
        record(BASE, 1.0),
    ]
    (use,) = use_by_cell(records).values()
    assert use_by_cell(records).keys() == {("triad", *key_of(first.run))}
    assert (use.runs, use.allocated, use.fell_back) == (2, 12, 6)
    assert use.fallback_share == pytest.approx(1 / 3) and use.unusable == pytest.approx(0.2)


def test_the_report_shows_the_share(tmp_path: Path):
    kernels = [compared({BASE: 2.0, THP_BUILD: 1.0})]
    records = [run(BASE, 1, 0, 0.1), run(THP_BUILD, 1, 2, 0.1)]
    result = Result(tmp_path, a_manifest(), [], records, [])
    (section,) = views.sections(result, kernels)
    assert len(section.blocks[0].rows) == 2
    shares = {
        row["hugepages"]: row["thp_fallback_share"] for row in views.table_of(result, kernels).records()
    }
    assert shares == {"none": 0.0, "thp": 0.25}
    assert len(list(views.notes(result, kernels))) == 1
    # Results of earlier versions have no state.
    assert views.sections(replace(result, records=[record(BASE, 1.0)]), kernels) == []


def test_every_run_records_the_state(stage: Stage):
    for label in (("none", "hardware", "regular"), ("thp", "hardware", "regular")):
        stage.add("gcc-12.2.0", label, [TRIAD])
    done = stage.compare("--rounds", "2", "--no-sweep", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = json.loads(done.stdout)
    assert faults("verdicts", shown) == []
    assert {row["hugepages"]: row["runs"] for row in shown["node_state"]} == {"none": 4, "thp": 2}
    result = read_result(stage.result())
    nodes = [record.run.node for record in result.records]
    assert len(nodes) == 6 and all(node.free_blocks for node in nodes)
    assert all(0 <= node.unusable_index <= 1 for node in nodes if node.unusable_index is not None)
