"""Placements: CPUs chosen on machines that hwloc makes up, and what a process bound so really has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from builders import configuration, kernel, record, subject_of, varied
from pagewise.analysis.analysis import analyse
from pagewise.analysis.validity import exclusion
from pagewise.core.cpus import cpu_list, list_text
from pagewise.core.errors import RefusedError, SelectionError, SetupError
from pagewise.core.record_parts import ProcessPlacement
from pagewise.core.structure import unstructured
from pagewise.core.suggestions import choose_of
from pagewise.machine import numa
from pagewise.machine.placement import (
    ORDERS,
    AvailableMachine,
    Placement,
    Where,
    observed_placement,
    placements,
    this_machine,
)
from pagewise.machine.topology import bitmap, parse, read_topology
from pagewise.report.views.data import configurations
from pagewise.report.views.kernels import notes_of
from pagewise.report.views.wording import noise_sentences

# 2 packages of 2 NUMA nodes, 4 cores each, SMT2 with siblings numbered n and n+16 as on x86.
XEON = "pack:2 numa:2 core:4 pu:2(indexes=core)"
# The same, siblings beside each other.
PAIRS = "pack:2 numa:2 core:4 pu:2"
# POWER9 and POWER8: SMT4 and SMT8, siblings beside each other.
POWER9 = "pack:2 numa:1 core:4 pu:4"
POWER8 = "pack:2 numa:1 core:3 pu:8"
# A64FX: four core memory groups of 12 cores.
A64FX = "pack:1 numa:4 l2:1 core:12 pu:1"
# EPYC: one NUMA node, four third-level caches of 3 cores.
EPYC = "pack:1 l3:4 core:3 pu:1"


@cache
def topology(description: str) -> str:
    command = ["lstopo-no-graphics", "-i", description, "--of", "xml"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def machine(description: str, allowed: str | None = None) -> AvailableMachine:
    found = parse(topology(description))
    every = frozenset(cpu for core in found.cores() for cpu in core.cpus)
    may = every if allowed is None else frozenset(cpu_list(allowed))
    return AvailableMachine(found, may, every, tuple(node.number for node in found.nodes))


def cpus(description: str, allowed: str | None, threads: int | None, **where: object) -> list[list[int]]:
    asked = Where(**{name: value if name == "cores" else tuple(value) for name, value in where.items()})
    return [list(one.cpus) for one in placements(threads, asked, machine(description, allowed))]


@pytest.mark.parametrize(
    ("description", "allowed", "threads", "compact", "scatter"),
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
        (A64FX, None, 4, [8, 9, 10, 11], [11, 23, 35, 47]),
        (A64FX, "12-35", 13, [23, *range(24, 36)], [*range(17, 24), *range(30, 36)]),
        (EPYC, None, 2, [10, 11], [8, 11]),
        (EPYC, None, 4, [8, 9, 10, 11], [2, 5, 8, 11]),
        (EPYC, "0-2,4-9,11", 3, [6, 7, 8], [5, 8, 11]),
    ],
)
def test_threads_near_to_each_other_and_far_apart(description, allowed, threads, compact, scatter):
    found = cpus(description, allowed, threads, orders=("compact",))
    assert found == [compact]
    assert cpus(description, allowed, threads, orders=("scatter",)) == [scatter]


@pytest.mark.parametrize(
    ("description", "allowed", "asked", "expected"),
    [
        # The same threads on half of the cores.
        (XEON, None, {"threads": 4, "smt": [0]}, [2, 18, 3, 19]),
        (XEON, None, {"threads": 4, "smt": [0], "orders": ["scatter"]}, [3, 19, 11, 27]),
        (XEON, None, {"threads": 3, "smt": [2]}, [2, 18, 3]),
        # The same cores with twice the threads.
        (XEON, None, {"threads": None, "cores": 2}, [2, 3]),
        (XEON, None, {"threads": None, "cores": 2, "smt": [0]}, [2, 18, 3, 19]),
        (XEON, "2,3,19", {"threads": None, "cores": 2, "smt": [0]}, [2, 3, 19]),
        (POWER9, None, {"threads": 8, "smt": [2]}, [0, 1, 4, 5, 8, 9, 12, 13]),
        (POWER9, None, {"threads": 8, "smt": [0]}, [8, 9, 10, 11, 12, 13, 14, 15]),
        (
            POWER8,
            None,
            {"threads": None, "cores": 2, "smt": [8], "orders": ["scatter"]},
            [*range(16, 24), *range(40, 48)],
        ),
        (POWER8, None, {"threads": None, "cores": 1, "smt": [4]}, [16, 17, 18, 19]),
        # A list is taken as it is written.
        (XEON, None, {"threads": None, "lists": ["8,0-1"]}, [8, 0, 1]),
    ],
)
def test_hardware_threads_and_lists(description, allowed, asked, expected):
    assert cpus(description, allowed, **asked) == [expected]


def test_several_placements_each_once():
    where = Where(("compact", "scatter"), (1, 2), None, ("0,4",), ("first-touch", "interleave"))
    found = placements(2, where, machine(XEON))
    assert {one.name: (list(one.cpus), one.memory.reported) for one in found} == {
        "compact-first-touch": ([2, 3], "default"),
        "compact-interleave": ([2, 3], "interleave:0-3"),
        "compact-smt2-first-touch": ([3, 19], "default"),
        "compact-smt2-interleave": ([3, 19], "interleave:0-3"),
        "scatter-first-touch": ([3, 11], "default"),
        "scatter-interleave": ([3, 11], "interleave:0-3"),
        "cpus:0,4-first-touch": ([0, 4], "default"),
        "cpus:0,4-interleave": ([0, 4], "interleave:0-3"),
    }
    # One core with both of its hardware threads is the same by any way to choose cores.
    assert [one.also for one in found if "smt2" in one.name] == [
        ("scatter-smt2-first-touch",),
        ("scatter-smt2-interleave",),
    ]


@pytest.mark.parametrize(
    ("policy", "reported", "nodes"),
    [
        ("first-touch", "default", (0, 2)),
        ("local", "local", (0, 2)),
        ("bind", "bind:0,2", (0, 2)),
        ("bind:1,3", "bind:1,3", (1, 3)),
        ("interleave", "interleave:0-3", (0, 1, 2, 3)),
        ("interleave:2-3", "interleave:2-3", (2, 3)),
    ],
)
def test_policies_of_memory(policy, reported, nodes):
    (found,) = placements(2, Where(("scatter",), memory=(policy,)), machine(XEON))
    assert (found.memory.reported, found.nodes) == (reported, nodes)


def test_openmp_gets_the_cpu_of_each_thread():
    (found,) = placements(2, Where(lists=("8,0",)), machine(XEON))
    assert found.environment == {
        "OMP_NUM_THREADS": "2",
        "OMP_PROC_BIND": "close",
        "OMP_PLACES": "{8},{0}",
    }
    (anywhere,) = placements(None, Where(memory=("bind:1",)), machine(XEON, "0-7"))
    assert (anywhere.environment, anywhere.cpus) == ({}, tuple(range(8)))


@pytest.mark.parametrize(
    ("of", "threads", "requested", "where", "remedy"),
    [
        ((XEON,), 17, Where(), "--threads", "--threads 16|--smt use|32"),
        ((XEON,), 33, Where(smt=(0,)), "--threads", "--threads 32"),
        ((XEON, "0-1"), 3, Where(), "--threads", "--threads 2"),
        ((XEON, "0-1"), None, Where(cores=3), "--cores", "--cores 2"),
        ((A64FX,), 2, Where(smt=(0,)), "--smt", "--smt avoid"),
        ((XEON,), 2, Where(smt=(4,)), "--smt 4", "--smt use|2"),
        ((XEON,), None, Where(lists=("40",)), "--cpus 40", "0-31"),
        ((XEON, "0-3"), None, Where(lists=("2-5",)), "--cpus 2-5", "0-3"),
        ((XEON,), None, Where(lists=("2,2",)), "--cpus", "0-3,8"),
        ((XEON,), None, Where(lists=("3-",)), "--cpus", "0-3,8"),
        ((XEON,), None, Where(lists=("",)), "--cpus", "0-3,8"),
        ((XEON,), 3, Where(lists=("0-1",)), "--threads, --cpus 0-1", "--threads"),
        ((XEON,), 3, Where(cores=2), "--threads and --cores", "--cpus"),
        ((XEON,), None, Where(lists=("0",), cores=2), "--cpus and --cores", "--cpus"),
        ((XEON,), None, Where(lists=("0",), smt=(2,)), "--cpus and --smt", "--cpus"),
        ((XEON,), None, Where(("scatter",)), "--placement, --smt", "--threads N|--cores N"),
        ((XEON,), 2, Where(memory=("bind:7",)), "--memory bind:7", "0-3"),
        ((XEON,), 2, Where(memory=("bind:0-",)), "--memory", "0-3,8"),
        ((XEON,), 2, Where(memory=("near",)), "--memory", "first-touch|first-thread|local|bind"),
        ((EPYC,), 2, Where(memory=("interleave",)), "--memory interleave", "interleave:0"),
    ],
)
def test_an_impossible_placement_is_refused_with_its_option(of, threads, requested, where, remedy):
    with pytest.raises(SelectionError) as caught:
        placements(threads, requested, machine(*of))
    assert caught.value.where == where
    assert all(named in (caught.value.remedy or "") for named in remedy.split("|"))


def test_words_of_the_command_line():
    with pytest.raises(SelectionError) as caught:
        placements(1, Where(orders=("scater",)))
    assert (caught.value.where, caught.value.remedy) == ("--placement", choose_of("scater", ORDERS))


def test_numbers_in_lists_and_bitmaps():
    assert bitmap("0x00000001,,0x80000002") == {64, 31, 1}
    assert list_text({7, 0, 1, 2}) == "0-2,7" and numa.parse_list("8,0-2", "") == [8, 0, 1, 2]


def test_this_machine_is_what_the_kernel_says():
    here = this_machine()
    every = {cpu for core in read_topology().cores() for cpu in core.cpus}
    assert here.allowed == os.sched_getaffinity(0) <= every
    assert set(here.nodes) <= {node.number for node in read_topology().nodes}


@pytest.mark.parametrize("policy", ["default", "local", "bind:0", "interleave:0"])
def test_a_process_has_the_cpus_and_the_policy_it_was_started_with(policy: str):
    """According to the kernel, for the process and its children; afterwards everything is restored."""
    last = max(os.sched_getaffinity(0))
    before = (os.sched_getaffinity(0), numa.policy_of(os.getpid()))
    name = "first-touch" if policy == "default" else policy
    (placed,) = placements(None, Where(lists=(str(last),), memory=(name,)))
    with placed.bound():
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
    with pytest.raises(RefusedError), barred.applied():
        pass


def test_a_policy_of_ours_is_handed_on():
    """Under numactl, or a batch system's, what was not asked for otherwise is kept and reported."""
    bound = numa.MemoryPolicy("interleave:0", "interleave:0", 3, (0,))
    with bound.applied():
        (kept,) = placements(1)
        (own,) = placements(1, Where(memory=("first-touch",)))
        assert kept.memory == numa.MemoryPolicy("interleave:0", "interleave:0")
        with own.bound():
            assert numa.policy_of(os.getpid()) == "default"
        assert numa.policy_of(os.getpid()) == "interleave:0"
    assert placements(1)[0].memory.name == "first-touch"


@pytest.mark.parametrize(
    ("cpus", "memory", "ran_on", "named"),
    [
        ([1, 0], "default", [0, 1], None),
        (None, None, [1], None),
        ([0, 1, 2], "default", [0, 1], "0-2"),
        ([0, 1], "bind:1", [0, 1], "bind:1"),
        ([0, 1], "default", [0, 3], "3"),
        ([0, 1], "default", [1, 1], "1"),
    ],
)
def test_a_run_with_another_placement_is_excluded(cpus, memory, ran_on, named):
    bound = Placement(2, (0, 1)).binding(ProcessPlacement(cpus and tuple(cpus), memory))
    made = varied(record(configuration(), 1.0), "placement", threads=len(ran_on), cpus=ran_on)
    fault = exclusion(varied(made, "run", bound=unstructured(bound)))
    assert fault is None if named is None else fault.code == "wrong_placement"
    assert fault is None or named in re.split(r"[\s,]+", fault.reason)


def test_a_thread_that_ends_elsewhere_is_excluded():
    bound = Placement(2, (0, 1)).binding(ProcessPlacement((0, 1), "default"))
    place = {"threads": 2, "cpus": [0, 1], "cpus_at_end": [0, 3], "migrated": 1}
    made = varied(
        varied(record(configuration(), 1.0), "placement", **place), "run", bound=unstructured(bound)
    )
    assert exclusion(made).code == "wrong_placement"
    stayed = varied(made, "placement", cpus_at_end=[0, 1], migrated=0)
    assert exclusion(stayed) is None


#: What a record reports of the end of its timed part; whether a thread migrated, and left its NUMA node.
ENDS = [
    ({}, 0, 0),
    ({"cpus_at_end": [0], "numa_nodes_at_end": [0], "migrated": 0}, 0, 0),
    ({"cpus_at_end": [1], "numa_nodes_at_end": [0], "migrated": 1}, 1, 0),
    ({"cpus_at_end": [0], "numa_nodes_at_end": [0], "migrated": 1}, 1, 0),
    ({"cpus_at_end": [9], "numa_nodes_at_end": [1], "migrated": 1}, 1, 1),
]


@pytest.mark.parametrize(("end", "migrated", "left"), ENDS)
def test_migrated_runs_are_counted_by_configuration(end: dict, migrated: int, left: int):
    base, thp = configuration(), configuration(label=("thp", "hardware", "regular"))
    records = [record(one, 1.0, number=number) for one in (base, thp) for number in (1, 2, 3)]
    records = [varied(one, "placement", **end) if one.run.module == thp.module else one for one in records]
    found = analyse([subject_of(kernel(), base, thp)], records, seed=1)
    rows = {row.module: (row.migrated_runs, row.left_node_runs) for row in configurations(found)}
    assert rows == {base.module: (0, 0), thp.module: (3 * migrated, 3 * left)}
    assert len(list(notes_of(found))) == migrated
    assert len(noise_sentences(kernel(), found[0].groups[0])) == migrated


def test_without_hwloc_or_its_topology(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    read_topology.cache_clear()
    with pytest.raises(SetupError) as caught:
        read_topology()
    assert caught.value.where == "PATH" and "apt-get install hwloc" in (caught.value.remedy or "")
    (tmp_path / "lstopo-no-graphics").write_text("#!/bin/sh\necho no topology\n")
    (tmp_path / "lstopo-no-graphics").chmod(0o755)
    with pytest.raises(SetupError) as caught:
        read_topology()
    assert "lstopo-no-graphics" in (caught.value.where or "")


def test_numbers_of_threads_and_of_ranks_are_placements():
    where = Where(threads=(1, 2), memory=("first-thread", "first-touch"))
    found = placements(None, where, machine(XEON))
    assert {one.name: (one.threads, one.memory.reported, one.cores) for one in found} == {
        "threads:1-first-thread": (1, "prefer:0", 1),
        "threads:1-first-touch": (1, "default", 1),
        "threads:2-first-thread": (2, "prefer:0", 2),
        "threads:2-first-touch": (2, "default", 2),
    }
    ranks = placements(2, Where(ranks=(1, 2), smt=(1, 2)), machine(XEON))
    assert {one.name: (one.ranks, one.threads, one.cores) for one in ranks} == {
        "ranks:1-compact": (1, 2, 2),
        "ranks:1-compact-smt2": (1, 2, 1),
        "ranks:2-compact": (2, 2, 4),
        "ranks:2-compact-smt2": (2, 2, 2),
    }
    planned = found[1].planned()
    assert (planned.order, planned.cores, planned.policy) == ("compact", 1, "first-touch")


def test_numbers_of_threads_fill_core_memory_groups_one_after_the_other():
    found = placements(None, Where(threads=(12, 24, 36, 48)), machine(A64FX))
    groups = [{cpu // 12: 12 for cpu in one.cpus} for one in found]
    assert [len(of) for of in groups] == [1, 2, 3, 4]
    assert [one.threads for one in found] == [sum(of.values()) for of in groups]


def test_memory_of_the_first_thread_is_on_its_node():
    (far,) = placements(None, Where(lists=("8,0",), memory=("first-thread",)), machine(XEON))
    assert far.memory.reported == f"prefer:{machine(XEON).topology.nodes_of((8,))[0]}"
    for wrong in (Where(ranks=(2,), memory=("first-thread",)), Where(threads=(1, 2), lists=("0",))):
        with pytest.raises(SelectionError):
            placements(None, wrong, machine(XEON))
    with pytest.raises(SelectionError):
        placements(1, Where(memory=("first-thread:0",)), machine(XEON))
