"""tests/tidy.py, by which tests/lint checks C code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import called

SCRIPT = Path(__file__).parents[1] / "tidy.py"
DEFECTS = {
    "uninitialised": "int next; return at + next;",
    "semicolon": "if (at > 0); return at;",
    "undeclared": "return missing(at);",
}


def check(folder: Path, bodies: dict[str, str]) -> subprocess.CompletedProcess[str]:
    for name, body in bodies.items():
        (folder / f"{name}.c").write_text(f"int part(int at);\nint part(int at)\n{{\n    {body}\n}}\n")
    files = [folder / f"{name}.c" for name in bodies]
    return called([sys.executable, SCRIPT, *files])


@pytest.mark.long
def test_defects_in_c_code_are_reported(tmp_path: Path) -> None:
    sound = check(tmp_path, {"sound": "return at > 0 ? at - 1 : 0;"})
    assert sound.returncode == 0, sound.stdout + sound.stderr
    defective = check(tmp_path, DEFECTS)
    assert defective.returncode == 1
    assert all(f"{name}.c:" in defective.stdout for name in DEFECTS)
