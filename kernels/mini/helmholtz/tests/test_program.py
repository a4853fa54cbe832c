"""pw-helmholtz: all modes and states, its record, and its failures."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

FINE, CHECK, USAGE, SYSTEM = 0, 1, 2, 4


class Program:
    """pw-helmholtz of one build, run in its own folder."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder = path, folder

    def attempt(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.path, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=120, check=False
        )

    def run(self, *arguments: str) -> dict[str, Any]:
        """The record of a run that must succeed."""
        record = self.folder / "record.jsonl"
        done = self.attempt(*arguments, "--repetitions", "2", "--record", str(record))
        assert done.returncode == FINE, done.stdout + done.stderr
        return json.loads(record.read_text(encoding="utf-8").splitlines()[-1])


@pytest.fixture
def program(in_build: Callable[[str], Path], tmp_path: Path) -> Program:
    return Program(in_build("pw-helmholtz"), tmp_path)


def test_the_region_of_the_record_is_the_timer(program: Program) -> None:
    result = program.run("--zones", "3000", "--threads", "2")
    (eos,) = result["regions"]
    assert (eos["path"], eos["calls"], eos["threads"]) == ("eos", 2 * 2, 2)
    for name in ("seconds", "seconds_mean_of_threads", "seconds_exclusive"):
        assert eos[name] == pytest.approx(sum(result["seconds"]["repetitions"]), rel=0.01)


@pytest.mark.parametrize("mode", ["rt", "re", "rp", "rs"])
@pytest.mark.parametrize("points", ["plane", "stellar", "rows"])
def test_every_mode_finds_the_states(program: Program, mode: str, points: str) -> None:
    for more in ((), ("--few",), ("--no-coulomb", "--guess", "none"), ("--row", "37", "--threads", "2")):
        result = program.run("--mode", mode, "--points", points, "--zones", "3000", *more)
        assert result["validation"]["passed"], result["validation"]
        assert result["metrics"]["evaluations_per_s"] > 0


def test_the_record_counts_zones_and_table(program: Program) -> None:
    result = program.run("--zones", "1000", "--row", "64", "--few")
    assert result["kernel"] == "helmholtz"
    assert result["sizes"]["elements"] == 1024, "whole rows"
    assert result["sizes"]["element_bytes"] == 8 * 28
    assert {array["name"] for array in result["pages"]["arrays"]} == {"zones", "eos table"}
    assert len(result["seconds"]["repetitions"]) == 2
    zone = 8 * (4 + 36 + 6) + 8 * 5
    assert result["traffic"]["bytes_stream"] == 1024 * zone


def test_separate_arrays_are_read_in_every_mode(program: Program) -> None:
    read = {"few": 36 + 6 + 16, "all": 36 + 6 + 3 * 16}
    for mode in ("rt", "re", "rp", "rs"):
        result = program.run("--table", "arrays", "--mode", mode, "--zones", "1024", "--row", "64")
        assert result["validation"]["passed"], result["validation"]
    assert result["options"]["table"] == "arrays"
    few = program.run("--table", "arrays", "--zones", "1024", "--row", "64", "--few")
    whole = program.run("--table", "arrays", "--zones", "1024", "--row", "64")
    assert few["traffic"]["bytes_stream"] == 1024 * 8 * (4 + read["few"] + 5)
    assert whole["traffic"]["bytes_stream"] == 1024 * 8 * (4 + read["all"] + 24)
    table = {array["name"]: array["bytes"] for array in whole["pages"]["arrays"]}["eos table"]
    assert 21 * 541 * 201 * 8 < table < 22 * 541 * 201 * 8


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("--table", "columns"), USAGE, "nodes|arrays"),
        (("--mode", "tr"), USAGE, "rt|re|rp|rs"),
        (("--zones", "0"), USAGE, "--zones"),
        (("--row", "0"), USAGE, "--row"),
        (("--working-set", "100"), USAGE, "--working-set"),
        (("--eos-table", ""), USAGE, "pw-eos-table"),
        (("--eos-table", "nowhere.h5"), SYSTEM, "nowhere.h5"),
        (("--eos-table", "."), SYSTEM, "."),
        (("--zones", "1000000000000000"), SYSTEM, "zones"),
        (("--zones", "10000000000000000"), USAGE, "zones"),
    ],
)
def test_faults_are_named(program: Program, arguments: tuple[str, ...], code: int, expected: str) -> None:
    record = program.folder / "record.jsonl"
    done = program.attempt(*arguments, "--record", str(record))
    assert done.returncode == code, done.stdout + done.stderr
    assert expected in done.stderr
    assert "remedy" in done.stderr
    assert record.exists() == (code != USAGE), "failures are recorded, mistakes on the command line are not"
    if record.exists():
        assert json.loads(record.read_text(encoding="utf-8"))["status"] == "failed"


def test_a_damaged_table_is_refused(program: Program) -> None:
    listed = json.loads(program.attempt("--list-options").stdout)
    path = next(option["default"] for option in listed if option["name"] == "eos-table")
    whole = bytearray(Path(path).read_bytes())
    (program.folder / "short.h5").write_bytes(whole[: len(whole) // 2])
    whole[len(whole) // 2] ^= 0xFF
    (program.folder / "damaged.h5").write_bytes(whole)
    for name in ("short.h5", "damaged.h5"):
        done = program.attempt("--eos-table", name)
        assert done.returncode in {USAGE, SYSTEM}
        assert name in done.stderr
