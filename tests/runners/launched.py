"""The launcher pagewise-exec, started in a folder, and what it records."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from json_schema import faults
from scripts import called

MIB = 1 << 20


class Launcher:
    """The installed launcher, started in a folder."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.folder = program, folder

    def run(self, *words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return called([self.program, *words], cwd=self.folder, env={**os.environ, **environment})

    def records(self, name: str = "pages.jsonl") -> list[dict]:
        lines = (self.folder / name).read_text().splitlines()
        records = [json.loads(line) for line in lines]
        assert [fault for record in records for fault in faults("exec", record)] == []
        return records


def recorded(launcher: Launcher, policy: str, *command: str | Path, **environment: str) -> dict:
    done = launcher.run("--record", "pages.jsonl", policy, "--", *command, **environment)
    assert done.returncode == 0, done.stderr
    (record,) = launcher.records()
    return record


def share(record: dict, kind: str) -> float:
    used = record["kinds"].get(kind, {"resident_bytes": 1, "huge_bytes": 0})
    return used["huge_bytes"] / used["resident_bytes"]
