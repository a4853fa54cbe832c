"""How much memory a run can have, and kernels made to fit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rich.console import Console

from builders import chase, kernel
from fake_root import tree
from pagewise.core.errors import RefusedError, SetupError
from pagewise.core.kernel import Kernel, read_source
from pagewise.core.structure import document
from pagewise.machine import memory, numa
from pagewise.machine.memory import available, available_on, fit_kernel
from pagewise.machine.placement import Placement
from pagewise.session.options import PagesToPrepare
from pagewise.stack.catalog import read_catalog
from pagewise.stack.lmod import find_init
from pagewise.workloads.kernels.choose import choose, fit, room_for
from pagewise.workloads.kernels.sizes import default_values, with_sizes
from pagewise.workloads.kernels.workload import prepare
from scripts import write_script
from stage import CHASE, ROOT, TRIAD, Stage
from test_choice import options

MIB = 1 << 20


GROUP, OLD_GROUP = "sys/fs/cgroup/batch", "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({}, 1024),
        # Of version 2: the group above has a limit, and what the kernel can drop is available.
        (
            {
                "proc/self/cgroup": "0::/batch/job",
                f"{GROUP}/memory.max": 300 * MIB,
                f"{GROUP}/memory.current": 250 * MIB,
                f"{GROUP}/memory.stat": f"anon 1\ninactive_file {20 * MIB}",
                f"{GROUP}/job/memory.max": "max",
                f"{GROUP}/job/memory.current": 5,
            },
            70,
        ),
        # Of version 1: the group has used more than its limit.
        (
            {
                "proc/self/cgroup": "5:cpu:/x\n4:memory:/job\n0::/",
                f"{OLD_GROUP}/job/memory.limit_in_bytes": 64 * MIB,
                f"{OLD_GROUP}/job/memory.usage_in_bytes": 65 * MIB,
                f"{OLD_GROUP}/memory.limit_in_bytes": 9223372036854771712,
                f"{OLD_GROUP}/memory.usage_in_bytes": 1,
            },
            0,
        ),
    ],
)
def test_available_is_the_kernels_estimate_within_control_groups(
    tmp_path: Path, files: dict[str, object], left: int
):
    assert available(tree(tmp_path, {"proc/meminfo": "MemAvailable: 1048576 kB", **files})) == left * MIB
    assert available(tmp_path / "nothing") is None


def test_nodes_have_free_and_reclaimable_memory(tmp_path: Path):
    for number, free in ((0, 2560), (1, 512)):
        values = {"MemFree": free, "Active(anon)": 7, "Active(file)": 1024, "Inactive(file)": 512}
        text = "".join(f"Node {number} {name}: {value:>14} kB\n" for name, value in values.items())
        tree(tmp_path, {f"sys/devices/system/node/node{number}/meminfo": text})
    assert available_on((0,), tmp_path) == 4 * MIB
    assert available_on((0, 1), tmp_path) == 6 * MIB
    assert available_on((0, 7), tmp_path) is None


def test_memory_that_is_bound_matches_its_nodes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "available", lambda: 100 * MIB)
    monkeypatch.setattr(memory, "available_on", lambda nodes: {(0,): 60 * MIB, (1,): None}[nodes])
    policies = (
        numa.parse_policy(text, (0,), (0, 1), (0, 1)) for text in ("membind:0", "interleave", "membind:1")
    )
    placed = [Placement(1, (0,), memory=policy) for policy in policies]
    assert room_for(placed) == 60 * MIB
    assert room_for(placed[1:]) == 100 * MIB


@pytest.mark.parametrize(("room", "taken"), [(None, 64), (84, 64), (83, 32), (42, 32), (41, 16), (21, 16)])
def test_a_kernel_is_halved_until_it_fits(room: int | None, taken: int):
    one, reported = fit_kernel(kernel(), None if room is None else room * MIB)
    size = f"{taken * 1024}KiB" if taken < 64 else "64MiB"
    assert one.arguments == ("--working-set", size, "--repetitions", "5")
    assert one.sweeps[0].arguments[-1] == size
    assert (reported is None) == (taken == 64) and (reported is None or reported.taken_bytes == taken * MIB)


def test_less_than_a_quarter_is_refused():
    with pytest.raises(RefusedError, match=chase().name) as fault:
        fit_kernel(chase(), 20 * MIB)
    assert "--kernels" in fault.value.remedy and "20 MiB" in fault.value.where
    unsized = kernel(CHASE, compare={"arguments": ["--block", "1GiB"]})
    assert fit_kernel(unsized, 1) == (unsized, None)


def test_a_default_size_suits_the_cpus_of_all_placements(small: Stage):
    cpus = tuple(sorted(os.sched_getaffinity(0))[:2])
    unsized = {**TRIAD, "name": "other", "executable": "pw-other"}
    unsized["compare"] = {"arguments": ["--repetitions", "3"]}
    unsized["sweeps"] = [{**TRIAD["sweeps"][0], "arguments": ["--sweep", "working-set"]}]
    small.add("gcc-12.2.0", ("none", "block", "regular"), [TRIAD, unsized])
    catalog = read_catalog(small.modules, find_init(None))
    selection = options(modules=small.modules, kernels=("*r*",), baseline="none/block-regular")
    requested = choose(catalog, selection)
    places = [Placement(1, (cpu,)) for cpu in cpus]
    subjects = {one.benchmark.name: one.benchmark for one in with_sizes(requested, catalog, places)}
    size = f"{64 * len(cpus)}MiB"
    assert subjects["other"].arguments == ("--repetitions", "3", "--working-set", size)
    assert subjects["other"].sweeps[0].arguments == ("--sweep", "working-set", "--working-set", size)
    assert subjects["triad"].arguments == ("--working-set", "64MiB", "--repetitions", "5")


@pytest.mark.parametrize(
    "description", sorted(ROOT.glob("kernels/micro/*/kernel.yaml")), ids=lambda file: file.parent.name
)
def test_kernels_that_measure_memory_have_no_fixed_size(description: Path):
    in_cache = ("alignment", "zaxpy")
    kernel = document(Kernel, read_source(description)).benchmark
    if kernel.group in ("memory", "grid", "indirect", "latency", "sparse") and kernel.name not in in_cache:
        arguments = {word for part in (kernel, *kernel.sweeps) for word in part.arguments}
        assert not arguments & set(memory.SIZES)


def test_a_program_that_does_not_list_its_options_is_an_error(tmp_path: Path):
    for text in ("exit 1", "echo no JSON", "echo '[{}]'"):
        program = write_script(tmp_path / "program", f"#!/bin/sh\n{text}\n")
        with pytest.raises(SetupError):
            default_values(str(program), {}, tuple(os.sched_getaffinity(0)))
    program.write_text("#!/bin/sh\necho '[]'\n")
    assert "working-set" not in default_values(str(program), {}, tuple(os.sched_getaffinity(0)))


@pytest.mark.long
def test_a_pool_takes_the_same_amount_in_addition(small: Stage, monkeypatch: pytest.MonkeyPatch):
    small.add("gcc-12.2.0", ("hugetlbfs", "hardware", "regular"), [TRIAD])
    monkeypatch.setenv("PAGEWISE_ROOT", str(small.folder))
    monkeypatch.setattr(memory, "available", lambda: 100 * MIB)
    requested = options(modules=small.modules, kernels=("triad",), results=small.results)
    console = Console(record=True, quiet=False, file=Path("/dev/null").open("w"))  # noqa: SIM115
    comparison = prepare(requested, console)
    assert comparison.manifest.scaled == ()
    [scaled] = fit(comparison.workload.subjects, options(prepare=PagesToPrepare()), 100 * MIB)[1]
    assert scaled.taken_bytes == 32 * MIB
    monkeypatch.setattr(memory, "available", lambda: 50 * MIB)
    comparison = prepare(requested, console)
    assert [one.taken_bytes for one in comparison.manifest.scaled] == [32 * MIB]
    printed = console.export_text()
    assert "32 MiB" in printed and "64 MiB" in printed
    assert comparison.workload.subjects[0].benchmark.arguments[1] == "32768KiB"
