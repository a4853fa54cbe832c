"""Each use promised in docs/reference/promises.md has a test that CI runs."""

from __future__ import annotations

import os
import re
import subprocess

from conftest import ROOT

ROW = re.compile(r"^\| .*? \| .*? \| `(tests/\S+::\w+)` \|$", re.MULTILINE)


def promised() -> list[str]:
    """The tests named on the page."""
    return ROW.findall((ROOT / "docs/reference/promises.md").read_text())


def selected() -> set[str]:
    """The tests that `.ci/run` selects: pytest's collection with the same arguments."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTEST"))}
    dry = subprocess.run(
        [ROOT / ".ci" / "run"],
        env={**inherited, "MAKEFLAGS": "--dry-run"},
        capture_output=True,
        text=True,
        check=True,
    )
    commands = re.findall(r"^.* -m pytest .*$", dry.stdout.replace("\\\n", " "), re.MULTILINE)
    assert commands
    collected = set()
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", f"{command} --collect-only --quiet"],
            cwd=ROOT,
            env=inherited,
            capture_output=True,
            text=True,
            check=True,
        )
        collected |= set(re.findall(r"^\S+\.py::\w+", done.stdout, re.MULTILINE))
    return collected


def test_ci_runs_a_test_of_each_promised_use() -> None:
    tests = promised()
    assert len(tests) == (ROOT / "docs/reference/promises.md").read_text().count("::") > 20
    assert set(tests) - selected() == set()
