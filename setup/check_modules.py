"""Check that a module tree written by Spack has one module for each root of an environment, and nothing else.

check_modules.py LOCKFILE TREE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml


def faults(lockfile: Path, tree: Path) -> list[str]:
    """List the faults of the tree, one line each."""
    lock = json.loads(lockfile.read_text(encoding="utf-8"))
    roots = {root["hash"]: root["spec"] for root in lock["roots"]}
    index_file = tree / "module-index.yaml"
    index = (
        yaml.safe_load(index_file.read_text(encoding="utf-8"))["module_index"] if index_file.exists() else {}
    )
    files = {str(file) for file in (tree / "Core").rglob("*.lua")}
    lines = [f"{spec} (hash {hash_}) has no module" for hash_, spec in roots.items() if hash_ not in index]
    for hash_, entry in index.items():
        if hash_ not in roots:
            lines.append(f"{entry['use_name']} is not a root of the environment")
        elif entry["path"] not in files:
            lines.append(f"{entry['use_name']} was not written")
    lines += [
        f"{file} belongs to no root" for file in sorted(files - {entry["path"] for entry in index.values()})
    ]
    return lines


if __name__ == "__main__":
    lines = faults(Path(sys.argv[1]), Path(sys.argv[2]))
    print("\n".join(lines), end="\n" if lines else "", file=sys.stderr)
    sys.exit(1 if lines else 0)
