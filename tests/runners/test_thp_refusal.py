"""Transparent huge pages refused to what is started: for as long as asked, and then as inherited."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pagewise.core.errors import PagewiseError
from pagewise.machine.settings.thp import refused_to_programs
from pagewise.workloads.simulation.geometry import find_geometry
from pagewise.workloads.simulation.tracer import ProgramRun, TracedProgram, Tracer, trace
from scripts import called, write_script

SET, GET = 41, 42
PRCTL = ctypes.CDLL(None).prctl
ASK = [sys.executable, "-c", "import ctypes; print(ctypes.CDLL(None).prctl(42, 0, 0, 0, 0))"]
# What a batch system may have set before: nothing, refused, refused unless advised (Linux 6.18).
INHERITED = (0, 1, 3)


@pytest.fixture(params=INHERITED)
def inherited(request: pytest.FixtureRequest) -> Iterator[int]:
    before = PRCTL(GET, 0, 0, 0, 0)
    if PRCTL(SET, request.param & 1, request.param & ~1, 0, 0) != 0:
        pytest.skip("this kernel does not support the flag")
    yield request.param
    PRCTL(SET, before & 1, before & ~1, 0, 0)


def started() -> int:
    return int(called(ASK, check=True).stdout)


def test_programs_are_refused_huge_pages_and_then_inherit_as_before(inherited: int):
    with refused_to_programs():
        assert started() == 1
    assert started() == inherited


def test_the_tracer_leaves_inherited_signals(inherited: int, tmp_path: Path):
    seen = tmp_path / "seen"
    asked = f"ctypes.CDLL(None).prctl({GET}, 0, 0, 0, 0)"
    emulator = write_script(
        tmp_path / "emulator",
        f"#!{sys.executable}\nimport ctypes\nopen({str(seen)!r}, 'w').write(str({asked}))\n",
    )
    tracer = Tracer(str(emulator), "x86_64", "7.2")
    program = TracedProgram(tmp_path / "program", "x86_64", marked=False)
    plugin, geometry = tmp_path / "none.so", find_geometry("zen4").lines()
    with pytest.raises(PagewiseError):
        trace(tracer, plugin, geometry, ProgramRun(program, [], tmp_path), without_thp=True)
    assert seen.read_text() == "1"
    assert started() == inherited
