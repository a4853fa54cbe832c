"""The templates for CI: each job's script is run in a clone, as the YAML has it, at small sizes."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import KERNEL, ROOT, git, run, set_up

GITLAB = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())
#: BaseLoader: YAML 1.1 takes the key `on` for a truth value.
GITHUB = yaml.load((ROOT / "ci" / "github.yml").read_text(), Loader=yaml.BaseLoader)
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}")


@pytest.fixture(scope="session")
def project(spack_ready: None, origin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone as a runner has it, set up."""
    folder = tmp_path_factory.mktemp("ci") / "clone"
    git(origin, "clone", "--quiet", f"file://{origin}", str(folder))
    shutil.copytree(ROOT / "ci", folder / "ci")
    # The set-up has been done.
    make = folder.parent / "bin" / "make"
    make.parent.mkdir()
    make.write_text(f'#!/bin/sh\nexec {shutil.which("make")} --old-file=setup "$@"\n')
    make.chmod(0o755)
    return set_up(folder)


def play(project: Path, script: list[str], variables: Mapping[str, Any] = {}, **settings: str) -> list[Any]:
    """Run a job's lines as its runner would."""
    place = project.parent
    told = {
        "PAGEWISE_CACHE": str(place / "cache"),
        "PAGEWISE_REFERENCE": str(place / "reference"),
        "GITHUB_STEP_SUMMARY": str(place / "summary"),
        "KERNELS": KERNEL,
        "ROUNDS": "3",
        "PATH": f"{place}/bin:{os.environ['PATH']}",
        **{name: str(value) for name, value in variables.items()},
        **settings,
    }
    return [run("bash", "-c", f"cd {project} && {line}", **told) for line in script]


def succeed(project: Path, script: list[str], variables: Mapping[str, Any] = {}) -> str:
    """Run lines that must end well."""
    played = play(project, script, variables)
    assert [done.returncode for done in played] == [0] * len(script), played[-1].stdout[-5000:]
    return "".join(done.stdout for done in played)


def test_the_jobs_hang_together() -> None:
    jobs = {name: job for name, job in GITLAB.items() if isinstance(job, dict) and "stage" in job}
    assert {job["stage"] for job in jobs.values()} == set(GITLAB["stages"])
    assert {need for job in jobs.values() for need in job.get("needs", [])} <= set(jobs)
    lines = [line for job in jobs.values() for line in job.get("script", [])]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {line.split()[1] for line in lines if line.startswith("make ")} <= set(targets)
    steps = [step for job in GITHUB["jobs"].values() for step in job["steps"]]
    assert all(PINNED.fullmatch(step["uses"]) for step in steps if "uses" in step)
    ours = [step["run"] for step in steps if step.get("run", "").startswith("make ")]
    assert ours == [line for line in lines if "ci-" not in line and line.startswith("make ")]
    assert GITHUB["permissions"] == {"contents": "read"}
    assert ".ci/run" in GITLAB["everything"]["script"]
    assert {"run": ".ci/run"} in GITHUB["jobs"]["everything"]["steps"]


def test_the_check_runs_the_everyday_tests(project: Path) -> None:
    (done,) = play(project, GITLAB["check"]["script"], MAKEFLAGS="--dry-run")
    assert done.returncode == 0 and "tests/lint" in done.stdout and "pytest" in done.stdout


@pytest.fixture(scope="session")
def cached(project: Path) -> Path:
    """With the packages built by the jobs that `spack ci` writes."""
    succeed(project, GITLAB["generate"]["script"])
    (pipeline,) = (entry["artifact"] for entry in GITLAB["packages"]["trigger"]["include"])
    jobs = yaml.safe_load((project / pipeline).read_text())
    stages = jobs.pop("stages")
    variables = jobs.pop("variables")
    played = [job for job in jobs.values() if "script" in job]
    assert len(played) == 5, "compiler-wrapper, gcc-runtime, library, two configurations"
    for job in sorted(played, key=lambda one: stages.index(one["stage"])):
        assert job["tags"] == ["pagewise"]
        succeed(project, job["script"], {**variables, **job.get("variables", {})})
    # What the jobs installed is on another runner.
    shutil.rmtree(project / ".pagewise" / "opt")
    return project


def test_what_the_cache_has_gets_no_job(cached: Path) -> None:
    succeed(cached, GITLAB["generate"]["script"])
    jobs = yaml.safe_load((cached / ".pagewise" / "ci" / "pipeline.yml").read_text())
    assert [job["script"] for job in jobs.values() if isinstance(job, dict) and "script" in job] == [
        ["echo the binary cache has everything"]
    ]


def test_the_gate_passes_what_is_as_it_was_and_stops_what_is_slower(cached: Path) -> None:
    script = GITLAB["compare"]["script"]
    told = succeed(cached, script)
    log = (cached / ".pagewise" / "logs" / "install-release-quick.log").read_text()
    assert "Executing phase" not in log, "all comes from the cache"
    assert "this one becomes it" in told
    reference = cached.parent / "reference"
    public = cached / "public"
    for name in ("report.html", "index.html", "summary.md", "verdicts.json"):
        assert (public / name).stat().st_size > 100
    assert json.loads((public / "verdicts.json").read_text())["schema"].startswith("pagewise.verdicts/")
    succeed(cached, GITLAB["pages"]["script"])

    # The stored result says that huge pages took a hundredth of the time, beyond all noise.
    records = reference / "records.jsonl"
    lines = []
    for line in records.read_text().splitlines():
        record = json.loads(line)
        if "/thp/" in line:
            record["seconds"]["repetitions"] = [one / 100 for one in record["seconds"]["repetitions"]]
        lines.append(json.dumps(record))
    records.write_text("\n".join(lines) + "\n")
    *_, gate = play(cached, script)
    diff = json.loads((public / "diff.json").read_text())
    assert gate.returncode == 2 and "Error 1" in gate.stdout, gate.stdout
    assert (
        "regression" in json.dumps(diff)
        and "Against the stored result" in (public / "summary.md").read_text()
    )

    # Accepted, it is the new measure.
    *_, gate = play(cached, script, ACCEPT="1")
    assert gate.returncode == 0, gate.stdout
    steps = GITHUB["jobs"]["compare"]["steps"]
    succeed(cached, [step["run"] for step in steps if "STEP_SUMMARY" in step.get("run", "")])
    assert "Against the stored result" in (cached.parent / "summary").read_text()


def test_a_gate_without_a_place_for_results_is_refused() -> None:
    done = run(ROOT / "ci" / "regression", "quick")
    assert done.returncode == 4 and "REFERENCE is not given" in done.stdout
    done = run(ROOT / "ci" / "packages", "generate")
    assert done.returncode == 4 and "PAGEWISE_CACHE is not set" in done.stdout
