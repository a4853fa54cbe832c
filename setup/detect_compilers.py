"""Detect compilers of C and Fortran on PATH, and verify them by running test programs.

The facts of each compiler are in kernels/cmake/compilers; those with `detection` are detected.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SUM_OF_SQUARES = "333833500"
SECONDS_FOR_A_PROGRAM = 60
#: The facts of the compilers that are detected, by name.
FACTS: dict[str, dict[str, Any]] = {
    facts["name"]: facts
    for file in sorted((Path(__file__).parents[1] / "kernels" / "cmake" / "compilers").glob("*.json"))
    if "detection" in (facts := json.loads(file.read_text(encoding="utf-8")))
}


@dataclass(frozen=True)
class Program:
    """A program that a compiler must compile into one that prints the right answer."""

    title: str
    source: str
    language: str
    answer: str
    options: tuple[str, ...] = ()


PROGRAMS = (
    Program("C", "c.c", "c", SUM_OF_SQUARES),
    Program("Fortran", "fortran.f90", "fortran", SUM_OF_SQUARES),
    Program("C OpenMP", "c_openmp.c", "c", f"2 {SUM_OF_SQUARES}", ("-fopenmp",)),
    Program("Fortran OpenMP", "fortran_openmp.f90", "fortran", f"2 {SUM_OF_SQUARES}", ("-fopenmp",)),
)


@dataclass
class Compiler:
    """A C and Fortran compiler, whether it was accepted (entered), and why not."""

    name: str
    version: str
    c: str
    cxx: str | None
    fortran: str | None
    entered: bool = False
    reason: str | None = None
    proof: list[dict[str, Any]] = field(default_factory=list)


def output_of(*command: str) -> str:
    """The standard output of a command; empty if it cannot be run."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS_FOR_A_PROGRAM, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def programs_named(pattern: str) -> Iterator[tuple[re.Match[str], Path]]:
    """The executables on PATH whose name matches; of several with one name, the first on PATH."""
    seen: set[str] = set()
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        try:
            entries = sorted(Path(folder).iterdir())
        except OSError:
            continue
        for entry in entries:
            match = re.fullmatch(pattern, entry.name)
            if match and entry.name not in seen and os.access(entry, os.X_OK) and not entry.is_dir():
                seen.add(entry.name)
                yield match, entry


def version_key(version: str) -> list[int]:
    """The sort key of a version: its numbers."""
    return [int(part) for part in re.findall(r"\d+", version)]


def compilers_of(name: str, prefix: str = "") -> list[Compiler]:
    """The compilers of one family on PATH, newest first; each version once, by its most specific name.

    prefix: of the names of cross compilers.
    """
    detection = FACTS[name]["detection"]
    programs = detection["programs"]
    by_version: dict[str, Compiler] = {}
    for match, path in programs_named(rf"{prefix}(?:{'|'.join(programs['c'])})(-\d+)?"):
        version = version_in(detection["version"], output_of(str(path), "--version"))
        if not version:
            continue
        suffix = match.group(1) or ""
        others = {}
        for language in ("cxx", "fortran"):
            in_same_folder = (path.with_name(prefix + stem + suffix) for stem in programs[language])
            others[language] = next((str(file) for file in in_same_folder if os.access(file, os.X_OK)), None)
        candidate = Compiler(name, version, str(path), others["cxx"], others["fortran"])
        known = by_version.get(version)
        if known is None or (candidate.fortran and (not known.fortran or suffix)):
            by_version[version] = candidate
    return sorted(by_version.values(), key=lambda compiler: version_key(compiler.version), reverse=True)


def verify(compiler: Compiler, sources: Path) -> None:
    """Compile and run the programs, and accept the compiler if all print the right answer."""
    drivers = {"c": compiler.c, "fortran": compiler.fortran}
    for program in PROGRAMS:
        driver = drivers[program.language]
        if driver is None:
            compiler.proof.append({"program": program.title, "ok": False, "detail": "compiler missing"})
            continue
        ok, detail = verify_program(driver, program, sources)
        compiler.proof.append({"program": program.title, "ok": ok, "detail": detail})
    failed = [entry for entry in compiler.proof if not entry["ok"]]
    compiler.entered = not failed
    if failed:
        compiler.reason = "; ".join(f"{entry['program']}: {entry['detail']}" for entry in failed)


def verify_program(
    driver: str, program: Program, sources: Path, runner: tuple[str, ...] = ()
) -> tuple[bool, str]:
    """Whether a driver compiles a program that runs (with `runner`) and prints the answer; with details."""
    with tempfile.TemporaryDirectory(prefix="pagewise-proof-") as folder:
        binary = Path(folder, "proof")
        command = [driver, "-O2", *program.options, str(sources / program.source), "-o", str(binary)]
        try:
            compiled = subprocess.run(
                command,
                capture_output=True,
                text=True,
                cwd=folder,
                timeout=SECONDS_FOR_A_PROGRAM,
                check=False,
            )
            if compiled.returncode != 0:
                lines = compiled.stderr.strip().splitlines() or [f"exit code {compiled.returncode}"]
                reason = next((line for line in lines if "error" in line), lines[-1])
                return False, f"compilation failed: {reason.strip()}"
            ran = subprocess.run(
                [*runner, str(binary)],
                capture_output=True,
                text=True,
                timeout=SECONDS_FOR_A_PROGRAM,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            return False, f"cannot be run: {fault}"
    printed = " ".join(ran.stdout.split())
    if ran.returncode != 0 or printed != program.answer:
        lines = ran.stderr.strip().splitlines()
        reason = f": {lines[-1]}" if lines else ""
        return (
            False,
            f"exit code {ran.returncode}, printed '{printed}' instead of '{program.answer}'{reason}",
        )
    return True, f"printed {printed}"


def verified_compilers(sources: Path) -> list[Compiler]:
    """All compilers on PATH. The newest of each default family that passes the verification is accepted."""
    families = [compilers_of(name) for name in FACTS]
    for family in families:
        entered: Compiler | None = None
        for compiler in family:
            if entered is None:
                verify(compiler, sources)
                entered = compiler if compiler.entered else None
            else:
                newer = f"{entered.name} {entered.version}"
                compiler.reason = f"{newer} is newer; to use both, name them in a folder of envs/sites"
        if entered and not FACTS[entered.name]["detection"].get("by_default"):
            entered.entered = False
            entered.reason = "verified, but not used by default: name it in a folder of envs/sites"
    return [compiler for family in families for compiler in family]


def version_in(pattern: str, text: str) -> str | None:
    """The first group of the pattern's first match in the text."""
    match = re.search(pattern, text)
    return match.group(1) if match else None
