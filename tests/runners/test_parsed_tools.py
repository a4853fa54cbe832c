"""Tools whose output is parsed run in the C locale."""

from __future__ import annotations

import os
import subprocess

import pytest

from pagewise.machine import topology
from pagewise.stack.commands import output_of
from pagewise.workloads.counters import program


@pytest.mark.parametrize(
    "environment", [None, {"PATH": os.defpath}, {"PATH": os.defpath, "LC_ALL": "de_DE.utf8"}]
)
def test_short_commands(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str] | None):
    monkeypatch.setenv("LC_ALL", "de_DE.utf8")
    assert output_of(["/bin/sh", "-c", "echo $LC_ALL"], environment) == "C"


@pytest.mark.parametrize("module", [topology, program])
def test_other_tools(monkeypatch: pytest.MonkeyPatch, module: object):
    started: list[dict[str, str]] = []

    def start(command: object, env: dict[str, str], **_: object) -> subprocess.CompletedProcess[str]:
        started.append(env)
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(subprocess, "run", start)
    calls = {
        topology: topology.read_topology.__wrapped__,
        program: lambda: program._fault(program.PerfStat("perf"), ["perf::PAGE-FAULTS"]),
    }
    monkeypatch.setattr(topology, "parse", lambda text: text)
    calls[module]()
    assert [env["LC_ALL"] for env in started] == ["C"]
