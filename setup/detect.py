"""Detect what this machine provides for Spack: compilers, verified by running test programs, and packages.

    detect.py ROOT

Writes two outputs to ROOT/.pagewise: setup.json, which `pagewise doctor` reads, and detected/, the site that
environments include, with packages.yaml and definitions.yaml: the compilers' toolchains, and what
environments combine them with. SIMD widths and generic targets follow the processor by the conditions in
detect_processor.json. All is written as JSON, which is also YAML, because only the standard library is
available.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from detect_compilers import (
    FACTS,
    SUM_OF_SQUARES,
    Compiler,
    Program,
    output_of,
    verified_compilers,
    verify_program,
    version_in,
)

MPI_PROGRAM = Program("MPI", "mpi.c", "c", SUM_OF_SQUARES)
#: Providers of virtual packages that the environment libraries compares.
PROVIDERS = {"blas": ("netlib-lapack", "blis", "openblas"), "fft": ("fftw",)}
#: The mini-apps, which need HDF5 and MPI.
MINI_APPS = ["pagewise-ember@develop +mpi prefetch=hardware", "pagewise-helmholtz@develop prefetch=hardware"]
#: The version line of each MPI's C compiler wrapper.
MPIS = {"openmpi": r"Open MPI (\d[\d.]*)", "mpich": r"MPICH version (\d[\d.]*)"}


@dataclass(frozen=True)
class External:
    """A package that is installed on the system."""

    name: str
    version: str
    prefix: str
    known_to_spack: bool
    library: str | None = None
    variants: str = ""


def defined_version(header: str, *names: str, include: Path = Path("/usr/include")) -> str | None:
    """The version that a header defines, as one string or as several numbers; these are joined by dots."""
    file = next(iter(sorted(include.glob(header))), None)
    text = file.read_text(encoding="utf-8", errors="replace") if file else ""
    values = [version_in(rf"#\s*define\s+{name}\s+\D*?(\d[\d.]*)", text) for name in names]
    return None if None in values else ".".join(value for value in values if value)


def hdf5() -> External | None:
    """The HDF5 of h5cc on PATH, or Debian's serial HDF5; the variant hl is its high-level library."""
    path = shutil.which("h5cc")
    version = version_in(r"HDF5 Version:\s*(\d[\d.]*)", output_of(path, "-showconfig")) if path else None
    prefix = Path(path).parent.parent if path and version else Path("/usr")
    if version is None:
        names = ("H5_VERS_MAJOR", "H5_VERS_MINOR", "H5_VERS_RELEASE")
        version = defined_version("hdf5/serial/H5public.h", *names)
    if version is None:
        return None
    # In include, or below it: Debian has include/hdf5/serial.
    high_level = next((prefix / "include").glob("**/hdf5_hl.h"), None)
    return External("hdf5", version, str(prefix), True, variants="+hl" if high_level else "~hl")


def sleef() -> str | None:
    """The version of SLEEF, if it has the functions of the vector ABI."""
    names = ("SLEEF_VERSION_MAJOR", "SLEEF_VERSION_MINOR", "SLEEF_VERSION_PATCHLEVEL")
    places = ("lib*/libsleefgnuabi.so", "lib/*/libsleefgnuabi.so")
    installed = any(file for place in places for file in Path("/usr").glob(place))
    return (defined_version("sleef.h", *names) or defined_version("*/sleef.h", *names)) if installed else None


def libomp() -> str | None:
    """The version of LLVM's OpenMP that programs load, which can differ from the compiler's version."""
    places = ("lib*/libomp.so", "lib/*/libomp.so")
    files = [file.resolve() for place in places for file in sorted(Path("/usr").glob(place))]
    return owners_version(files[0]) if files else None


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
    packages += [library] if (library := hdf5()) else []
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
    # dpkg-query prints `libomp5-22:amd64: /usr/lib/llvm-22/lib/libomp.so.5`.
    owner = output_of("dpkg-query", "--search", str(file)).partition(":")[0]
    return package_version(owner) if owner else package_version(str(file), "--file")


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
            facts = FACTS[compiler.name]
            spec = facts["detection"]["external"].format(version=compiler.version, languages=languages)
            drivers = {"c": compiler.c, "cxx": compiler.cxx, "fortran": compiler.fortran}
            section[facts["package"]] = {
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
            spec = f"{package.name}@={package.version}{package.variants}"
            entry: dict[str, Any] = {"spec": spec, "prefix": package.prefix}
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


def definitions(toolchains: list[str], packages: list[External]) -> list[dict[str, list[str]]]:
    """What the environments get from the site: toolchains, and what each is combined with."""
    known = {package.name for package in packages if package.known_to_spack}

    vector_math = ["mathlib=libmvec", *(["mathlib=sleef"] if "sleef" in known else [])]
    provided = {
        kind: [f"{toolchain} ^{name}" for toolchain in toolchains for name in names if name in known]
        for kind, names in PROVIDERS.items()
    }
    return [
        {"toolchains": toolchains},
        {"quick": toolchains[:1]},
        {"gcc_and_llvm": toolchains},
        {"generic": toolchains},
        {"natives": [f"{toolchain}-native" for toolchain in toolchains]},
        {"tuned": [f"{toolchain}-tuned" for toolchain in toolchains]},
        {"mini_apps": MINI_APPS if "hdf5" in known and known & MPIS.keys() else []},
        {"vector_math": [f"{library} {name}" for name in toolchains for library in vector_math]},
        {"libomp": [name for name in toolchains if "-gcc" in name] if "llvm-openmp" in known else []},
        *({kind: specs} for kind, specs in provided.items()),
    ]


def main(root: Path) -> None:
    """Detect, verify and write."""
    state = root / ".pagewise"
    sources = root / "setup" / "proof"
    compilers = verified_compilers(sources)
    packages = externals(sources)
    # Toolchains of envs/toolchains without a suffix are for x86-64.
    kind = "" if platform.machine() == "x86_64" else "-other"
    toolchains = [f"%pagewise-{compiler.name}{kind}" for compiler in compilers if compiler.entered]
    by_processor = json.loads((root / "setup" / "detect_processor.json").read_text(encoding="utf-8"))
    write(
        state / "detected" / "definitions.yaml",
        {"definitions": [*definitions(toolchains, packages), *by_processor["definitions"]]},
    )
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
