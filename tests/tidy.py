"""tidy [FILE]...: check the C code of kernels/ with clang-tidy (rules: kernels/.clang-tidy).

Each file is read with the options by which the test preset of GCC compiles it. Kernels are built once per
variant, but share their headers: without arguments, each kernel is checked as another variant. With FILE, all
its variants are checked. A file that passed is not read again until what it contains changes.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path

from clang_tidy import get_executable

ROOT = Path(__file__).resolve().parents[1]
STATE = ROOT / ".pagewise/clang-tidy"
RULES = ROOT / "kernels/.clang-tidy"
#: The options of a compiler that decide what a file contains; the others are GCC's own.
KEPT = ("-I", "-D", "-U", "-std=", "-march=", "-mcpu=", "-fopenmp")
#: An option and a folder, in two words.
FOLDER = "-isystem"

#: States per function of the static analyser, by default 225,000: files with loops take a fifth of the time.
ANALYSER = ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=30000")

#: One build of a file: the compiler, the file, its options.
Build = tuple[str, str, tuple[str, ...]]


def run(*words: str | Path, cwd: Path = ROOT) -> str:
    """Return what a command prints; exit with its messages if it fails."""
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        failed = shlex.join(map(str, words))
        sys.exit(f"{done.stdout}{done.stderr}lint: error: {failed} failed with the messages above")
    return done.stdout


def builds() -> dict[str, list[Build]]:
    """Return each C file's builds, without those that differ in options of no interest here."""
    commands = "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"
    run("cmake", "--preset", "gcc-test", "-B", STATE, commands, cwd=ROOT / "kernels")
    actual: dict[str, set[Build]] = {}
    for command in json.loads((STATE / "compile_commands.json").read_text()):
        file, words = command["file"], shlex.split(command["command"])
        if not file.endswith(".c"):
            continue
        options: list[str] = []
        for word, after in pairwise(words):
            options += [word, after] if word == FOLDER else [word] if word.startswith(KEPT) else []
        actual.setdefault(file, set()).add((words[0], file, tuple(options)))
    return {file: sorted(of_file) for file, of_file in sorted(actual.items())}


@cache
def openmp_folder(compiler: str) -> str:
    """Return the folder of the compiler's omp.h; the package of clang-tidy has none."""
    return run(compiler, "-print-file-name=include").strip()


def digest(build: Build) -> str:
    """Return a digest of what clang-tidy reads: rules, options, the file and what it includes."""
    compiler, file, options = build
    included = run(compiler, *options, "-M", file).replace("\\\n", " ").partition(": ")[2]
    read = [RULES, *(Path(name) for name in shlex.split(included))]
    version = importlib.metadata.version("clang-tidy")
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in read]
    return hashlib.sha256(repr((version, build, ANALYSER, digests)).encode()).hexdigest()


def check(build: Build) -> bool:
    """Report whether a build passes, and print what is wrong with it."""
    passed = STATE / "passed" / digest(build)
    if passed.exists():
        return True
    compiler, file, options = build
    words = [get_executable("clang-tidy"), "--quiet", f"--config-file={RULES}", file, "--", *options]
    words += [*ANALYSER, "-idirafter", openmp_folder(compiler)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        passed.touch()
    else:
        print(done.stdout or done.stderr, end="")
    return done.returncode == 0


def main() -> int:
    """Check the files that the command line names, else all."""
    known = builds()
    (STATE / "passed").mkdir(exist_ok=True)
    selected = [of_file[number % len(of_file)] for number, of_file in enumerate(known.values())]
    if len(sys.argv) > 1:
        files = [str(Path(name).resolve()) for name in sys.argv[1:]]
        selected = [build for file in files for build in known.get(file, [("gcc", file, ())])]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return 0 if all(list(pool.map(check, selected))) else 1


if __name__ == "__main__":
    sys.exit(main())
