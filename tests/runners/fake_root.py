"""Trees of files that stand for / of another machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

THP = "sys/kernel/mm/transparent_hugepage"
CPUS = "sys/devices/system/cpu"


def tree(root: Path, files: Mapping[str, object]) -> Path:
    """Write these files below `root`, a line each unless they have more; the root."""
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = str(content)
        file.write_text(text if text.endswith("\n") or not text else f"{text}\n")
    return root
