"""Results with random changes: every command reads or refuses them, and reads their neighbours.

PAGEWISE_TEST_FUZZ=600 makes random changes for that many seconds; without it they are a few, always the same.
PAGEWISE_TEST_FUZZ_RESULTS names a folder with further results to change.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).with_name("faults")))

from fault import Place, query

from builders import a_manifest, chase, configuration, record_data, subject_of
from fuzz import COMMANDS, check, fuzzed, read_all
from pagewise.core.errors import FormatError
from pagewise.core.manifest_parts import SimulationPart
from pagewise.core.record import Record
from pagewise.core.result import read_result
from pagewise.core.structure import from_data, to_data
from pagewise.report.views import report_of
from pagewise.workloads.simulation.figures import simulated_record
from pagewise.workloads.simulation.geometry import find_geometry
from stage import result_content, write_result

SECONDS = float(os.environ.get("PAGEWISE_TEST_FUZZ", "0"))
FEWEST = 5
FURTHER = os.environ.get("PAGEWISE_TEST_FUZZ_RESULTS")


def simulation(folder: Path) -> None:
    """A result of a simulation under two policies."""
    first = configuration(label=("none", "hardware", "regular"), module="none")
    policies = (first, replace(first, hugepages="fjmpg", module="fjmpg"))
    records = []
    for policy, misses in zip(policies, (4, 1), strict=True):
        counts = {"INSTRUCTIONS": 1000, "LOADS": 300, "L1D_TLB_REFILL": misses, "L1D_CACHE": 400}
        about = {"geometry": "a64fx", "pages": "observed", "whole": False, "counts": counts}
        about["regions"] = [{"name": "hydro", "calls": 1, "counts": counts}]
        made = from_data(Record, record_data(policy, 1.0, kernel="chase", series="simulate"))
        records.append(to_data(simulated_record(made, about, "qemu 7.2")))
    part = SimulationPart(to_data(find_geometry("a64fx")), "qemu 7.2", 5)
    planned = {"configurations": policies, "subjects": (subject_of(chase(), *policies).planned_subject(),)}
    write_result(folder, to_data(a_manifest(kind="simulation", simulation=part, **planned)), records)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, template: Path) -> list[Path]:
    """Results of several kinds, and those of the user's folder."""
    folder = tmp_path_factory.mktemp("fuzz")
    simulation(folder / "simulation")
    write_result(folder / "kernels", *result_content(template))
    return sorted([*folder.iterdir(), *(Path(FURTHER).iterdir() if FURTHER else ())])


def survives(results: list[Path], folder: Path, seed: str, commands: int) -> None:
    source = random.Random(seed)
    (folder / "modules").mkdir(parents=True, exist_ok=True)
    place = Place(folder, folder / "modules", folder / "results/bad")
    shutil.rmtree(place.results, ignore_errors=True)
    result = source.choice(results)
    shutil.copytree(result, place.good)
    fuzzed(result, place.bad, source)
    try:
        for ended in (*read_all(place, source.sample(COMMANDS, commands)), query(place)):
            check(ended)
        listed = place.run("results", "list", str(place.results), "--json")
        (good,) = (row for row in listed.data()["results"] if row["folder"] == str(place.good))
        assert listed.code == 0 and "fault" not in good and good["records"] > 0
    except BaseException:
        print(f"{result.name}, seed {seed}: {place.bad}")
        raise


PROGRAM = {"command": ["x"], "path": "x", "sha256": None, "policies": [], "metrics": [], "checks": []}
RECORD, MANIFEST = "records.jsonl", "manifest.json"
KERNEL = ("subjects", 0, "kernel")
CHANGES = [
    (RECORD, ("run", "started"), ""),
    (RECORD, ("run", "started"), "2026-02-30T00:00:00Z"),
    (RECORD, ("run", "pages"), "thp:4q"),
    (RECORD, ("configuration", "hugepages"), ":"),
    (RECORD, ("configuration", "stores"), ""),
    (MANIFEST, ("subjects", 0, "cells", 0, "pages"), "thp:4q"),
    (MANIFEST, ("subjects", 0, "cells", 0, "measured"), "nowhere"),
    (MANIFEST, ("configurations", 0, "prefetch"), ""),
    (MANIFEST, ("configurations", 0, "hugepages"), "none:"),
    (MANIFEST, (*KERNEL, "traffic"), {"stores": 1}),
    (MANIFEST, KERNEL, {}),
    (MANIFEST, (*KERNEL, "name"), []),
    (MANIFEST, ("programs",), {"x": {**PROGRAM, "memory_budget": "x"}}),
    (MANIFEST, ("programs",), {"x": {**PROGRAM, "policies": [1]}}),
    (MANIFEST, ("host",), "h"),
    (MANIFEST, ("host", "caches"), {"level": "x"}),
    (MANIFEST, ("host", "pools"), [{"page_bytes": "2M"}]),
    (MANIFEST, ("host", "pools"), [{"page_bytes": 0, "total": 1, "free": 1}]),
    (MANIFEST, ("host", "pools"), [{"page_bytes": 4096, "total": 1, "free": "x"}]),
    (MANIFEST, ("host", "numa_nodes"), 7),
    (MANIFEST, ("host", "smt"), []),
    (MANIFEST, ("host", "khugepaged"), {"x": 10**17 + 0.5}),
    (MANIFEST, ("rounds",), 2**31),
    (MANIFEST, ("placements", 0, "threads"), 1.0),
    (MANIFEST, ("created",), "2026-99-99T99:99:99Z"),
]


@pytest.mark.parametrize(("file", "path", "value"), CHANGES)
def test_assumptions_of_later_code_are_checked(results: list[Path], tmp_path: Path, file, path, value):
    """A bad record is excluded with its reason, a bad manifest refused."""
    manifest, lines = result_content(next(result for result in results if result.name == "kernels"))
    *parents, last = path
    place = manifest if file == MANIFEST else lines[1]
    for name in parents:
        place = place[name]
    place[last] = value
    write_result(tmp_path, manifest, lines)
    if file == MANIFEST:
        with pytest.raises(FormatError):
            read_result(tmp_path)
        return
    result = read_result(tmp_path)
    assert [skipped.line for skipped in result.skipped] == [2] and len(result.records) == len(lines) - 1
    assert report_of(result).tables


def test_a_simulation_of_several_programs_is_refused(results: list[Path], tmp_path: Path):
    manifest, lines = result_content(next(result for result in results if result.name == "simulation"))
    write_result(tmp_path, manifest | {"subjects": manifest["subjects"] * 2}, lines)
    with pytest.raises(FormatError):
        read_result(tmp_path)


@pytest.mark.long
def test_every_command_reads_or_refuses_changed_results(results: list[Path], tmp_path: Path):
    end, start = time.monotonic() + SECONDS, time.time_ns() if SECONDS else "seed"
    for number in itertools.count():
        survives(results, tmp_path, f"{start} {number}", commands=4)
        if number >= FEWEST and time.monotonic() > end:
            return
