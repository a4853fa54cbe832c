"""Several codes, cases and builds in one session: what is measured, kept apart and refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from pagewise.core.manifest import Manifest
from pagewise.core.result import Result
from pagewise.core.structure import faults
from pagewise.workloads.program.suite import known_codes, read_code
from scripts import write_script
from stage import ROOT, Stage
from test_suites import OUTPUTS


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A checkout with the codes, and two builds of two benchmarks, of which the older has half the rate."""
    stage = Stage(tmp_path)
    shutil.copytree(ROOT / "envs/suites/codes", tmp_path / "envs/suites/codes")
    text = (OUTPUTS / "npb.txt").read_text()
    for build, rate in (("old", "1000.00"), ("new", "2000.00")):
        (tmp_path / build).mkdir()
        output = tmp_path / build / "output.txt"
        output.write_text(text.replace("2161.49", rate))
        for name in ("cg.S.x", "mg.S.x"):
            write_script(tmp_path / build / name, f"#!/bin/sh\nexec cat {output}\n")
    return stage


def compared(stage: Stage, *words: str) -> Result:
    common = ("--policies", "none", "--rounds", "2", "--output", str(stage.results))
    stage.run("compare", *common, *words, code=0)
    return stage.read_result()


@pytest.mark.long
def test_builds_of_several_cases_by_threads(stage: Stage):
    builds = ("--build", f"old={stage.folder}/old", "--build", f"new={stage.folder}/new")
    result = compared(stage, "--suite", "npb:cg.S,npb:mg.S", *builds, "--threads", "1,2")
    manifest = result.manifest
    assert manifest.kind == "programs"
    assert set(manifest.programs) == {f"npb_{k}_s/{build}" for k in ("cg", "mg") for build in ("old", "new")}
    assert faults(Manifest, json.loads((result.folder / "manifest.json").read_text())) == []
    for subject in result.subjects:
        cells = {(cell.measured.flags, cell.placement, cell.is_baseline) for cell in subject.cells}
        expected = {(b, f"threads:{t}", (b, t) == ("old", 1)) for b in ("old", "new") for t in (1, 2)}
        assert cells == expected
    rates = {
        (record.kernel, record.run.module.split("/")[1], record.figures["rate"])
        for record in result.records
        if record.run is not None
    }
    assert rates == {
        (f"npb_{k}_s", b, r) for k in ("cg", "mg") for b, r in (("old", 1000.0), ("new", 2000.0))
    }
    # Programs are interleaved: each round has all of them.
    rounds = {(r.round, r.kernel) for r in result.records if r.series == "compare"}
    assert rounds == {(number, f"npb_{k}_s") for number in (1, 2) for k in ("cg", "mg")}
    done = stage.run("report", str(result.folder), "--json")
    rows = json.loads(done.stdout)["comparisons"]
    assert {row["kernel"] for row in rows if row["label"] == "Rate"} == {"npb_cg_s", "npb_mg_s"}


@pytest.mark.long
def test_hpcc_on_one_and_two_ranks_has_rings_on_two(stage: Stage, unavailable: Callable[[str], NoReturn]):
    if shutil.which("hpcc") is None or shutil.which("mpiexec") is None:
        unavailable("needs hpcc and mpiexec (make setup-tests)")
    file = stage.folder / "envs/suites/codes/hpcc.yaml"
    file.write_text(file.read_text().replace("3000         Ns", "200          Ns"))
    words = ("--rounds", "1", "--ranks", "1,2", "--build", f"all={Path(shutil.which('hpcc') or '').parent}")
    result = compared(stage, "--suite", "hpcc", *words)
    rings = ("ring_latency", "ring_bandwidth", "natural_ring_latency", "natural_ring_bandwidth")
    for record in result.records:
        assert record.status == "ok" and record.run is not None
        two = record.run.placement == "ranks:2"
        assert all((record.figures.get(name, 0.0) > 0.0) == two for name in rings)
        assert record.figures["hpl"] > 0.0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--build", "old={folder}/old"), 2),
        (("--suite", "npb:cg.S", "--build", "old"), 2),
        (("--suite", "npb:cg.S", "--build", "old={folder}/old", "--build", "old={folder}/new"), 2),
        (("--suite", "npb:cg.S", "--build", "old={folder}/old", "--", "cat"), 2),
        (("--suite", "npb:cg.S,npb:mg.S", "--", "cat"), 2),
        (("--suite", "npb:xx.S"), 2),
        (("--suite", "npb:"), 2),
        (("--suite", "hpcc:a"), 2),
        (("--suite", "redis,npb", "--build", "old={folder}/old"), 3),
        (("--suite", "npb:ft.S", "--build", "old={folder}/old"), 3),
    ],
)
def test_incomparable_results_are_refused(stage: Stage, words: tuple[str, ...], code: int):
    done = stage.run("compare", *(word.format(folder=stage.folder) for word in words))
    assert done.returncode == code and not stage.results.exists(), done.stderr


def test_a_case_names_its_programs():
    npb = known_codes(ROOT)["npb"]
    assert (read_code(npb).part.programs, read_code(npb).label) == (("cg.B.x", "cg.B"), "npb:cg.B")
    assert read_code(npb, "mg.D").part.programs == ("mg.D.x", "mg.D")


@pytest.mark.long
@pytest.mark.parametrize("option", ["--modules", "--env"])
def test_modules_are_builds(stage: Stage, option: str):
    for build, target in (("old", "x86_64_v2"), ("new", "native")):
        module = stage.modules / f"npb/3.4.1/{target}.lua"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(f'prepend_path("PATH", "{stage.folder}/{build}")\n')
    builds = ("--build", "legacy=*/x86_64_v2", "--build", "tuned=*/native")
    tree = str(stage.modules) if option == "--modules" else stage.modules.name
    result = compared(stage, option, tree, "--suite", "npb:mg.S", *builds)
    measured = {(record.run.module, record.figures["rate"]) for record in result.records if record.run}
    assert measured == {("npb_mg_s/legacy/none", 1000.0), ("npb_mg_s/tuned/none", 2000.0)}
