"""Facts of compilers: stand-ins get the options that keep NaN, and an unknown compiler is an error."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from conftest import ROOT, run

STAND_IN = Path(__file__).parent / "stand_ins" / "compiler.py"
FACTS = ROOT / "kernels" / "cmake" / "compilers"
#: By name of the compiler in records: its C and Fortran, and what each gets for code that validates results.
COMPILERS = {
    "intel": ("icx", "ifx", "-fp-model=precise", "-fp-model=precise"),
    "nvhpc": ("nvc", "nvfortran", "-Kieee", "-Kieee"),
    "aocc": ("amdclang", "amdflang", "-fno-fast-math", "-fno-fast-math"),
    "ibm": ("ibm-clang", "xlf", "-fno-fast-math", "-qstrict"),
    "cray": ("amdclang", "ftn", "-fno-fast-math", "-hfp0"),
    "fujitsu": ("fcc", "frt", "-Kfp_precision", "-Kfp_precision"),
    "arm": ("amdclang", "armflang", "-fno-fast-math", "-fno-fast-math"),
}


def configured(folder: Path, c: str, fortran: str, *options: str) -> CompletedProcess[str]:
    """Configure the library with stand-ins for these compilers."""
    native = {language: shutil.which(name) for language, name in (("c", "gcc"), ("fortran", "gfortran"))}
    (folder / "delegates.json").write_text(json.dumps(native))
    for name in {c, fortran}:
        (folder / name).symlink_to(STAND_IN)
    words = [f"-DCMAKE_C_COMPILER={folder / c}", f"-DCMAKE_Fortran_COMPILER={folder / fortran}", *options]
    # Only the identification is of interest: foreign options would have to be translated to compile.
    words += ["-DCMAKE_C_COMPILER_WORKS=1", "-DCMAKE_Fortran_COMPILER_WORKS=1", "-DCMAKE_HAVE_LIBC_PTHREAD=1"]
    words += ["-DPAGEWISE_MICRO=OFF", "-DPAGEWISE_OPENMP=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    # CMake's question for the target leaves its output in the current folder.
    return run(
        "env",
        "-C",
        folder,
        "cmake",
        "-G",
        "Unix Makefiles",
        "-S",
        ROOT / "kernels",
        "-B",
        folder / "build",
        *words,
    )


@pytest.mark.parametrize("name", COMPILERS)
def test_code_that_validates_keeps_nan(name: str, tmp_path: Path) -> None:
    c, fortran, c_option, fortran_option = COMPILERS[name]
    aarch64 = ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64") if name == "arm" else ()
    done = configured(tmp_path, c, fortran, *aarch64)
    assert done.returncode == 0, done.stdout
    assert f": {name}-" in done.stdout
    commands = json.loads((tmp_path / "build" / "compile_commands.json").read_text())
    options = {Path(each["file"]).name: shlex.split(each["command"]) for each in commands}
    assert c_option in options["elements.c"]
    assert fortran_option in options["pw_deviation.f90"]


def test_an_unknown_compiler_is_an_error(tmp_path: Path) -> None:
    """CMake knows NAG's compiler, and no file has its facts."""
    done = configured(tmp_path, "icx", "nagfor")
    assert done.returncode != 0
    words = " ".join(done.stdout.split())
    assert "CMAKE_Fortran_COMPILER_ID=NAG" in words
    assert "cmake/compilers" in words


def test_every_file_has_all_facts() -> None:
    for file in FACTS.glob("*.json"):
        facts = json.loads(file.read_text())
        assert facts["name"] == file.stem
        for language in ("c", "fortran"):
            for each in facts[language].values():
                assert {"warnings", "keeps_nan", "no_vectors"} <= each.keys()
                assert each["keeps_nan"]
