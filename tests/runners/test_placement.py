"""Placements: CPUs chosen on machines that hwloc makes up, and what a process bound so really has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from builders import BASE, THP, configuration, kernel, record, subject_of, varied
from pagewise.analysis.analysis import analyse
from pagewise.analysis.validity import exclusion
from pagewise.core.errors import RefusedError, SelectionError, SetupError
from pagewise.core.fields import cpu_list, list_text
from pagewise.core.record_parts import ProcessPlacement
from pagewise.core.structure import to_data
from pagewise.machine import numa
from pagewise.machine.placement import (
    AvailableMachine,
    Placement,
    Where,
    observed_placement,
    placements,
    this_machine,
)
from pagewise.machine.topology import bitmap, parse, read_topology
from pagewise.report.views.data import configurations
from pagewise.report.views.kernel import noise_table
from pagewise.report.views.kernels import notes_of
from scripts import called, write_script

# 2 packages of 2 NUMA nodes, 4 cores each, SMT2 with siblings numbered n and n+16 as on x86.
XEON = "pack:2 numa:2 core:4 pu:2(indexes=core)"
# The same, siblings next to each other.
PAIRS = "pack:2 numa:2 core:4 pu:2"
# POWER9 and POWER8: SMT4 and SMT8, siblings next to each other.
POWER9 = "pack:2 numa:1 core:4 pu:4"
POWER8 = "pack:2 numa:1 core:3 pu:8"
# A64FX: four core memory groups of 12 cores.
A64FX = "pack:1 numa:4 l2:1 core:12 pu:1"
# EPYC: one NUMA node, four third-level caches of 3 cores.
EPYC = "pack:1 l3:4 core:3 pu:1"


@cache
def topology(description: str) -> str:
    command = ["lstopo-no-graphics", "-i", description, "--of", "xml"]
    return called(command, check=True).stdout


def machine(description: str, allowed: str | None = None) -> AvailableMachine:
    actual = parse(topology(description))
    every = frozenset(cpu for core in actual.cores for cpu in core.cpus)
    may = every if allowed is None else frozenset(cpu_list(allowed))
    return AvailableMachine(actual, may, every, tuple(node.number for node in actual.nodes))


def cpus(description: str, allowed: str | None = None, **where: tuple[object, ...]) -> list[list[int]]:
    actual = placements(Where(**where), machine(description, allowed))  # type: ignore[arg-type]
    return [list(one.cpus) for one in actual]


@pytest.mark.parametrize(
    ("description", "allowed", "threads", "close", "spread"),
    [
        # Within a NUMA node the last cores; the nodes by turns, first the packages.
        (XEON, None, 1, [3], [3]),
        (XEON, None, 2, [2, 3], [3, 11]),
        (XEON, None, 4, [0, 1, 2, 3], [3, 7, 11, 15]),
        (XEON, None, 6, [2, 3, 4, 5, 6, 7], [2, 3, 7, 10, 11, 15]),
        (XEON, None, 16, list(range(16)), list(range(16))),
        (PAIRS, None, 2, [4, 6], [6, 22]),
        # The batch system gave five cores, three of them on one node of the second package.
        (XEON, "1,5,8-10,24-26", 3, [8, 9, 10], [1, 5, 10]),
        (XEON, "1,5,8-10,24-26", 4, [1, 8, 9, 10], [1, 5, 9, 10]),
        # It gave the second hardware thread of some cores alone.
        (XEON, "16,17,2", 2, [17, 2], [17, 2]),
        (POWER9, None, 4, [0, 4, 8, 12], [8, 12, 24, 28]),
        (A64FX, None, 12, list(range(12)), [9, 10, 11, 21, 22, 23, 33, 34, 35, 45, 46, 47]),
        (A64FX, "12-35", 13, [23, *range(24, 36)], [*range(17, 24), *range(30, 36)]),
        (EPYC, None, 2, [10, 11], [8, 11]),
        (EPYC, None, 4, [8, 9, 10, 11], [2, 5, 8, 11]),
        (EPYC, "0-2,4-9,11", 3, [6, 7, 8], [5, 8, 11]),
    ],
)
def test_threads_close_to_each_other_and_spread(description, allowed, threads, close, spread):
    actual = cpus(description, allowed, threads=(threads,), bind=("close", "spread"))
    assert actual == ([close] if close == spread else [close, spread])


@pytest.mark.parametrize(
    ("description", "threads", "bind", "expected"),
    [
        # The same threads on half of the cores.
        (XEON, 4, "smt", [2, 18, 3, 19]),
        (XEON, 4, "spread+smt", [3, 19, 11, 27]),
        (XEON, 3, "smt:2", [2, 18, 3]),
        # The same cores with twice the threads.
        (XEON, 2, "close", [2, 3]),
        (XEON, 2, "fill", [2, 18, 3, 19]),
        (POWER9, 8, "smt:2", [0, 1, 4, 5, 8, 9, 12, 13]),
        (POWER9, 8, "smt", [8, 9, 10, 11, 12, 13, 14, 15]),
        (POWER8, 2, "spread+fill", [*range(16, 24), *range(40, 48)]),
        (POWER8, 1, "fill:4", [16, 17, 18, 19]),
    ],
)
def test_hardware_threads(description, threads, bind, expected):
    assert cpus(description, threads=(threads,), bind=(bind,)) == [expected]
    # One of a core's two threads may be used.
    assert cpus(XEON, "2,3,19", threads=(2,), bind=("fill",)) == [[2, 3, 19]]


def test_several_placements_each_once():
    binds = ("close", "smt:2", "spread", "close+interleave", "spread+smt:2")
    actual = placements(Where(threads=(2,), bind=binds), machine(XEON))
    assert {one.name: (list(one.cpus), one.memory.reported, one.also) for one in actual} == {
        "close": ([2, 3], "default", ()),
        "close+interleave": ([2, 3], "interleave:0-3", ()),
        # One core with both of its hardware threads is the same by any way to choose cores.
        "smt:2": ([3, 19], "default", ("spread+smt:2",)),
        "spread": ([3, 11], "default", ()),
    }
    lists = placements(Where(cpus=("0,4", "1"), bind=("first-touch", "interleave")), machine(XEON))
    assert [one.name for one in lists] == [
        f"cpus:{cpus}-{memory}" for cpus in ("0,4", "1") for memory in ("first-touch", "interleave")
    ]


@pytest.mark.parametrize(
    ("policy", "reported", "nodes"),
    [
        ("first-touch", "default", (0, 2)),
        ("local", "local", (0, 2)),
        ("membind", "bind:0,2", (0, 2)),
        ("membind:1,3", "bind:1,3", (1, 3)),
        ("interleave", "interleave:0-3", (0, 1, 2, 3)),
        ("interleave:2-3", "interleave:2-3", (2, 3)),
    ],
)
def test_policies_of_memory(policy, reported, nodes):
    (actual,) = placements(Where(threads=(2,), bind=(f"spread+{policy}",)), machine(XEON))
    assert (actual.memory.reported, actual.nodes) == (reported, nodes)


def test_openmp_gets_the_cpu_of_each_thread():
    (actual,) = placements(Where(cpus=("8,0-1",)), machine(XEON))
    expected = {"OMP_NUM_THREADS": "3", "OMP_PROC_BIND": "close", "OMP_PLACES": "{8},{0},{1}"}
    assert (actual.environment, actual.cpus) == (expected, (8, 0, 1))
    (anywhere,) = placements(Where(bind=("membind:1",)), machine(XEON, "0-7"))
    assert (anywhere.environment, anywhere.cpus) == ({}, tuple(range(8)))


@pytest.mark.parametrize(
    ("of", "requested", "where", "remedy"),
    [
        ((XEON,), {"threads": (17,)}, "--threads", "--threads 16|--bind smt|32"),
        ((XEON,), {"threads": (33,), "bind": ("smt",)}, "--threads", "--threads 32"),
        ((XEON, "0-1"), {"threads": (3,)}, "--threads", "--threads 2"),
        ((XEON, "0-1"), {"threads": (3,), "bind": ("fill",)}, "--threads", "--threads 2"),
        ((A64FX,), {"threads": (2,), "bind": ("smt",)}, "--bind smt", "smt"),
        ((XEON,), {"threads": (2,), "bind": ("smt:4",)}, "--bind smt:4", "2"),
        ((XEON,), {"threads": (2,), "bind": ("scater",)}, "--bind scater", "spread|smt:N|membind"),
        ((XEON,), {"threads": (2,), "bind": ("close+spread",)}, "--bind close+spread", "close"),
        ((XEON,), {"cpus": ("40",)}, "--cpus 40", "0-31"),
        ((XEON, "0-3"), {"cpus": ("2-5",)}, "--cpus 2-5", "0-3"),
        ((XEON,), {"cpus": ("2,2",)}, "--cpus", "0-3,8"),
        ((XEON,), {"cpus": ("3-",)}, "--cpus", "0-3,8"),
        ((XEON,), {"threads": (3,), "cpus": ("0-1",)}, "--threads, --cpus 0-1", "--threads"),
        ((XEON,), {"cpus": ("0",), "bind": ("spread",)}, "--cpus 0, --bind spread", "--cpus"),
        ((XEON,), {"bind": ("spread",)}, "--bind spread", "--threads N"),
        ((XEON,), {"bind": ("first-thread",)}, "--bind first-thread", "--threads N"),
        ((XEON,), {"threads": (2,), "bind": ("membind:7",)}, "--bind membind:7", "0-3"),
        ((XEON,), {"threads": (2,), "bind": ("membind:0-",)}, "--bind", "0-3,8"),
        ((XEON,), {"threads": (2,), "bind": ("first-thread:0",)}, "--bind", "membind:0"),
        ((EPYC,), {"threads": (2,), "bind": ("interleave",)}, "--bind interleave", "interleave:0"),
        ((XEON,), {"ranks": (2,), "bind": ("first-thread",)}, "--ranks 2, --bind first-thread", "process"),
        ((XEON,), {"ranks": (2,), "bind": ("fill",)}, "--ranks 2, --bind fill", "process"),
    ],
)
def test_an_impossible_placement_is_refused_with_its_option(of, requested, where, remedy):
    with pytest.raises(SelectionError) as caught:
        placements(Where(**requested), machine(*of))
    assert caught.value.where == where
    assert all(named in (caught.value.remedy or "") for named in remedy.split("|"))


def test_numbers_in_lists_and_bitmaps():
    assert bitmap("0x00000001,,0x80000002") == {64, 31, 1}
    assert list_text({7, 0, 1, 2}) == "0-2,7" and numa.parse_list("8,0-2", "") == [8, 0, 1, 2]


def test_this_machine_matches_the_kernels_report():
    here = this_machine()
    every = {cpu for core in read_topology().cores for cpu in core.cpus}
    assert here.allowed == os.sched_getaffinity(0) <= every
    assert set(here.nodes) <= {node.number for node in read_topology().nodes}


@pytest.mark.parametrize("policy", ["default", "local", "bind:0", "interleave:0"])
def test_a_process_has_the_cpus_and_the_policy_it_was_started_with(policy: str):
    """According to the kernel, for the process and its children; afterwards everything is restored."""
    last = max(os.sched_getaffinity(0))
    before = (os.sched_getaffinity(0), numa.policy_of(os.getpid()))
    name = {"default": "first-touch", "bind:0": "membind:0"}.get(policy, policy)
    (placed,) = placements(Where(cpus=(str(last),), bind=(name,)))
    with placed.bind():
        command = [sys.executable, "-c", _CHILD]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    reported = observed_placement(process.pid)
    child, _ = process.communicate(b"\n")
    assert reported == ProcessPlacement((last,), policy)
    assert child.decode().split() == [str(last), policy]
    assert (os.sched_getaffinity(0), numa.policy_of(os.getpid())) == before
    assert observed_placement(process.pid) == ProcessPlacement(None, None)


_CHILD = """
import os, subprocess
input()
print(*os.sched_getaffinity(0), flush=True)
subprocess.run(["awk", "{print $2; exit}", "/proc/self/numa_maps"])
"""


def test_a_policy_that_the_kernel_refuses():
    barred = numa.MemoryPolicy("bind:900", "bind:900", 2, (900,))
    with pytest.raises(RefusedError), barred.apply_policy():
        pass


def test_a_policy_of_pagewise_is_passed_on():
    """Under numactl, or a batch system's, what was not asked for otherwise is kept and reported."""
    bound = numa.MemoryPolicy("interleave:0", "interleave:0", 3, (0,))
    with bound.apply_policy():
        (kept,) = placements(Where(threads=(1,)))
        (own,) = placements(Where(threads=(1,), bind=("first-touch",)))
        assert kept.memory == numa.MemoryPolicy("interleave:0", "interleave:0")
        with own.bind():
            assert numa.policy_of(os.getpid()) == "default"
        assert numa.policy_of(os.getpid()) == "interleave:0"
    assert placements(Where(threads=(1,)))[0].memory.name == "first-touch"


@pytest.mark.parametrize(
    ("cpus", "memory", "ran_on", "ended_on", "named"),
    [
        ([1, 0], "default", [0, 1], [0, 1], None),
        (None, None, [1], [1], None),
        ([0, 1, 2], "default", [0, 1], [0, 1], "0-2"),
        ([0, 1], "bind:1", [0, 1], [0, 1], "bind:1"),
        ([0, 1], "default", [0, 3], [0, 1], "3"),
        ([0, 1], "default", [1, 1], [1, 1], "1"),
        ([0, 1], "default", [0, 1], [0, 3], "3"),
    ],
)
def test_a_run_with_another_placement_is_excluded(cpus, memory, ran_on, ended_on, named):
    bound = Placement(2, (0, 1)).binding(ProcessPlacement(cpus and tuple(cpus), memory))
    place = {"threads": len(ran_on), "cpus": ran_on, "cpus_at_end": ended_on}
    made = varied(record(configuration(), 1.0), "placement", **place)
    fault = exclusion(varied(made, "run", bound=to_data(bound)))
    assert fault is None if named is None else fault.code == "wrong_placement"
    assert fault is None or named in re.split(r"[\s,]+", fault.reason)


@pytest.mark.parametrize(
    # What a record reports of the end of its timed part; whether a thread migrated, and left its NUMA node.
    ("end", "migrated", "left"),
    [
        ({}, 0, 0),
        ({"cpus_at_end": [0], "numa_nodes_at_end": [0], "migrated": 0}, 0, 0),
        ({"cpus_at_end": [1], "numa_nodes_at_end": [0], "migrated": 1}, 1, 0),
        ({"cpus_at_end": [0], "numa_nodes_at_end": [0], "migrated": 1}, 1, 0),
        ({"cpus_at_end": [9], "numa_nodes_at_end": [1], "migrated": 1}, 1, 1),
    ],
)
def test_migrated_runs_are_counted_by_configuration(end: dict, migrated: int, left: int):
    records = [record(one, 1.0, number=number) for one in (BASE, THP) for number in (1, 2, 3)]
    records = [varied(one, "placement", **end) if one.run.module == THP.module else one for one in records]
    actual = analyse([subject_of(kernel(), BASE, THP)], records, seed=1)
    rows = {row.module: (row.migrated_runs, row.left_node_runs) for row in configurations(actual)}
    assert rows == {BASE.module: (0, 0), THP.module: (3 * migrated, 3 * left)}
    assert len(list(notes_of(actual))) == migrated
    assert len(noise_table(actual[0]).rows) == migrated


def test_without_hwloc_or_its_topology(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    read_topology.cache_clear()
    with pytest.raises(SetupError) as caught:
        read_topology()
    assert caught.value.where == "PATH" and "apt-get install hwloc" in (caught.value.remedy or "")
    write_script(tmp_path / "lstopo-no-graphics", "#!/bin/sh\necho no topology\n")
    with pytest.raises(SetupError) as caught:
        read_topology()
    assert "lstopo-no-graphics" in (caught.value.where or "")


def test_numbers_of_threads_and_of_ranks_are_placements():
    actual = placements(Where(threads=(1, 2), bind=("first-thread", "first-touch")), machine(XEON))
    assert {one.name: (one.threads, one.memory.reported, one.cores) for one in actual} == {
        "threads:1-first-thread": (1, "prefer:0", 1),
        "threads:1-first-touch": (1, "default", 1),
        "threads:2-first-thread": (2, "prefer:0", 2),
        "threads:2-first-touch": (2, "default", 2),
    }
    ranks = placements(Where(threads=(2,), ranks=(1, 2), bind=("close", "smt:2")), machine(XEON))
    assert {one.name: (one.ranks, one.threads, one.cores) for one in ranks} == {
        "ranks:1-close": (1, 2, 2),
        "ranks:1-smt:2": (1, 2, 1),
        "ranks:2-close": (2, 2, 4),
        "ranks:2-smt:2": (2, 2, 2),
    }
    planned = actual[1].planned_placement()
    assert (planned.order, planned.cores, planned.policy) == ("close", 1, "first-touch")
    groups = placements(Where(threads=(12, 24, 36, 48)), machine(A64FX))
    assert [len({cpu // 12 for cpu in one.cpus}) for one in groups] == [1, 2, 3, 4]
    # Memory of the first thread is on its node.
    (far,) = placements(Where(cpus=("8,0",), bind=("first-thread",)), machine(XEON))
    assert far.memory.reported == f"prefer:{machine(XEON).topology.nodes_of((8,))[0]}"
