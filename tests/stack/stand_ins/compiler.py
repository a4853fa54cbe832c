#!/usr/bin/env python3
"""Stands in for a compiler that is not here: writes down its calls, and has a cross compiler do the work.

Called by the name of the compiler (frt, fcc, armflang ...). Beside it: calls.jsonl, which it appends to, and
delegates.json, the cross compilers by language. CMake finds what it looks for in the compiler that it names.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

#: By name: the language, what --version says, and the macros by which CMake knows the compiler.
KNOWN = {
    "frt": ("fortran", "frt (FRT) 4.5.0 20210407", ["-U__GNUC__", "-D__FUJITSU=1"]),
    "fcc": (
        "c",
        "fcc (FCC) 4.5.0 20210407",
        [
            "-D__CLANG_FUJITSU=1",
            "-D__FCC_major__=4",
            "-D__FCC_minor__=5",
            "-D__FCC_patchlevel__=0",
            '-D__clang_version__="7.1.0"',
        ],
    ),
    "armflang": (
        "fortran",
        "Arm C/C++/Fortran Compiler version 21.0 (build number 879)",
        ["-U__GNUC__", "-D__FLANG=1", "-D__FLANG_MAJOR__=21", "-D__FLANG_MINOR__=0"],
    ),
    "armclang": ("c", "Arm C/C++/Fortran Compiler version 21.0 (build number 879)", []),
    "crayftn": ("fortran", "Cray Fortran : Version 10.0.3", []),
    "craycc": ("c", "Cray clang version 10.0.3", []),
    "flang": ("fortran", "flang version 20.1.0", []),
    "clang": ("c", "clang version 20.1.0", []),
    "gfortran": ("fortran", "GNU Fortran (GCC) 12.2.0", []),
    "gcc": ("c", "gcc (GCC) 12.2.0", []),
}
#: What GCC calls by another name; what it does not know, it is not told.
TRANSLATED = {
    "-Kopenmp": "-fopenmp",
    "-KPIC": "-fPIC",
    "-Free": "-ffree-form",
    "-Fixed": "-ffixed-form",
    "-Cpp": "-cpp",
    "-###": "-v",
}
UNKNOWN = re.compile(r"-K|-N|-Az$|-armpl$|-lamath$|-mcpu=|-mtune=|-msve-|-Ofast$|-O[0-3]$|-ffast-math$|-h")


def translated(arguments: list[str]) -> list[str]:
    """What GCC is told, without optimisation."""
    told, words = ["-O0"], iter(arguments)
    for word in words:
        if word == "-M":  # Fujitsu's folder of modules
            told += ["-J", next(words)]
        elif word in TRANSLATED:
            told.append(TRANSLATED[word])
        elif not UNKNOWN.match(word):
            told.append(word)
    # Fujitsu's -Cpp -P preprocesses and stops.
    return [*told, "-E"] if {"-Cpp", "-P"} <= set(arguments) else told


def main() -> None:
    """Write down and delegate."""
    name, folder = Path(sys.argv[0]).name, Path(sys.argv[0]).parent
    arguments = sys.argv[1:]
    language, version, macros = KNOWN[name]
    if "--version" in arguments or arguments == ["-V"]:
        print(version)
        return
    with (folder / "calls.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps({"program": name, "arguments": arguments}) + "\n")
    if not any("CompilerId" in word for word in arguments):
        macros = []
    driver = json.loads((folder / "delegates.json").read_text(encoding="utf-8"))[language]
    rest = translated(arguments) if arguments[:1] != ["-v"] else arguments
    os.execv(driver, [driver, *(rest if arguments[:1] == ["-v"] else [*macros, *rest])])


if __name__ == "__main__":
    main()
