"""The lint of identifiers: excluded words in names, options and files; participles as functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stage import ROOT

FILES = {
    "a.py": ("left_out = 1\n", "left_out"),
    "b.f90": ("integer :: ahead ! not: twin\n", "ahead"),
    "c.h": ("int populate_seconds; /* twin */\n", "populate_seconds"),
    "d.md": (f"Use `{'--'}populate`.\n", "populate"),
    "twin.txt": ("", "twin"),
    "setup/e.py": ("def sized(): ...\n", "sized"),
    "g.py": ('"""Not found, and left_out in a comment."""\nnot_found = MAP_POPULATE = 1\n', None),
}


@pytest.mark.parametrize("name", FILES)
def test_excluded_names_are_reported(name: str, tmp_path: Path) -> None:
    content, reported = FILES[name]
    for file, text in (
        (name, content),
        ("tests/identifiers.txt", (ROOT / "tests/identifiers.txt").read_text()),
    ):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
    for command in (["git", "init", "-q"], ["git", "add", "."]):
        subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, ROOT / "tests/names.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == (0 if reported is None else 1)
    assert reported is None or (name in done.stdout and f"{reported}: " in done.stdout)
