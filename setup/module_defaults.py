"""Write what `module load pagewise-micro` loads, for each package of a module tree.

module_defaults.py TREE

Base pages without prefetch instructions, built by GCC if it is there: what others are compared with. It is an
alias, because with Lmod's defaults a part of a name would also load the default.
"""

from __future__ import annotations

import sys
from pathlib import Path


def rank(name: str) -> tuple[bool, bool, bool, int, str]:
    """Sort key of a module <package>/<version>/<compiler>/<hugepages>/<tail>; the default is the smallest."""
    *_, compiler, hugepages, tail = name.split("/")
    other_prefetch = not tail.startswith("hardware-regular")
    return hugepages != "none", other_prefetch, not compiler.startswith("gcc-"), len(tail), name


def main(tree: Path) -> None:
    """Write .modulerc; in a path with a space .modulerc.lua, because Lmod passes paths to Tcl unquoted."""
    modules = [str(file.relative_to(tree).with_suffix("")) for file in tree.glob("*/*/*/*/*.lua")]
    defaults = {name.partition("/")[0]: name for name in sorted(modules, key=rank, reverse=True)}
    if " " in str(tree.resolve()):
        lines = [f'module_alias("{package}", "{name}")\n' for package, name in sorted(defaults.items())]
        (tree / ".modulerc.lua").write_text("".join(lines), encoding="utf-8")
        return
    lines = [f"module-alias {package} {name}\n" for package, name in sorted(defaults.items())]
    (tree / ".modulerc").write_text("".join(["#%Module\n", *lines]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
