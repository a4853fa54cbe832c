"""Scripts that tests write, and programs that they start and wait for."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: A program that takes longer than these seconds hangs. It is no limit on speed, also on a busy machine.
HANGS_AFTER = 300


def write_script(file: Path, text: str) -> Path:
    """Write an executable file, in a folder that may be missing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def called(words: Sequence[object], **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command, and keep its outputs apart; `more` is for subprocess.run."""
    more = {"check": False, "timeout": HANGS_AFTER, **more}
    return subprocess.run([*map(str, words)], capture_output=True, text=True, **more)
