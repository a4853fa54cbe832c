"""The state of the node as a dimension of a comparison: --vary node-state."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

from builders import configuration, kernel, record, varied
from fake_root import THP, tree
from json_schema import faults
from pagewise.analysis.analysis import analyse
from pagewise.core.errors import RefusedError
from pagewise.core.plan import subject
from pagewise.machine.host import size
from pagewise.machine.node_state import huge_order
from pagewise.report.views import comparisons
from pagewise.session.node_states import NodeStates, check_states
from pagewise.session.options import MachineOptions, SessionOptions
from pagewise.session.settings import in_all_states
from stage import RUNNERS, Stage

BASE, WITH_THP = (configuration(label=(name, "hardware", "regular")) for name in ("none", "thp"))
UNEVICTABLE = Path("/proc/sys/vm/compact_unevictable_allowed")
BLOCKS, HUGE, GIB = 4, 2 << 20, 1 << 30
needs_thp = pytest.mark.skipif(
    not os.access(UNEVICTABLE, os.W_OK) or huge_order() != 9, reason="no compaction, or no THP of 2 MiB"
)


@pytest.mark.parametrize(("aged", "verdict"), [(1.1, "faster"), (2.2, "inconclusive"), (3.0, "slower")])
def test_a_policy_has_its_verdict_in_each_state(aged: float, verdict: str) -> None:
    requested = SessionOptions(machine=MachineOptions(node_states=("fresh", "aged")))
    (one,) = in_all_states([subject(kernel(), [BASE, WITH_THP], "none/hardware-regular")], requested)
    times = {("none", "fresh"): 2.0, ("thp", "fresh"): 1.0, ("none", "aged"): 2.2, ("thp", "aged"): aged}
    noise = (1.0, 1.004, 0.997, 1.002, 0.999, 1.003, 0.998)
    records = []
    for cell in one.cells:
        pages, state = cell.measured.hugepages, cell.measured.value("node_state")
        for number, series in product(range(1, 8), ("compare", "aa") if cell.is_baseline else ("compare",)):
            at = number + len(series) + 3 * len(pages) + len(state)
            seconds = times[pages, state] * noise[at % 7]
            made = record(cell.measured, seconds, number=number, series=series)
            records.append(varied(made, "run", options=cell.options))
    results = analyse([one], records, seed=1)
    (section,) = comparisons.states(results)
    shown = [(row["state of the node"], row["verdict"]) for row in section.blocks[0].records()]
    assert sorted(shown) == [("aged", verdict), ("fresh", "faster")]


def node(root: Path, free: int, limit: int | None = None) -> Path:
    files: dict[str, object] = {"proc/sys/vm/compact_memory": "", f"{THP}/hpage_pmd_size": HUGE}
    files["proc/meminfo"] = f"MemFree: {free >> 10} kB\nMemAvailable: {free >> 10} kB\n"
    if limit is not None:
        group = "sys/fs/cgroup/job/memory"
        files |= {"proc/self/cgroup": "0::/job", f"{group}.max": limit, f"{group}.current": 0}
    return tree(root, files)


def test_the_needs_of_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_states([], tmp_path)
    check_states(["fresh", "aged"], node(tmp_path / "enough", 4 * GIB))
    check_states(["fresh"], node(tmp_path / "short", GIB // 2))
    for states, root in (
        (["fresh"], tmp_path / "none"),
        (["aged"], tmp_path / "short"),
        (["aged"], node(tmp_path / "limited", 4 * GIB, 2 * GIB)),
    ):
        with pytest.raises(RefusedError) as raised:
            check_states(states, root)
        assert raised.value.remedy
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RefusedError):
        check_states(["fresh"])


def bytes_of(process: int, name: str) -> int:
    return size(Path(f"/proc/{process}/smaps_rollup"), name) or 0


@needs_thp
@pytest.mark.changes_machine
def test_fragmented_memory_is_held_and_released(tmp_path: Path) -> None:
    before = UNEVICTABLE.read_text()
    with NodeStates(tmp_path, most=BLOCKS) as states:
        states.enter("aged")
        assert states._holder is not None and UNEVICTABLE.read_text().split() == ["0"]
        process = states._holder.pid
        # Half of what was taken is left, on locked base pages.
        held = BLOCKS * HUGE // 2
        assert held <= bytes_of(process, "Locked") < held + HUGE and bytes_of(process, "AnonHugePages") == 0
        states.enter("aged")
        states.check()
        assert states._holder.pid == process
        states.enter(None)
        assert not Path(f"/proc/{process}").exists() and UNEVICTABLE.read_text() == before
        states.enter("fresh")
        assert UNEVICTABLE.read_text() == before
        # A holder that somebody ended is reported.
        states.enter("aged")
        assert states._holder is not None
        os.kill(states._holder.pid, signal.SIGKILL)
        states._holder.process.wait()
        with pytest.raises(RefusedError):
            states.check()


@pytest.mark.long
@needs_thp
@pytest.mark.changes_machine
def test_the_guardian_undoes_changes_of_a_killed_session(tmp_path: Path) -> None:
    before = UNEVICTABLE.read_text()
    code = f"""
import sys, time
from pathlib import Path
from pagewise.session.node_states import NodeStates
with NodeStates(Path({str(tmp_path)!r}), most={BLOCKS}) as states:
    states.enter("aged")
    print(states._holder.pid, flush=True)
    time.sleep(60)
"""
    command, environment = [sys.executable, "-c", code], {"PYTHONPATH": str(RUNNERS)}
    session = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert session.stdout is not None
    holder = Path(f"/proc/{int(session.stdout.readline())}")
    assert holder.exists() and UNEVICTABLE.read_text().split() == ["0"]
    session.kill()
    session.wait()
    deadline = time.monotonic() + 30
    while (holder.exists() or UNEVICTABLE.read_text() != before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not holder.exists() and UNEVICTABLE.read_text() == before


@pytest.mark.release
@needs_thp
@pytest.mark.changes_machine
def test_a_program_is_compared_in_both_states(stage: Stage) -> None:
    free = size(Path("/proc/meminfo"), "MemFree") or 0
    if not 2 * GIB < free < 32 * GIB:
        pytest.skip("too little memory, or more than a test should take")
    try:
        check_states(["fresh", "aged"])
    except RefusedError as error:
        pytest.skip(str(error))
    code = "import mmap, time; m = mmap.mmap(-1, 32 << 20); m[::4096] = bytes(8192); time.sleep(0.2)"
    options = ("--policies", "thp", "--rounds", "1", "--enough-coverage", "1%")
    words = ("--json", *options, "--vary", "node-state=fresh,aged", "--", sys.executable, "-c", code)
    done = stage.run("compare", *words, timeout=500)
    assert done.returncode in (0, 1), done.stderr
    shown = json.loads(done.stdout)
    assert faults("verdicts", shown) == []
    compared = {(row["hugepages"], row["node_state"]) for row in shown["comparisons"]}
    assert compared >= {("thp", "fresh"), ("thp", "aged")}
    again = stage.run("report", "--json", str(stage.result()))
    assert json.loads(again.stdout)["comparisons"] == shown["comparisons"]
    index = {(row["hugepages"], row["node_state"]): row["unusable_index"] for row in shown["node_state"]}
    assert index["none", "aged"] > 0.9 and index["thp", "aged"] > 0.9
