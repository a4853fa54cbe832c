"""Resuming an interrupted comparison, and printing the plan of a comparison."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from pagewise.core.result import read_result
from scripts import HANGS_AFTER
from stage import BASE, THP, TRIAD, Stage
from test_session import SEED, counted, planned

pytestmark = pytest.mark.long


def broken_off(
    stage: Stage, *arguments: str, records: int, number: int = signal.SIGINT, command: str = "kernels"
) -> Path:
    """A comparison that a signal ended after some records; its folder."""
    process = stage.start(command, *arguments, records=records)
    process.send_signal(number)
    process.communicate(timeout=HANGS_AFTER)
    return stage.result()


def test_an_interrupted_comparison_is_resumed(stage: Stage):
    """It was killed, as by a power cut: an interrupted one ends its records itself."""
    for label in (BASE, THP, ("none", "software", "regular")):
        stage.add("gcc-12.2.0", label, [TRIAD], sleep="0.03")
    arguments = ("--rounds", "4", "--seed", str(SEED), "--no-sweep")
    folder = broken_off(stage, *arguments, records=6, number=signal.SIGKILL)
    before = read_result(folder)
    assert before.manifest.state == "running"
    done = stage.resume(folder, code=0)
    after = read_result(folder)
    assert after.manifest.state == "complete" and counted(after) == planned(4, after.subjects)
    (reported,) = after.manifest.breaks
    assert reported.runs == len(before.records) and reported.resumed in done.stdout


OWN = ("--policies", "none,reuse", "--rounds", "4", "--", "sleep", "0.03")


# The program's two trial runs come first, in each session.
@pytest.mark.parametrize(
    ("command", "arguments", "records", "made"),
    [("counters", ("--events", "software", "--rounds", "4"), 3, 12), ("compare", OWN, 7, 12)],
)
def test_counting_and_programs_are_resumed_too(
    stage: Stage, command: str, arguments: tuple[str, ...], records: int, made: int
):
    stage.add("gcc-12.2.0", BASE, [TRIAD], sleep="0.03")
    stage.add("gcc-12.2.0", THP, [TRIAD], sleep="0.03")
    folder = broken_off(stage, *arguments, records=records, command=command)
    stage.resume(folder, code=0)
    result = read_result(folder)
    assert result.manifest.state == "complete" and len(result.manifest.breaks) == 1
    actual = counted(result)
    assert len(actual) == made and {number for _, _, number in actual} == {1, 2, 3, 4}


@pytest.mark.parametrize("change", ["option", "command", "folder", "program", "none"])
def test_a_result_is_resumed_by_the_command_that_began_it(stage: Stage, compared, change: str):
    of, folder = compared[0], compared[0].result()
    name, *words = json.loads((folder / "manifest.json").read_text())["command"][1:]
    before = (folder / "records.jsonl").read_bytes()
    commands = {
        "option": (name, "--resume", str(folder), *words, "--rounds", "3"),
        "command": ("counters", f"--resume={folder}", *words),
        "program": ("compare", "--resume", str(folder), "--", "true"),
        "none": (name, "--resume", str(folder)),
        "folder": (name, "--resume", str(folder), *words),
    }
    elsewhere = Stage(stage.folder, of.variables())
    done = (elsewhere if change == "folder" else of).run(*commands[change])
    assert done.returncode == 2 and str(folder) in done.stderr, done.stderr
    assert (folder / "records.jsonl").read_bytes() == before
