"""Detect what this machine provides for Spack: compilers, verified by running test programs, and packages.

    detect.py ROOT

Writes two outputs to ROOT/.pagewise: setup.json, which `pagewise doctor` reads, and detected/, the site that
environments include, with packages.yaml and the compilers' toolchains in definitions.yaml. Both are written
as JSON, which is also YAML, because only the standard library is available.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

SUM_OF_SQUARES = "333833500"
SECONDS_FOR_A_PROGRAM = 60


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
MPI_PROGRAM = Program("MPI", "mpi.c", "c", SUM_OF_SQUARES)
#: The version line of each MPI's C compiler wrapper.
MPIS = {"openmpi": r"Open MPI (\d[\d.]*)", "mpich": r"MPICH version (\d[\d.]*)"}


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


@dataclass(frozen=True)
class External:
    """A package that is installed on the system."""

    name: str
    version: str
    prefix: str
    known_to_spack: bool
    library: str | None = None


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


def compilers_of(
    name: str, c: str, companions: dict[str, tuple[str, ...]], version_of: Callable[[Path], str]
) -> list[Compiler]:
    """The compilers of one family on PATH, newest first; each version once, by its most specific name."""
    by_version: dict[str, Compiler] = {}
    for match, path in programs_named(rf"{c}(-\d+)?"):
        version = version_of(path)
        if not version:
            continue
        suffix = match.group(1) or ""
        others = {}
        for language, stems in companions.items():
            beside = (path.with_name(stem + suffix) for stem in stems)
            others[language] = next((str(file) for file in beside if os.access(file, os.X_OK)), None)
        candidate = Compiler(name, version, str(path), others["cxx"], others["fortran"])
        known = by_version.get(version)
        if known is None or (candidate.fortran and (not known.fortran or suffix)):
            by_version[version] = candidate
    return sorted(by_version.values(), key=lambda compiler: version_key(compiler.version), reverse=True)


def gcc_version(path: Path) -> str:
    """The version of a gcc; empty if it is a clang by the name of gcc."""
    text = output_of(str(path), "--version")
    return "" if "clang" in text else output_of(str(path), "-dumpfullversion").strip()


def clang_version(path: Path) -> str:
    """The version of a clang."""
    match = re.search(r"clang version (\d+(?:\.\d+)+)", output_of(str(path), "--version"))
    return match.group(1) if match else ""


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
    """All compilers on PATH. The newest of each family that passes the verification is accepted."""
    families = (
        compilers_of("gcc", "gcc", {"cxx": ("g++",), "fortran": ("gfortran",)}, gcc_version),
        compilers_of(
            "llvm", "clang", {"cxx": ("clang++",), "fortran": ("flang", "flang-new")}, clang_version
        ),
    )
    for family in families:
        entered: Compiler | None = None
        for compiler in family:
            if entered is None:
                verify(compiler, sources)
                entered = compiler if compiler.entered else None
            else:
                newer = f"{entered.name} {entered.version}"
                compiler.reason = f"{newer} is newer; to use both, name them in a folder of envs/sites"
    return [compiler for family in families for compiler in family]


def version_in(pattern: str, text: str) -> str | None:
    """The first group of the pattern's first match in the text."""
    match = re.search(pattern, text)
    return match.group(1) if match else None


def defined(header: str, *names: str, include: Path = Path("/usr/include")) -> str | None:
    """The version that a header defines, as one string or as several numbers; these are joined by dots."""
    file = next(iter(sorted(include.glob(header))), None)
    text = file.read_text(encoding="utf-8", errors="replace") if file else ""
    values = [version_in(rf"#\s*define\s+{name}\s+\D*?(\d[\d.]*)", text) for name in names]
    return None if None in values else ".".join(value for value in values if value)


def hdf5() -> tuple[str | None, str]:
    """Version and prefix of the HDF5 of h5cc on PATH, or of Debian's serial HDF5."""
    if path := shutil.which("h5cc"):
        version = version_in(r"HDF5 Version:\s*(\d[\d.]*)", output_of(path, "-showconfig"))
        if version:
            return version, str(Path(path).parent.parent)
    names = ("H5_VERS_MAJOR", "H5_VERS_MINOR", "H5_VERS_RELEASE")
    return defined("hdf5/serial/H5public.h", *names), "/usr"


def sleef() -> str | None:
    """The version of SLEEF, if it has the functions of the vector ABI."""
    names = ("SLEEF_VERSION_MAJOR", "SLEEF_VERSION_MINOR", "SLEEF_VERSION_PATCHLEVEL")
    places = ("lib*/libsleefgnuabi.so", "lib/*/libsleefgnuabi.so")
    installed = any(file for place in places for file in Path("/usr").glob(place))
    return (defined("sleef.h", *names) or defined("*/sleef.h", *names)) if installed else None


def libomp() -> str | None:
    """The version of LLVM's OpenMP that programs load, which can differ from the compiler's version."""
    places = ("lib*/libomp.so", "lib/*/libomp.so")
    files = [file.resolve() for place in places for file in sorted(Path("/usr").glob(place))]
    if not files:
        return None
    # The package that owns the file: `libomp5-22:amd64: /usr/lib/llvm-22/lib/libomp.so.5`.
    owner = output_of("dpkg-query", "--search", str(files[0])).partition(":")[0]
    return package_version(owner) if owner else package_version(str(files[0]), "--file")


def mpi(sources: Path) -> External | None:
    """The MPI whose mpicc is on PATH, if it passes the verification."""
    path = shutil.which("mpicc")
    if path is None:
        return None
    output = output_of(path, "-showme:version") + output_of(path, "-v")
    versions = ((name, version_in(pattern, output)) for name, pattern in MPIS.items())
    name, version = next(((name, version) for name, version in versions if version), (None, ""))
    if name is None:
        known = ", ".join(MPIS)
        print(f"setup: {path}: not used: not one of {known}; to use it, name it in a folder of envs/sites")
        return None
    verified, detail = verify_program(path, MPI_PROGRAM, sources)
    print(f"setup: {name} {version} ({path}): {'verified' if verified else f'not used: {detail}'}")
    return External(name, version, str(Path(path).parent.parent), True) if verified else None


def externals(sources: Path) -> list[External]:
    """The installed packages among those that this project's or its users' recipes need."""
    tools = {"cmake": r"version (\d[\d.]*)", "ninja": r"(\d[\d.]*)", "gmake": r"GNU Make (\d[\d.]*)"}
    candidates: list[tuple[str, str | None, str, bool]] = []
    for name, pattern in tools.items():
        path = shutil.which(name) or (shutil.which("make") if name == "gmake" else None)
        if path:
            version = version_in(pattern, output_of(path, "--version"))
            candidates.append((name, version, str(Path(path).parent.parent), True))
    papi = None
    if (header := Path("/usr/include/papi.h")).exists():
        papi = version_in(
            r"PAPI_VERSION\s+PAPI_VERSION_NUMBER\(\s*(\d+,\s*\d+,\s*\d+)", header.read_text(encoding="utf-8")
        )
    candidates.append(("papi", re.sub(r",\s*", ".", papi) if papi else None, "/usr", True))
    candidates.append(("hdf5", *hdf5(), True))
    candidates.append(("sleef", sleef(), "/usr", True))
    candidates.append(("llvm-openmp", libomp(), "/usr", True))
    # For envs/suites; other environments do not use it.
    candidates.append(("hpcc", packaged_version("hpcc"), "/usr", True))
    # No recipe here needs these yet, and each external costs time in every solve.
    hwloc = version_in(r"hwloc-\S+ (\d[\d.]*)", output_of("hwloc-info", "--version"))
    candidates.append(("hwloc", hwloc, "/usr", False))
    hyperfine = version_in(r"(\d[\d.]*)", output_of("hyperfine", "--version"))
    candidates.append(("hyperfine", hyperfine, "/usr", False))
    packages = [
        External(name, version, prefix, known) for name, version, prefix, known in candidates if version
    ]
    packages += numerical_libraries()
    message_passing = mpi(sources)
    return [*packages, message_passing] if message_passing else packages


#: Files of numerical libraries below /usr, best first, by Spack's names. The target of a distribution's links
#: such as libblas.so can change at any time, so the files themselves are named.
NUMERICAL = {
    "openblas": (
        "lib/*/openblas-serial/libopenblas.so",
        "lib/*/openblas-*/libopenblas.so",
        "lib64/libopenblas.so",
    ),
    "blis": ("lib/*/blis-serial/libblis.so", "lib/*/blis-*/libblis.so", "lib64/libblis.so"),
    "netlib-lapack": ("lib/*/blas/libblas.so", "lib64/libblas.so"),
    "fftw": ("lib/*/libfftw3.so", "lib64/libfftw3.so"),
}


def numerical_libraries(usr: Path = Path("/usr")) -> list[External]:
    """The installed libraries of NUMERICAL, with the version of the package that owns the file."""
    libraries = []
    for name, patterns in NUMERICAL.items():
        file = next((path for pattern in patterns for path in sorted(usr.glob(pattern))), None)
        version = owners_version(file) if file else None
        if version:
            libraries.append(External(name, version, str(usr), True, str(file)))
    return libraries


def owners_version(file: Path) -> str | None:
    """The version, without the distribution's revision, of the package that owns a file."""
    owner = output_of("dpkg-query", "--search", str(file)).partition(":")[0]
    queries = (
        ["dpkg-query", "--show", "--showformat=${Version}\n", owner],
        ["rpm", "-q", "--qf", "%{VERSION}\n", "-f", str(file)],
    )
    output = next((text for text in (output_of(*query) for query in queries) if text[:1].isdigit()), "")
    return version_in(r"(?:\d+:)?(\d[\d.]*)", output)


def packaged_version(name: str) -> str | None:
    """The version, without the distribution's revision, of a program on PATH that dpkg or rpm installed."""
    return None if shutil.which(name) is None else package_version(name)


def package_version(name: str, *by: str) -> str | None:
    """The version of a dpkg or rpm package, without the distribution's revision; `by`: options of rpm -q."""
    queries = (
        ["dpkg-query", "--show", "--showformat=${Version}", name],
        ["rpm", "-q", *by, "--qf", "%{VERSION}", name],
    )
    output = next((text for text in (output_of(*query) for query in queries) if text[:1].isdigit()), "")
    return version_in(r"(?:\d+:)?(\d[\d.]*)", output)


def packages_yaml(compilers: list[Compiler], packages: list[External]) -> dict[str, Any]:
    """Spack's packages section: the accepted compilers and the packages known to Spack."""
    section: dict[str, Any] = {}
    for compiler in compilers:
        if compiler.entered:
            languages = "c,c++,fortran" if compiler.cxx else "c,fortran"
            spec = {
                "gcc": f"gcc@={compiler.version} languages='{languages}'",
                "llvm": f"llvm@={compiler.version} +clang+flang",
            }[compiler.name]
            drivers = {"c": compiler.c, "cxx": compiler.cxx, "fortran": compiler.fortran}
            section[compiler.name] = {
                "externals": [
                    {
                        "spec": spec,
                        "prefix": str(Path(compiler.c).resolve().parent.parent),
                        "extra_attributes": {
                            "compilers": {key: value for key, value in drivers.items() if value}
                        },
                    }
                ]
            }
    for package in packages:
        if package.known_to_spack:
            entry: dict[str, Any] = {"spec": f"{package.name}@={package.version}", "prefix": package.prefix}
            if package.library:
                entry["extra_attributes"] = {"library": package.library}
            section[package.name] = {"externals": [entry]}
    return {"packages": section}


def spack_facts(state: Path) -> dict[str, Any]:
    """The facts about Spack, or why it is unavailable (written by get-spack)."""
    no_spack = state / "no-spack"
    if no_spack.exists():
        reason, remedy = no_spack.read_text(encoding="utf-8").splitlines()[:2]
        return {"available": False, "reason": reason, "remedy": remedy}
    root = (state / "spack").resolve()
    if not (root / "bin/spack").exists():
        return {"available": False, "reason": "Spack was not fetched", "remedy": "make setup"}
    if not (state / "venv/bin/python").exists():
        reason = "the Python environment with Spack's solver (clingo) could not be created"
        return {
            "available": False,
            "reason": reason,
            "remedy": f"fix the error in {state}/logs/python.log, then make setup",
        }
    init = (root / "lib/spack/spack/__init__.py").read_text(encoding="utf-8")

    def git(repository: Path, *arguments: str) -> str | None:
        return output_of("git", "-C", str(repository), *arguments).strip() or None

    return {
        "available": True,
        "root": str(root),
        "version": version_in(r'__version__ = "([^"]+)"', init),
        "tree": git(root, "rev-parse", "HEAD^{tree}"),
        "packages_commit": git(state / "spack-packages", "rev-parse", "HEAD"),
        "url": git(root, "config", "remote.origin.url"),
        "packages_url": git(state / "spack-packages", "config", "remote.origin.url"),
    }


def missing_packages(state: Path) -> list[dict[str, str]]:
    """The packages that system-packages could not install."""
    file = state / "missing.tsv"
    rows = (
        (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()) if file.exists() else ()
    )
    return [dict(zip(("package", "needed_for", "remedy"), row, strict=True)) for row in rows]


def lmod_init() -> str | None:
    """The path of Lmod's initialization for bash."""
    named = os.environ.get("LMOD_PKG")
    places = [Path(named, "init/bash")] if named else []
    places.append(Path("/usr/share/lmod/lmod/init/bash"))
    return next((str(place) for place in places if place.exists()), None)


def write(file: Path, content: dict[str, Any]) -> None:
    """Replace a file by JSON content, which is also YAML, in one step."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(file.name + ".new")
    temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    temporary.replace(file)


def main(root: Path) -> None:
    """Detect, verify and write."""
    state = root / ".pagewise"
    sources = root / "setup" / "proof"
    compilers = verified_compilers(sources)
    packages = externals(sources)
    # Toolchains of envs/toolchains without a suffix are for x86-64.
    kind = "" if platform.machine() == "x86_64" else "-other"
    toolchains = [f"%pagewise-{compiler.name}{kind}" for compiler in compilers if compiler.entered]
    write(state / "detected" / "definitions.yaml", {"definitions": [{"toolchains": toolchains}]})
    write(state / "detected" / "packages.yaml", packages_yaml(compilers, packages))
    write(
        state / "setup.json",
        {
            "schema": "pagewise.setup/1",
            "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "spack": spack_facts(state),
            "compilers": [asdict(compiler) for compiler in compilers],
            "externals": [{"name": p.name, "version": p.version, "prefix": p.prefix} for p in packages],
            "missing": missing_packages(state),
            "lmod": {"init": lmod_init()},
        },
    )
    for compiler in compilers:
        outcome = "verified" if compiler.entered else f"not used: {compiler.reason}"
        print(f"setup: {compiler.name} {compiler.version} ({compiler.c}): {outcome}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
