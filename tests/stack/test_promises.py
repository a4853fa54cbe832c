"""Each use promised in docs/reference/promises.md has a test: in each run of CI, or before a release."""

from __future__ import annotations

import re
import subprocess
import sys

from conftest import ROOT

ROW = re.compile(r"^\| .*? \| .*? \| `(tests/\S+::\w+)` \|$", re.MULTILINE)


def collected(marks: str) -> set[str]:
    """The tests that pytest selects by these marks."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-m", marks]
    found: set[str] = set()
    for folders in (("tests/runners",), ("tests/stack", "tests/e2e")):
        done = subprocess.run([*command, *folders], cwd=ROOT, capture_output=True, text=True, check=True)
        found |= set(re.findall(r"^\S+\.py::\w+", done.stdout, re.MULTILINE))
    return found


def test_each_promised_use_has_a_test_in_its_part() -> None:
    page = (ROOT / "docs/reference/promises.md").read_text()
    in_ci, _, before_release = page.partition("## Before a release")
    expected = {"not release": set(ROW.findall(in_ci)), "release": set(ROW.findall(before_release))}
    assert sum(map(len, expected.values())) == page.count("::") > 20
    for marks, tests in expected.items():
        assert tests - collected(marks) == set()
