"""For envs/source: keep only the system's GCC of a site's packages.

system_compiler.py SITE_FOLDER OUTPUT_FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml


def main(site: Path, output: Path) -> None:
    """Write packages.yaml; its `::` overrides all other files' packages."""
    file = site / "packages.yaml"
    known = yaml.safe_load(file.read_text(encoding="utf-8"))["packages"] if file.exists() else {}
    gcc = {"gcc": {"externals": known["gcc"]["externals"]}} if "gcc" in known else {}
    output.mkdir(parents=True, exist_ok=True)
    text = f"packages::\n  {json.dumps(gcc)}\n"
    (output / "packages.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
