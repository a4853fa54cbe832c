"""The templates for CI: the script of each job in the YAML runs in a clone, at small sizes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import ROOT, git, run, set_up, write_script

GITLAB = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())
#: BaseLoader, because YAML 1.1 reads the key `on` as a boolean.
GITHUB = yaml.load((ROOT / "ci" / "github.yml").read_text(), Loader=yaml.BaseLoader)
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}")


@pytest.fixture(scope="session")
def project(spack_ready: None, origin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone that is set up, as on a CI runner."""
    folder = tmp_path_factory.mktemp("ci") / "clone"
    git(origin, "clone", "--quiet", f"file://{origin}", str(folder))
    shutil.copytree(ROOT / "ci", folder / "ci")
    # Skip the set-up, which is complete, and most rounds.
    make = folder.parent / "bin" / "make"
    make.parent.mkdir()
    write_script(make, f'#!/bin/sh\nexec {shutil.which("make")} --old-file=setup "$@" "ARGS=--rounds 3"\n')
    return set_up(folder)


def play(project: Path, script: list[str], variables: Mapping[str, Any] = {}, **settings: str) -> list[Any]:
    """Run a job's lines as a CI runner would."""
    place = project.parent
    environment = {
        "PAGEWISE_CACHE": str(place / "cache"),
        "PAGEWISE_REFERENCE": str(place / "reference"),
        "GITHUB_STEP_SUMMARY": str(place / "summary"),
        "PATH": f"{place}/bin:{os.environ['PATH']}",
        **{name: str(value) for name, value in variables.items()},
        **settings,
    }
    return [run("bash", "-c", f"cd {project} && {line}", **environment) for line in script]


def succeed(project: Path, script: list[str], variables: Mapping[str, Any] = {}) -> str:
    """Run lines that must succeed; returns their output."""
    played = play(project, script, variables)
    assert [done.returncode for done in played] == [0] * len(script), played[-1].stdout[-5000:]
    return "".join(done.stdout for done in played)


def test_the_jobs_are_consistent() -> None:
    jobs = {name: job for name, job in GITLAB.items() if isinstance(job, dict) and "stage" in job}
    assert {job["stage"] for job in jobs.values()} == set(GITLAB["stages"])
    assert {need for job in jobs.values() for need in job.get("needs", [])} <= set(jobs)
    lines = [line for job in jobs.values() for line in job.get("script", [])]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {line.split()[1] for line in lines if line.startswith("make ")} <= set(targets)
    steps = [step for job in GITHUB["jobs"].values() for step in job["steps"]]
    assert all(PINNED.fullmatch(step["uses"]) for step in steps if "uses" in step)
    own = [step["run"] for step in steps if step.get("run", "").startswith("make ")]
    assert own == [line for line in lines if re.match(r"make (?!ci-|publish)", line)]
    assert GITHUB["permissions"] == {"contents": "read"}
    assert ".ci/run" in GITLAB["everything"]["script"]
    assert {"run": ".ci/run"} in GITHUB["jobs"]["everything"]["steps"]


def test_the_check_job_runs_the_tests(project: Path) -> None:
    (done,) = play(project, GITLAB["check"]["script"], MAKEFLAGS="--dry-run")
    assert done.returncode == 0 and "tests/lint" in done.stdout and "pytest" in done.stdout


@pytest.fixture(scope="session")
def cached(project: Path) -> Path:
    """The clone after the jobs that `spack ci` writes have built the packages."""
    succeed(project, GITLAB["generate"]["script"])
    (pipeline,) = (entry["artifact"] for entry in GITLAB["packages"]["trigger"]["include"])
    jobs = yaml.safe_load((project / pipeline).read_text())
    stages = jobs.pop("stages")
    variables = jobs.pop("variables")
    played = [job for job in jobs.values() if "script" in job]
    assert len(played) == 5, "compiler-wrapper, gcc-runtime, library, two configurations"
    for job in sorted(played, key=lambda entry: stages.index(entry["stage"])):
        assert job["tags"] == ["pagewise"]
        succeed(project, job["script"], {**variables, **job.get("variables", {})})
    # The other jobs run on another CI runner, without these installations.
    shutil.rmtree(project / ".pagewise" / "opt")
    return project


@pytest.mark.release
def test_cached_packages_get_no_job(cached: Path) -> None:
    succeed(cached, GITLAB["generate"]["script"])
    jobs = yaml.safe_load((cached / ".pagewise" / "ci" / "pipeline.yml").read_text())
    scripts = [job["script"] for job in jobs.values() if isinstance(job, dict) and "script" in job]
    assert len(scripts) == 1 and not any("make" in line for line in scripts[0])


@pytest.mark.release
def test_the_gate_passes_equal_times_and_stops_slower_ones(cached: Path) -> None:
    script = GITLAB["compare"]["script"]
    succeed(cached, script)
    log = (cached / ".pagewise" / "logs" / "install-release-quick.log").read_text()
    assert "Executing phase" not in log, "all packages come from the cache"
    reference = cached.parent / "reference"
    assert (reference / "manifest.json").is_file(), "the first result becomes the stored one"
    public = cached / "public"
    for name in ("report.html", "index.html", "summary.md", "verdicts.json"):
        assert (public / name).stat().st_size > 100
    assert json.loads((public / "verdicts.json").read_text())["schema"].startswith("pagewise.verdicts/")
    succeed(cached, GITLAB["pages"]["script"])

    # Make huge pages a hundred times faster in the stored result, far beyond noise, and sign it as a whole.
    records, manifest = reference / "records.jsonl", reference / "manifest.json"
    lines = []
    for line in records.read_text().splitlines():
        record = json.loads(line)
        if "/thp/" in line:
            record["seconds"]["repetitions"] = [time / 100 for time in record["seconds"]["repetitions"]]
        lines.append(json.dumps(record))
    content = "".join(f"{line}\n" for line in lines).encode()
    records.write_bytes(content)
    digest = {"lines": len(lines), "sha256": hashlib.sha256(content).hexdigest()}
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"records": digest}))
    *_, gate = play(cached, script)
    diff = json.loads((public / "diff.json").read_text())
    assert gate.returncode == 2 and "Error 1" in gate.stdout, gate.stdout
    assert "regression" in json.dumps(diff)
    assert (public / "diff.txt").read_text() in (public / "summary.md").read_text()

    # Once accepted, the result becomes the stored one.
    *_, gate = play(cached, script, ACCEPT="1")
    assert gate.returncode == 0, gate.stdout
    steps = GITHUB["jobs"]["compare"]["steps"]
    succeed(cached, [step["run"] for step in steps if "STEP_SUMMARY" in step.get("run", "")])
    assert (public / "summary.md").read_text() in (cached.parent / "summary").read_text()


def test_missing_variables_are_refused() -> None:
    done = run(ROOT / "ci" / "regression", "quick")
    assert done.returncode == 4 and "REFERENCE" in done.stdout
    done = run(ROOT / "ci" / "packages", "generate")
    assert done.returncode == 4 and "PAGEWISE_CACHE" in done.stdout
