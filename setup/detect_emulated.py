"""Detect an emulated A64FX as a site for Spack: cross compilers, verified by running test programs in QEMU.

detect_emulated.py ROOT

Writes .pagewise/emulated-a64fx: packages.yaml and definitions.yaml, which envs/a64fx-emulated includes,
and wrappers of the compilers for Spack. Writes nothing if the compilers or QEMU are missing. HDF5 is included
if aarch64-hdf5 has fetched it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from detect import defined_version, packages_yaml, write
from detect_compilers import (
    PROGRAMS,
    SUM_OF_SQUARES,
    Compiler,
    Program,
    compilers_of,
    output_of,
    verify_program,
    version_in,
)

TRIPLET = "aarch64-linux-gnu"
LINKER = "ld-linux-aarch64.so.1"
#: Spack asks a compiler (-v) for the dynamic linker that it links, and runs that for the version of the C
#: library. The wrapper answers with one that the emulator runs. Programs keep the original dynamic linker.
COMPILER = """#!/bin/sh
case $1 in -v) [ $# -eq 1 ] || set -- "$@" -Wl,--dynamic-linker={folder}/lib/{linker} ;; esac
exec {driver} "$@"
"""
DYNAMIC_LINKER = """#!/bin/sh
exec {qemu} -L /usr/{triplet} /usr/{triplet}/lib/{linker} "$@"
"""
#: The machine's packages that run during a build.
TOOLS = ("cmake", "ninja", "gmake")


def emulator(root: Path) -> tuple[str, ...]:
    """The command that runs programs for A64FX."""
    return (str(root / "kernels" / "cmake" / "emulate"),)


def cross_compiler(root: Path) -> Compiler | None:
    """The newest cross compiler whose programs print the right answers in the emulator."""
    for compiler in compilers_of("gcc", f"{TRIPLET}-"):
        drivers = {"c": compiler.c, "fortran": compiler.fortran}
        results = [
            verify_program(driver, program, root / "setup" / "proof", emulator(root))
            if (driver := drivers[program.language])
            else (False, f"{program.language} compiler missing")
            for program in PROGRAMS
        ]
        compiler.entered = all(ok for ok, _ in results)
        outcome = "verified" if compiler.entered else next(detail for ok, detail in results if not ok)
        print(f"setup: emulated a64fx: gcc {compiler.version} ({compiler.c}): {outcome}")
        if compiler.entered:
            return compiler
    return None


def hdf5(root: Path, driver: str) -> dict[str, Any]:
    """HDF5 for Spack's packages section; empty if no program that uses it runs."""
    prefix = root / ".pagewise" / "aarch64" / "hdf5"
    names = ("H5_VERS_MAJOR", "H5_VERS_MINOR", "H5_VERS_RELEASE")
    version = defined_version("H5public.h", *names, include=prefix / "include")
    if version is None:
        return {}
    # RPATH, not RUNPATH, because HDF5's own libraries are searched with it too.
    rpath = f"-Wl,--no-as-needed,--disable-new-dtags,-rpath,{prefix}/lib"
    link = (f"-L{prefix}/lib", rpath, "-lhdf5_hl", "-lhdf5")
    program = Program("HDF5", "hdf5.c", "c", SUM_OF_SQUARES, (f"-I{prefix}/include", *link))
    verified, detail = verify_program(driver, program, root / "setup" / "proof", emulator(root))
    print(f"setup: emulated a64fx: hdf5 {version} ({prefix}): {'verified' if verified else detail}")
    external = {"spec": f"hdf5@={version}+hl target=aarch64", "prefix": str(prefix)}
    return {"hdf5": {"externals": [external]}} if verified else {}


def script(file: Path, text: str) -> str:
    """Write an executable script, and return its path."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)
    return str(file)


def main(root: Path) -> None:
    """Detect, verify and write; if there is no emulator or compiler, remove the site."""
    folder = root / ".pagewise" / "emulated-a64fx"
    qemu = shutil.which("qemu-aarch64")
    compiler = cross_compiler(root) if qemu else None
    if qemu is None or compiler is None or compiler.fortran is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    libraries = hdf5(root, compiler.c)
    linker = script(folder / "lib" / LINKER, DYNAMIC_LINKER.format(qemu=qemu, triplet=TRIPLET, linker=LINKER))

    def wrap(driver: str) -> str:
        return script(
            folder / "bin" / Path(driver).name,
            COMPILER.format(folder=folder, linker=LINKER, driver=driver),
        )

    compiler.c, compiler.fortran = wrap(compiler.c), wrap(compiler.fortran)
    compiler.cxx = wrap(compiler.cxx) if compiler.cxx else None
    detected = json.loads((root / ".pagewise" / "detected" / "packages.yaml").read_text(encoding="utf-8"))
    tools = {name: entry for name, entry in detected["packages"].items() if name in TOOLS}
    version = version_in(r"version (\d+\.\d+)", output_of(linker, "--version"))
    # Otherwise Spack would use this machine's C library.
    libc = {"externals": [{"spec": f"glibc@={version} target=aarch64", "prefix": str(folder)}]}
    section = packages_yaml([compiler], [])["packages"]
    write(folder / "packages.yaml", {"packages": {**section, **tools, **libraries, "glibc": libc}})
    minis = ["pagewise-ember@develop ~mpi", "pagewise-helmholtz@develop"] if libraries else []
    write(folder / "definitions.yaml", {"definitions": [{"minis": minis}]})


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
