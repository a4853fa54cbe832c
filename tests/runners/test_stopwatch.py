"""How runs are measured by hyperfine, whatever they run."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from pagewise.core.record_parts import ProcessPlacement
from pagewise.session import launch
from pagewise.session.launch import TIMED_OUT, Measurement, Start, Stopwatch
from pagewise.stack.provenance import find_hyperfine
from scripts import write_script


def measure(folder: Path, *script: str, limit: float = 30.0) -> Measurement:
    stopwatch = Stopwatch(find_hyperfine(), limit, folder)
    return stopwatch.measure(Start(["/bin/sh", "-c", *script]))


@pytest.mark.parametrize("wrapper", [(), ("/usr/bin/env",)])
def test_a_run_is_measured_with_its_own_output_alone(tmp_path: Path, wrapper: tuple[str, ...]):
    stopwatch = Stopwatch(find_hyperfine(), 30.0, tmp_path, wrapper=wrapper)
    command = ["/bin/sh", "-c", "echo one; echo two >&2; pwd"]
    folder = tmp_path / "folder"
    folder.mkdir()
    measured = stopwatch.measure(Start(command, folder=folder))
    assert measured.output == f"one\ntwo\n{folder}\n" and measured.log == measured.output
    assert (measured.exit_code, measured.signal, measured.implausible) == (0, None, None)
    assert measured.wall is not None and measured.wall > 0
    assert set(measured.cpu_seconds) == {"user_seconds", "system_seconds"}
    assert isinstance(measured.observed, ProcessPlacement) and measured.observed.cpus
    assert measured.faults[0] > 0
    overhead = stopwatch.measure_overhead()
    assert overhead > 0 and stopwatch.measure_overhead() == overhead


@pytest.mark.parametrize(
    ("script", "code", "signal", "output"),
    [
        ("echo wrong; exit 3", 3, None, "wrong\n"),
        ("kill -SEGV $$", 139, "SIGSEGV", ""),
        ("exec sleep 60", TIMED_OUT, None, ""),
    ],
)
def test_how_a_run_ended_is_reported_without_words_of_hyperfine(
    tmp_path: Path, script: str, code: int, signal: str | None, output: str
):
    measured = measure(tmp_path, script, limit=0.5)
    assert (measured.exit_code, measured.signal, measured.output) == (code, signal, output)
    assert measured.fault is None
    failure = Stopwatch("", 0.5, tmp_path).failure(measured)
    assert failure.exit_code == code and (signal or "") in failure.message
    assert ("--timeout" in (failure.remedy or "")) == (code == TIMED_OUT) == (measured.wall is None)


@pytest.mark.parametrize(("largest", "is_whole"), [(81, True), (80, False)])
def test_of_a_large_output_only_the_end_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, largest: int, is_whole: bool
):
    monkeypatch.setattr(launch, "LARGEST_OUTPUT", largest)
    monkeypatch.setattr(launch, "LONGEST_OUTPUT", 4)
    measured = measure(tmp_path, "seq 10 36; exit 0")
    assert measured.output_bytes == 81
    whole = "".join(f"{number}\n" for number in range(10, 37))
    assert measured.output == (whole if is_whole else whole[-4:])


@pytest.mark.parametrize("ending", ["", "\n", "x", "\n" * 9000])
def test_only_the_words_of_hyperfine_are_removed(ending: str):
    output = f"first\n{'long ' * 2000}\nlast\n{ending}"
    warned = output + f"\n{launch._NOISE}\n"
    assert launch._program_output(warned).rstrip("\n") == output.rstrip("\n")


@pytest.mark.parametrize("long", [["x" * 60_000] * 6, ["x" * 131_000]])
def test_a_long_command_line_is_measured(tmp_path: Path, long: list[str]):
    measured = measure(tmp_path, "echo ${#*}", "sh", *long)
    assert measured.exit_code == 0 and measured.wall is not None
    assert measured.output == f"{sum(map(len, long)) + len(long) - 1}\n"


@pytest.mark.parametrize("script", ["echo why >&2; exit 1", "echo why; kill -KILL $$", "echo why; exit 0"])
def test_a_failure_of_hyperfine_is_not_the_programs(tmp_path: Path, script: str):
    program = write_script(tmp_path / "hyperfine", f"#!/bin/sh\n{script}\n")
    stopwatch = Stopwatch(str(program), 30.0, tmp_path)
    measured = stopwatch.measure(Start(["true"]))
    assert measured.wall is None and measured.fault is not None
    failure = stopwatch.failure(measured)
    assert failure.exit_code == 4 and failure.remedy
    assert {"hyperfine", "why"} <= set(re.findall(r"\w+", failure.message))


def test_a_full_folder_of_outputs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    measured = measure(tmp_path, "exit 1")
    monkeypatch.setattr(launch.shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    failure = Stopwatch("", 30.0, tmp_path / "scratch").failure(measured)
    assert failure.exit_code == 4 and str(tmp_path) in failure.message and "TMPDIR" in failure.remedy
