"""Under a limit on address space, as of batch systems: nothing asks for more memory than it needs."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path

import pytest

from pagewise.core.result import read_result
from pagewise.store import sources
from stage import Stage

LIMIT = 4_000_000 * 1024


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def test_too_little_memory_is_no_fault_of_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "manifest.json").write_text("{}")

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(sources, "read_result", fail)
    with pytest.raises(MemoryError):
        sources.find_sources([tmp_path])


@pytest.mark.long
def test_a_session_and_its_result(tmp_path: Path):
    stage = Stage(tmp_path)

    def run(*words: str) -> str:
        done = subprocess.run(
            stage.command(*words),
            env=stage.variables(),
            cwd=tmp_path,
            preexec_fn=limited,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    results = str(stage.results)
    run("compare", "--output", results, "--rounds", "3", "--policies", "none,reuse", "--", "true")
    assert read_result(stage.result()).manifest.state == "complete"
    (listed,) = json.loads(run("results", "list", "--json", results))["results"]
    assert listed["faults"] == [] and listed["state"] == "complete"
    run("report", str(stage.result()))
    run("results", "query", "programs", results)
