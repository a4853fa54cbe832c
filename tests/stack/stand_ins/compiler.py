#!/usr/bin/env python3
"""Stand-in for a compiler that is not installed: records its calls and delegates to a cross compiler.

Called by the name of the compiler (frt, fcc, armflang ...). In the same folder: calls.jsonl, which it appends
to, and delegates.json, the cross compilers by language. CMake identifies it as the compiler of that name.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

#: By name: the language, the output of --version, and the macros by which CMake identifies the compiler.
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
    "ftn": (
        "fortran",
        "Cray Fortran : Version 10.0.3",
        ["-U__GNUC__", "-D_CRAYFTN=1", "-D_RELEASE_MAJOR=10", "-D_RELEASE_MINOR=0"],
    ),
    "icx": (
        "c",
        "Intel(R) oneAPI DPC++/C++ Compiler 2025.2.1",
        ["-D__INTEL_LLVM_COMPILER=20250201", "-D__clang__=1"],
    ),
    "ifx": ("fortran", "ifx (IFX) 2025.2.1", ["-U__GNUC__", "-D__INTEL_LLVM_COMPILER=20250201"]),
    "nvc": ("c", "nvc 25.7-0", ["-D__NVCOMPILER=1", "-D__NVCOMPILER_MAJOR__=25", "-D__NVCOMPILER_MINOR__=7"]),
    "nvfortran": (
        "fortran",
        "nvfortran 25.7-0",
        ["-U__GNUC__", "-D__NVCOMPILER=1", "-D__NVCOMPILER_MAJOR__=25", "-D__NVCOMPILER_MINOR__=7"],
    ),
    "amdclang": (
        "c",
        "AMD clang version 17.0.6",
        ["-D__clang__=1", "-D__clang_major__=17", "-D__clang_minor__=0", "-D__clang_patchlevel__=6"],
    ),
    "amdflang": (
        "fortran",
        "AMD flang version 17.0.6",
        ["-U__GNUC__", "-D__FLANG=1", "-D__FLANG_MAJOR__=17", "-D__FLANG_MINOR__=0"],
    ),
    "ibm-clang": (
        "c",
        "IBM Open XL C/C++ for Linux on Power 17.1.1",
        [
            "-D__clang__=1",
            "-D__open_xl__=1",
            "-D__open_xl_version__=17",
            "-D__open_xl_release__=1",
            "-D__open_xl_modification__=1",
            "-D__open_xl_ptf_fix_level__=0",
        ],
    ),
    "xlc": (
        "c",
        "IBM XL C/C++ for Linux, V16.1.1",
        [
            "-D__ibmxl__=1",
            "-D__ibmxl_version__=16",
            "-D__ibmxl_release__=1",
            "-D__ibmxl_modification__=1",
            "-D__ibmxl_ptf_fix_level__=0",
        ],
    ),
    "xlf": ("fortran", "IBM XL Fortran for Linux, V16.1.1", ["-U__GNUC__", "-D__IBMC__=1611"]),
    "nagfor": (
        "fortran",
        "NAG Fortran Compiler Release 7.2",
        ["-U__GNUC__", "-DNAGFOR=1", "-D__NAG_COMPILER_RELEASE=72"],
    ),
    "craycc": ("c", "Cray clang version 10.0.3", []),
    "flang": ("fortran", "flang version 20.1.0", []),
    "clang": ("c", "clang version 20.1.0", []),
    "gfortran": ("fortran", "GNU Fortran (GCC) 12.2.0", []),
    "gcc": ("c", "gcc (GCC) 12.2.0", []),
}
#: The macros of fcc without -Nclang, its classic mode.
CLASSIC = ["-U__GNUC__", "-D__FUJITSU=1", '-D__FCC_version__="4.5.0"']
#: Options that GCC has under another name; unknown options are dropped.
TRANSLATED = {
    "-Kopenmp": "-fopenmp",
    "-KPIC": "-fPIC",
    "-Free": "-ffree-form",
    "-Fixed": "-ffixed-form",
    "-Cpp": "-cpp",
    "-###": "-v",
}
UNKNOWN = re.compile(
    r"-K|-N|-Az$|-armpl$|-lamath$|-mcpu=|-mtune=|-msve-|-Ofast$|-O[0-3]$|-ffast-math$|-h|-q|-M(?!F|D|T|P)|-fp-model|-fno-fast-math$|-extra"
)


def translated(arguments: list[str]) -> list[str]:
    """The options for GCC, without optimisation."""
    options, words = ["-O0"], iter(arguments)
    for word in words:
        if word == "-M":  # Fujitsu's folder of modules
            options += ["-J", next(words)]
        elif word in TRANSLATED:
            options.append(TRANSLATED[word])
        elif not UNKNOWN.match(word):
            options.append(word)
    # Fujitsu's -Cpp -P preprocesses and stops.
    return [*options, "-E"] if {"-Cpp", "-P"} <= set(arguments) else options


def main() -> None:
    """Record the call and delegate it."""
    name, folder = Path(sys.argv[0]).name, Path(sys.argv[0]).parent
    arguments = sys.argv[1:]
    language, version, macros = KNOWN[name]
    if "--version" in arguments or arguments == ["-V"]:
        print(version)
        return
    with (folder / "calls.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps({"program": name, "arguments": arguments}) + "\n")
    if name == "fcc" and "-Nclang" not in arguments:
        macros = CLASSIC
    if not any("CompilerId" in word for word in arguments):
        macros = []
    driver = json.loads((folder / "delegates.json").read_text(encoding="utf-8"))[language]
    rest = translated(arguments) if arguments[:1] != ["-v"] else arguments
    os.execv(driver, [driver, *macros, *rest])


if __name__ == "__main__":
    main()
