"""Fujitsu's OpenMP library, runtime=fjomplib: how CMake links it, by stand-ins for Fujitsu's compilers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from conftest import EMULATED, ROOT, run

pytestmark = pytest.mark.release

STAND_IN = Path(__file__).parent / "stand_ins" / "compiler.py"


def configured(folder: Path, fortran: str, c: str, *options: str) -> subprocess.CompletedProcess[str]:
    """CMake's answer for aarch64 in folder/build; `fortran` and `c` are compilers in the folder."""
    words = [f"-DCMAKE_Fortran_COMPILER={folder / fortran}", f"-DCMAKE_C_COMPILER={folder / c}", *options]
    target = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", "-DBUILD_TESTING=OFF"]
    # The stand-in leaves the output of CMake's question for the target in the current folder.
    start = ["env", "-C", folder, "cmake", "-G", "Ninja", "-S", ROOT / "kernels", "-B", folder / "build"]
    return run(*start, *target, *words)


def stand_ins(folder: Path) -> Path:
    """Add stand-ins for Fujitsu's compilers and GCC's to a folder."""
    detected = yaml.safe_load((EMULATED / "packages.yaml").read_text())["packages"]
    drivers = detected["gcc"]["externals"][0]["extra_attributes"]["compilers"]
    (folder / "delegates.json").write_text(json.dumps(drivers))
    for name in ("fcc", "frt", "gcc", "gfortran"):
        (folder / name).symlink_to(STAND_IN)
    return folder


@pytest.fixture
def compilers(tmp_path: Path, unavailable: Callable[[str], NoReturn]) -> Path:
    """A folder with the stand-ins."""
    if not (EMULATED / "packages.yaml").exists():
        unavailable("needs cross compilers for aarch64 (make setup-tests)")
    return stand_ins(tmp_path)


def link(folder: Path, kernel: str) -> list[str] | None:
    """The command that links a kernel's program, None without that kernel."""
    listed = run("ninja", "-C", folder / "build", "-t", "targets", "all").stdout
    if f"micro/{kernel}/pw-{kernel}:" not in listed:
        return None
    commands = run("ninja", "-C", folder / "build", "-t", "commands", f"pw-{kernel}").stdout.splitlines()
    return commands[-1].split()


@pytest.mark.parametrize(
    ("runtime", "c_flags", "has_constructs"),
    [("fjomplib", "-Nclang", False), ("fjomplib", "-Kfast", True), ("compiler", "-Nclang", True)],
)
def test_programs_are_linked_with_the_library_on_request(
    compilers: Path, runtime: str, c_flags: str, has_constructs: bool
) -> None:
    flags = (f"-DCMAKE_C_FLAGS={c_flags}", "-DCMAKE_Fortran_FLAGS=-Kfast")
    done = configured(compilers, "frt", "fcc", *flags, f"-DPAGEWISE_RUNTIME={runtime}")
    assert done.returncode == 0, done.stdout
    words = link(compilers, "stream_dot")
    assert words is not None and str(compilers / "frt") in words and "-Kopenmp" in words
    assert ("-Nfjomplib" in words) == (runtime == "fjomplib")
    # The compiler was asked with the option which libraries it links.
    calls = [json.loads(line) for line in (compilers / "calls.jsonl").read_text().splitlines()]
    asked = [
        call["arguments"]
        for call in calls
        if call["program"] == "frt"
        and any("OpenMPTryFlag.F90.o" in word for word in call["arguments"][:-1])
        and "-c" not in call["arguments"]
    ]
    assert asked and all(("-Nfjomplib" in words) == (runtime == "fjomplib") for words in asked)
    # C in clang mode calls another library.
    assert (link(compilers, "openmp_overhead") is not None) == has_constructs


@pytest.mark.parametrize(
    ("fortran", "openmp"), [("gfortran", "ON"), ("frt", "OFF")], ids=["another compiler", "no OpenMP"]
)
def test_others_refuse_the_library(compilers: Path, fortran: str, openmp: str) -> None:
    options = ("-DPAGEWISE_RUNTIME=fjomplib", f"-DPAGEWISE_OPENMP={openmp}", "-DCMAKE_Fortran_FLAGS=-g")
    done = configured(compilers, fortran, "gcc", *options)
    assert done.returncode != 0 and "PAGEWISE_RUNTIME=compiler" in done.stdout
