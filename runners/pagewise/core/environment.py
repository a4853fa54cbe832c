"""Environment variables that change how a program allocates memory, is loaded or runs its threads."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping

_INFLUENCES = re.compile(
    # The loader and the C library.
    r"LD_\w+|GLIBC_TUNABLES|MALLOC_\w+|"
    # Allocators: jemalloc (with prefixes of builds), mimalloc, tcmalloc, TBB's, Go's.
    r"(?:_RJEM_|JE_|_?JEMALLOC_)\w+|MIMALLOC_\w+|TCMALLOC_\w+|TBB_?MALLOC_\w+|"
    r"GO(?:DEBUG|GC|MEMLIMIT|MAXPROCS)|"
    # Virtual machines and interpreters: Java, Python.
    r"JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS|PYTHONMALLOC|PYTHON_PYMALLOC_HUGEPAGES|"
    # Large pages: libhugetlbfs, Fujitsu's libmpg.
    r"HUGETLB_\w+|XOS_MMM_\w+|"
    # Threads: OpenMP of the standard, of GCC, LLVM, Intel and Fujitsu; BLAS libraries.
    r"OMP_\w+|OMPT_\w+|GOMP_\w+|KMP_\w+|LIBOMP_\w+|FLIB_\w+|PARALLEL|"
    r"(?:MKL|OPENBLAS|GOTO|BLIS)_\w+"
)

#: The program that sets variables of another.
ENV = shutil.which("env") or "/usr/bin/env"
#: The locale of tools whose output is parsed: numbers with a decimal point, messages in English.
C_LOCALE = {"LC_ALL": "C"}


def influences(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that affect memory, libraries or threads, sorted by name."""
    return {name: environment[name] for name in sorted(environment) if _INFLUENCES.fullmatch(name)}


def without_influences(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without these variables."""
    return {name: value for name, value in environment.items() if not _INFLUENCES.fullmatch(name)}
