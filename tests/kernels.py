"""kernels [long|all]: build kernels/ with its test presets, and run the tests that changed since they passed.

Without an argument: the first verified compiler, without long tests. `long`: also its long tests, and the
other compilers without long tests and without mini-apps. `all`: every test of every compiler, and of a build
with GCC's sanitizers and lines of 256 bytes, as A64FX has. A test runs again
when it, a file that its command names, or the machine changes; the Python tests of the mini-apps, when their
programs or tests do.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KERNELS, STATE = ROOT / "kernels", ROOT / ".pagewise"
BUILDS, SETUP = STATE / "build", STATE / "setup.json"
PROCESSORS = str(len(os.sched_getaffinity(0)))
#: What pytest selects of the mini-apps, by argument.
SELECTED = {"": "not long and not release", "long": "not release", "all": ""}
#: Tests that are not for the sanitizers' build: of instructions, counts, limits, preloaded libraries,
#: settings of malloc, and the words of the stack.
PLAIN = "|".join(
    (
        r"\.(instructions|difference|in-line)$|^harness\.(difference|width)|\.simd-|small-address-space|^build\.",
        r"^allocate\.reuse|^region\..*counts|^numa\.forbidden|\.other-runtime|\.call_stack$",
    )
)


def succeed(*words: str) -> str:
    """Return what a command prints; exit with its code if it fails."""
    done = subprocess.run(words, cwd=KERNELS, text=True, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        print(done.stdout, end="")
        sys.exit(done.returncode)
    return done.stdout


@functools.cache
def content(path: Path) -> str:
    """Return a digest of a file; of a folder, of all of kernels/, because its test may read any file."""
    if path.is_dir():
        files = sorted(file for file in KERNELS.rglob("*") if file.is_file())
        return hashlib.sha256("".join(f"{file} {content(file)}" for file in files).encode()).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digest(test: dict[str, Any]) -> str:
    """Return a digest of a test: its command and properties, the files that they name, and the machine."""
    # The folder in which it runs is not read.
    properties = [each for each in test["properties"] if each["name"] != "WORKING_DIRECTORY"]
    text = json.dumps([test["command"], properties])
    named = {Path(path) for word in test["command"] for path in re.findall(r"/[^\s;=]+", word)}
    read = [path for path in sorted(named) if path.is_relative_to(ROOT) and path.exists()]
    parts = [text, *(content(path) for path in read), content(SETUP), os.uname().release]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_long(test: dict[str, Any]) -> bool:
    """Report whether a test has the label `long`."""
    return any(each["name"] == "LABELS" and "long" in each["value"] for each in test["properties"])


def check(preset: str, *, with_long: bool, without: str = "$^") -> bool:
    """Run a build's tests that have changed since they passed; report whether these pass."""
    listed = enumerate(json.loads(succeed("ctest", "--preset", preset, "--show-only=json-v1"))["tests"], 1)
    selected = [(number, test) for number, test in listed if with_long or not is_long(test)]
    selected = [(number, test) for number, test in selected if not re.search(without, test["name"])]
    store = BUILDS / preset / "passed.json"
    passed = json.loads(store.read_text()) if store.exists() else {}
    numbers = [number for number, test in selected if passed.get(test["name"]) != digest(test)]
    print(f"kernels: {preset}: {len(numbers)} of {len(selected)} tests are new or changed", flush=True)
    if not numbers:
        return True
    selection, results = BUILDS / preset / "selected.txt", BUILDS / preset / "results.xml"
    selection.write_text("0,0,0," + ",".join(map(str, numbers)))
    words = ("--preset", preset, "--parallel", PROCESSORS, "--output-junit", results, "-I", selection)
    done = subprocess.run(["ctest", *words], cwd=KERNELS, check=False)
    cases = {case.get("name") for case in ET.parse(results).iter("testcase") if case.get("status") == "run"}
    # A test may also name the files that it writes.
    content.cache_clear()
    passed |= {test["name"]: digest(test) for _, test in selected if test["name"] in cases}
    store.write_text(json.dumps(passed, indent=0))
    return done.returncode == 0


def build(preset: str, compiler: dict[str, str], *options: str) -> None:
    """Build a preset with this compiler."""
    given = [f"-DCMAKE_C_COMPILER={compiler['c']}", f"-DCMAKE_Fortran_COMPILER={compiler['fortran']}"]
    succeed("cmake", "--preset", preset, *given, *options)
    succeed("cmake", "--build", "--preset", preset, "--parallel", PROCESSORS, "--", "--quiet")


def check_mini_apps(part: str) -> bool:
    """Run the Python tests of the mini-apps, unless nothing changed; report whether they pass."""
    files = [file for file in BUILDS.glob("*-test/mini/**/*") if os.access(file, os.X_OK)]
    files += [file for file in (KERNELS / "mini").rglob("*") if file.suffix in (".py", ".yaml")]
    actual = [content(SETUP), *(content(file) for file in sorted(files) if file.is_file())]
    store = BUILDS / f"mini-apps-{part}.json"
    if store.exists() and json.loads(store.read_text()) == actual:
        print("kernels: the Python tests of the mini-apps have passed as they are")
        return True
    words = ["-m", "pytest", "--timeout", "1500", "--numprocesses", "auto", "--dist", "worksteal"]
    words += ["-m", SELECTED[part], "--import-mode=importlib", "kernels/mini"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, check=False)
    if done.returncode == 0:
        store.write_text(json.dumps(actual))
    return done.returncode == 0


def main() -> int:
    """Build and check with the compilers that the set-up verified."""
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    compilers = [each for each in json.loads(SETUP.read_text())["compilers"] if each["entered"]]
    if not compilers:
        print("kernels: error: no verified compiler on this machine", file=sys.stderr)
        print("  remedy: run ./pagewise doctor to see why", file=sys.stderr)
        return 4
    good = True
    for number, each in enumerate(compilers if part else compilers[:1]):
        preset = f"{each['name']}-test"
        print(f"kernels: {each['name']}: {each['c']}, {each['fortran']}", flush=True)
        build(preset, each, f"-DPAGEWISE_MINI={'ON' if part == 'all' or number == 0 else 'OFF'}")
        good &= check(preset, with_long=part == "all" or (part == "long" and number == 0))
    for each in compilers if part == "all" else []:
        if each["name"] == "gcc":
            build("gcc-sanitizers", each)
            good &= check("gcc-sanitizers", with_long=True, without=PLAIN)
    return 0 if check_mini_apps(part) and good else 1


if __name__ == "__main__":
    sys.exit(main())
