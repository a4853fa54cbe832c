"""names: list the types of the runner that two of its files define with one name (exit code 1)."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path


def main() -> int:
    """Classes and aliases are types; names in capitals are constants, those with an underscore private."""
    places: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(Path("runners/pagewise").rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", node)
            name = getattr(target, "id", getattr(target, "name", ""))
            if name[:1].isupper() and not name.isupper():
                places[name].append(file)
    twice = {name: files for name, files in places.items() if len(files) > 1}
    for name, files in twice.items():
        print(f"names: error: the type {name} is defined more than once: {', '.join(map(str, files))}")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
