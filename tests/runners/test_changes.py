"""The notes of changes: towncrier makes CHANGELOG.md of them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from typing import NoReturn

import pytest

from stage import ROOT

NOTES = sorted((ROOT / "changes").glob("*.md"))


@pytest.mark.long
def test_the_notes_make_a_section_of_the_changelog(unavailable: Callable[[str], NoReturn]) -> None:
    if importlib.util.find_spec("towncrier") is None:
        unavailable("needs towncrier (make setup-tests)")
    build = [sys.executable, "-m", "towncrier", "build", "--draft", "--version=9.9.9", "--date=2030-01-01"]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "## 9.9.9 (2030-01-01)" in done.stdout.splitlines()
    assert sum(line.startswith("- ") for line in done.stdout.splitlines()) == len(NOTES)
