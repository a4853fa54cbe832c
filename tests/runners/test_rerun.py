"""Measuring the same again: same modules, same programs, or a refusal that lists the differences."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pagewise.core.result import read_result
from stage import CHASE, FAKE, Stage


def newest(stage: Stage, before: set[Path]) -> Path:
    (found,) = set(stage.results.iterdir()) - before
    return found


@pytest.mark.long
def test_a_result_is_repeated_unless_modules_or_programs_changed(stage: Stage):
    stage.add("gcc-12.2.0", ("none", "hardware", "regular"), [CHASE])
    module = stage.add("gcc-12.2.0", ("thp", "hardware", "regular"), [CHASE], factor="0.8")
    assert stage.compare("--rounds", "3", "--no-sweep", "--name", "first", "--seed", "9").returncode == 0
    first = stage.result()
    # A later configuration matches the patterns, and is not measured.
    stage.add("gcc-12.2.0", ("none", "software", "regular"), [CHASE])
    stage.add("llvm-22.1.8", ("none", "hardware", "regular"), [CHASE])
    before = set(stage.results.iterdir())
    done = stage.run("results", "rerun", str(first))
    assert done.returncode == 0, done.stderr
    again, old = read_result(newest(stage, before)), read_result(first)
    for name in ("command", "seed", "rounds", "configurations", "subjects", "programs", "started_in"):
        assert getattr(again.manifest, name) == getattr(old.manifest, name)
    assert again.manifest.rerun_of.id == old.manifest.id != again.manifest.id
    assert [one.run.module for one in again.records] == [one.run.module for one in old.records]

    program = next((stage.folder / "opt").glob("*gcc*thp*/bin/pw-chase"))
    program.write_text(f"#!{sys.executable} -SE\n# Built again.\n" + FAKE.read_text())
    before = set(stage.results.iterdir())
    refused = stage.run("results", "rerun", str(first))
    assert refused.returncode == 4 and "Traceback" not in refused.stderr
    assert "pw-chase" in refused.stderr and module in refused.stderr
    assert "--anyway" in refused.stderr and set(stage.results.iterdir()) == before
    planned = stage.run("results", "rerun", str(first), "--anyway", "--plan")
    assert planned.returncode == 0 and "pw-chase" in planned.stderr and module in planned.stderr

    (stage.modules / f"{module}.lua").unlink()
    gone = stage.run("results", "rerun", str(first))
    assert gone.returncode != 0 and module in gone.stderr


@pytest.mark.long
def test_settings_of_the_machine_are_changed_only_when_asked_again(stage: Stage):
    stage.add("gcc-12.2.0", ("none", "hardware", "regular"), [CHASE])
    assert stage.compare("--rounds", "1", "--no-sweep", "--name", "first").returncode == 0
    first = stage.result()
    manifest = json.loads((first / "manifest.json").read_text())
    manifest["command"].append("--set-thp-sizes")
    (first / "manifest.json").write_text(json.dumps(manifest))
    # A command that was edited is from elsewhere.
    done = stage.run("results", "rerun", str(first), "--trust")
    assert done.returncode == 2 and "--set-thp-sizes" in done.stderr and "--change-settings" in done.stderr
    manifest["command"] = ["pagewise", "simulate"]
    (first / "manifest.json").write_text(json.dumps(manifest))
    done = stage.run("results", "rerun", str(first))
    assert done.returncode == 2
