"""Resuming an interrupted comparison, and printing the plan of a comparison."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from builders import varied
from pagewise.analysis.analysis import analyse
from pagewise.core.plan import order_of_round
from pagewise.core.record import Record
from pagewise.core.result import Result, read_result
from pagewise.report.views import session
from stage import TRIAD, Stage

pytestmark = pytest.mark.long
BASE, THP = ("none", "hardware", "regular"), ("thp", "hardware", "regular")


def broken_off(
    stage: Stage, *arguments: str, records: int, number: int = signal.SIGINT, command: str = "kernels"
) -> Path:
    """A comparison that a signal ended after some records; its folder."""
    process = subprocess.Popen(
        stage.command(command, "--output", str(stage.results), *arguments),
        env=stage.variables(),
        cwd=stage.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None:
        files = list(stage.results.glob("*/records.jsonl"))
        if files and files[0].read_bytes().count(b"\n") >= records:
            process.send_signal(number)
            break
        time.sleep(0.01)
    process.communicate(timeout=30)
    return stage.result()


def runs(result: Result) -> Counter[tuple[str, str, str, int]]:
    """How often each run that counts was made, by kernel, module, series and round."""
    made = {
        (r.kernel, r.run.module, r.run.series, r.run.round, r.run.position)
        for r in result.records
        if r.run.series != "aside"
    }
    return Counter(run[:4] for run in made)


def planned(result: Result, rounds: int) -> Counter[tuple[str, str, str, int]]:
    steps = [step for n in range(1, rounds + 1) for step in order_of_round(result.subjects, n, 5)]
    return Counter((s.kernel.name, s.cell.measured.module, s.series, s.round) for s in steps)


def whatever_its_series(record: Record) -> Record:
    return varied(record, "run", series="compare")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_comparison_goes_on_where_it_was_broken_off(stage: Stage, number: int):
    for label in (BASE, THP, ("none", "software", "regular")):
        stage.add("gcc-12.2.0", label, [TRIAD], sleep="0.03")
    folder = broken_off(stage, "--rounds", "4", "--seed", "5", "--no-sweep", records=6, number=number)
    before = read_result(folder)
    assert before.manifest.state == ("running" if number == signal.SIGKILL else "interrupted")
    done = stage.resume(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(stage.results.iterdir()) == [folder], "no other folder is made"
    after = read_result(folder)
    assert after.manifest.state == "complete" and after.manifest.rounds_done == 4
    assert runs(after) == planned(after, 4), "each run of the plan once"
    # The order of runs is that of the plan: what was measured before, then the rest.
    counted = [r.run for r in after.records if r.run.series != "aside"]
    order = [(run.round, run.position) for run in counted]
    assert order == sorted(order)
    # Nothing that was measured is lost or changed, except that some of it no longer counts.
    assert [whatever_its_series(r) for r in after.records[: len(before.records)]] == [
        whatever_its_series(r) for r in before.records
    ]
    [reported] = after.manifest.breaks
    aside = [r for r in after.records if r.run.series == "aside"]
    assert reported.runs == len(before.records) and reported.aside == len(aside)
    # Complete rounds are kept; the interrupted round is measured again as a whole.
    assert {r.run.round for r in aside} <= {max(r.run.round for r in before.records)}
    assert after.manifest.timing.runs == 16
    assert any(reported.resumed in note for note in session.notes(after))
    [result] = analyse(after.subjects, after.records, 5)
    assert {row.time_ratio.pairs for row in result.groups[0].ranked if row.time_ratio} == {4}


def test_rounds_that_were_added_stay_and_the_budget_counts_on(stage: Stage):
    stage.add("gcc-12.2.0", BASE, [TRIAD], sleep="0.02")
    stage.add("gcc-12.2.0", THP, [TRIAD], sleep="0.02", factor="0.8")
    arguments = ("--rounds", "3", "--until", "0.0001%", "--budget", "1h", "--no-sweep")
    folder = broken_off(stage, *arguments, records=14)
    file = folder / "manifest.json"
    file.write_text(file.read_text().replace('"1h"', '"0.1s"'))
    before = read_result(folder)
    assert before.manifest.rounds_done >= 4
    done = stage.resume(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    result = read_result(folder)
    assert result.manifest.until.ended == "budget"
    assert result.manifest.rounds_done == before.manifest.rounds_done
    assert result.manifest.until.rounds == {"triad": before.manifest.rounds_done}
    made = runs(result)
    assert set(made.values()) == {1} and len(made) == 3 * before.manifest.rounds_done


def test_a_cut_line_is_named_and_its_run_is_made_again(stage: Stage):
    stage.add("gcc-12.2.0", BASE, [TRIAD], sleep="0.02")
    stage.add("gcc-12.2.0", THP, [TRIAD], sleep="0.02")
    # Killed, as by a power cut: an interrupted comparison ends its records itself.
    folder = broken_off(stage, "--rounds", "3", "--seed", "5", records=5, number=signal.SIGKILL)
    file = folder / "records.jsonl"
    file.write_bytes(file.read_bytes()[:-40])
    done = stage.resume(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    result = read_result(folder)
    (skipped,) = result.skipped
    assert str(replace(skipped, reason="")).strip() in done.stdout
    assert {key: n for key, n in runs(result).items() if key[2] != "sweep"} == planned(result, 3)
    assert sum(n for key, n in runs(result).items() if key[2] == "sweep") == 2


OWN = ("--policies", "none,reuse", "--rounds", "4", "--", "sleep", "0.03")


# The program's two trial runs come first, in each session.
@pytest.mark.parametrize(
    ("command", "arguments", "records", "made"),
    [("counters", ("--events", "software", "--rounds", "4"), 3, 12), ("compare", OWN, 7, 12)],
)
def test_counting_and_a_program_of_the_users_own_go_on_too(
    stage: Stage, command: str, arguments: tuple[str, ...], records: int, made: int
):
    stage.add("gcc-12.2.0", BASE, [TRIAD], sleep="0.03")
    stage.add("gcc-12.2.0", THP, [TRIAD], sleep="0.03")
    folder = broken_off(stage, *arguments, records=records, command=command)
    done = stage.resume(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    result = read_result(folder)
    assert result.manifest.state == "complete" and len(result.manifest.breaks) == 1
    found = {key: n for key, n in runs(result).items() if key[2] != "trial"}
    assert sum(found.values()) == made and {key[3] for key in found} == {1, 2, 3, 4}


def test_what_is_not_as_it_was_is_listed_and_nothing_is_measured(stage: Stage):
    stage.add("gcc-12.2.0", BASE, [TRIAD], sleep="0.02")
    thp = stage.add("gcc-12.2.0", THP, [TRIAD], sleep="0.02")
    folder = broken_off(stage, "--rounds", "9", records=4)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["host"] |= {"hostname": "elsewhere"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    module = stage.modules / f"{thp}.lua"
    module.write_text(module.read_text() + 'setenv("OTHER", "1")\n')
    before = (folder / "records.jsonl").read_bytes()
    done = stage.resume(folder)
    assert done.returncode == 4
    lines = done.stderr.splitlines()
    assert any("hostname" in line and "elsewhere" in line for line in lines)
    assert any(thp in line for line in lines)
    assert (folder / "records.jsonl").read_bytes() == before


@pytest.mark.parametrize("change", ["option", "command", "folder", "program", "none", "complete"])
def test_a_result_is_resumed_by_the_command_that_began_it(stage: Stage, compared, change: str):
    of, folder = compared[0], compared[0].result()
    name, *words = json.loads((folder / "manifest.json").read_text())["command"][1:]
    before = (folder / "records.jsonl").read_bytes()
    commands = {
        "option": (name, "--resume", str(folder), *words, "--rounds", "3"),
        "command": ("counters", f"--resume={folder}", *words),
        "program": ("compare", "--resume", str(folder), "--", "true"),
        "none": (name, "--resume", str(folder)),
        "complete": (name, *words, "--quiet", f"--resume={folder}"),
        "folder": (name, "--resume", str(folder), *words),
    }
    elsewhere = Stage(stage.folder, of.variables())
    done = (elsewhere if change == "folder" else of).run(*commands[change])
    assert done.returncode == 2 and str(folder) in done.stderr, done.stderr
    assert (folder / "records.jsonl").read_bytes() == before


def test_what_is_not_a_result_is_not_resumed(stage: Stage):
    assert stage.run("kernels", "--resume", str(stage.folder)).returncode == 3


def test_two_do_not_write_to_one_result(stage: Stage):
    stage.add("gcc-12.2.0", BASE, [TRIAD], sleep="0.05")
    stage.add("gcc-12.2.0", THP, [TRIAD], sleep="0.05")
    process = subprocess.Popen(
        stage.command("kernels", "--output", str(stage.results), "--rounds", "1000"),
        env=stage.variables(),
        cwd=stage.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not list(stage.results.glob("*/records.jsonl")):
            assert process.poll() is None
            time.sleep(0.01)
        done = stage.resume(stage.result())
        assert done.returncode == 4 and "records.jsonl" in done.stderr
    finally:
        process.terminate()
        process.wait(timeout=30)


def test_the_plan_reports_what_would_run_and_starts_nothing(small: Stage):
    done = small.compare("--plan", "--rounds", "4", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"] > 0
    assert not small.results.exists()
