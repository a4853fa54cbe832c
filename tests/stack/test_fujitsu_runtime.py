"""Fujitsu's OpenMP library, runtime=fjomplib: how CMake links it, by stand-ins for Fujitsu's compilers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from conftest import AARCH64, EMULATED, configure, run, stand_ins

pytestmark = pytest.mark.release


@pytest.fixture
def compilers(tmp_path: Path, unavailable: Callable[[str], NoReturn]) -> Path:
    """A folder with the stand-ins."""
    if not (EMULATED / "packages.yaml").exists():
        unavailable("needs cross compilers for aarch64 (make setup-tests)")
    return stand_ins(tmp_path, "fcc", "frt", "gcc", "gfortran")


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
    done = configure(compilers, "fcc", "frt", *AARCH64, *flags, f"-DPAGEWISE_RUNTIME={runtime}")
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
    done = configure(compilers, "gcc", fortran, *AARCH64, *options)
    assert done.returncode != 0 and "PAGEWISE_RUNTIME=compiler" in done.stdout
