"""`pagewise where --fast`: a program that spends its time at known memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from builders import origin, simulated
from json_schema import faults
from pagewise.core.manifest_parts import SAMPLES, Simulated
from pagewise.core.result import read_result
from pagewise.workloads.simulation.measured import worth_measuring
from querying import invoked
from scripts import write_script
from simulator import compiled

SOURCE = Path(__file__).parent / "origins" / "sampled.c"
# A tick of the kernel is at most 10 ms.
SECONDS, FEWEST = 1.5, 40


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("sampled") / "sampled", "-g", "-pthread", SOURCE)


def sampling(build: Path, folder: Path, *words: object) -> Any:
    return invoked("where", "--fast", "--output", folder, "--build", build, "--json", *words)


Sample: TypeAlias = Callable[..., Simulated]


@pytest.fixture
def sampled(build: Path, tmp_path: Path) -> Sample:
    """A function that samples a command."""

    def simulated(*command: object) -> Simulated:
        done = sampling(build, tmp_path, "--", *command)
        assert done.return_value == 0, done.output
        reported = json.loads(done.stdout)
        assert faults("simulated", reported) == []
        (record,) = read_result(Path(reported["folder"])).records
        assert record.simulated is not None and record.simulated.sampled is not None
        return record.simulated

    return simulated


def share(result: Simulated, name: str) -> float:
    """The share of the samples at an origin."""
    (origin,) = [each for each in result.origins or () if each.name == name and each.kind == "allocation"]
    return origin.weight / result.counts[SAMPLES]


@pytest.mark.parametrize(
    ("mode", "processes", "computing"),
    [
        ((), 1, 1),
        (("moves",), 1, 1),
        (("reserves",), 1, 1),
        (("threads",), 1, 2),
        (("forks",), 3, 2),
        (("executes",), 3, 2),
    ],
)
def test_time_is_at_the_memory_that_the_program_waits_for(
    sampled: Sample, program: Path, mode: tuple[str, ...], processes: int, computing: int
):
    result = sampled(program, SECONDS, *mode)
    assert result.sampled is not None and result.sampled.processes == processes
    assert result.counts[SAMPLES] >= computing * FEWEST
    assert share(result, "slow") > 0.75
    origins = sum(origin.weight for origin in result.origins or ())
    assert origins + result.sampled.no_operand + result.sampled.in_kernel == result.counts[SAMPLES]
    (slow,) = [origin for origin in result.origins or () if origin.name == "slow"]
    assert slow.place is not None and slow.place.startswith("sampled.c:")
    assert slow.bytes >= computing << 26 and slow.allocations == computing


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="loads that replace their base: x86-64")
def test_the_time_of_a_program_that_is_not_optimised(sampled: Sample, tmp_path: Path):
    assert share(sampled(compiled(tmp_path / "plain", "-O0", "-pthread", SOURCE), SECONDS), "slow") > 0.6


def test_the_programs_of_a_script_are_sampled(sampled: Sample, program: Path, tmp_path: Path):
    script = write_script(tmp_path / "script", f"#!/bin/sh\n{program} {SECONDS}\n{program} {SECONDS}\n")
    result = sampled(script)
    assert share(result, "slow") > 0.75 and result.counts[SAMPLES] >= 2 * FEWEST
    assert result.sampled is not None and result.sampled.unseen < 0.1


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("static") / "static", "-static", "-pthread", SOURCE)


def test_the_time_of_programs_that_take_no_library_is_reported(
    sampled: Sample, program: Path, static: Path, tmp_path: Path
):
    script = write_script(tmp_path / "script", f"#!/bin/sh\n{program} {SECONDS}\n{static} {SECONDS}\n")
    result = sampled(script)
    assert result.sampled is not None and 0.35 < result.sampled.unseen < 0.6


def test_a_program_that_takes_no_library_is_refused(build: Path, tmp_path: Path, static: Path):
    assert sampling(build, tmp_path / "results", "--", static, "0.1").return_value == 1
    (folder,) = (tmp_path / "results").iterdir()
    (record,) = read_result(folder).records
    assert record.status == "failed" and record.failure is not None and record.failure.remedy is not None


def test_nothing_is_simulated(build: Path, tmp_path: Path, program: Path):
    done = sampling(build, tmp_path, "--geometry", "zen4", "--", program, "0.1")
    assert type(done.exception).__name__ == "UsageError" and not list(tmp_path.iterdir())


def test_origins_with_a_hundredth_of_the_samples_are_measured():
    origins = [origin(counts={SAMPLES: samples}) for samples in (9, 500, 10)]
    assert worth_measuring(simulated(counts={SAMPLES: 1000}), origins) == [2, 3]
