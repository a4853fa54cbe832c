"""Facts of compilers: stand-ins get the options that keep NaN, and an unknown compiler is an error."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from test_detect import detect

from conftest import AARCH64, ROOT, configure, environment, roots, spack, stand_ins

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


MAKE = "Unix Makefiles"
#: Only the identification is of interest: foreign options would have to be translated to compile.
IDENTIFIED = (
    *("-DCMAKE_C_COMPILER_WORKS=1", "-DCMAKE_Fortran_COMPILER_WORKS=1", "-DCMAKE_HAVE_LIBC_PTHREAD=1"),
    *("-DPAGEWISE_MICRO=OFF", "-DPAGEWISE_OPENMP=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"),
)


@pytest.mark.parametrize("name", COMPILERS)
def test_code_that_validates_keeps_nan(name: str, tmp_path: Path) -> None:
    c, fortran, c_option, fortran_option = COMPILERS[name]
    stand_ins(tmp_path, c, fortran, native=True)
    done = configure(tmp_path, c, fortran, *IDENTIFIED, *(AARCH64 if name == "arm" else ()), generator=MAKE)
    assert done.returncode == 0, done.stdout
    assert f": {name}-" in done.stdout
    commands = json.loads((tmp_path / "build" / "compile_commands.json").read_text())
    options = {Path(each["file"]).name: shlex.split(each["command"]) for each in commands}
    assert c_option in options["elements.c"]
    assert fortran_option in options["pw_deviation.f90"]


def test_an_unknown_compiler_is_an_error(tmp_path: Path) -> None:
    """CMake knows NAG's compiler, and no file has its facts."""
    stand_ins(tmp_path, "icx", "nagfor", native=True)
    done = configure(tmp_path, "icx", "nagfor", *IDENTIFIED, generator=MAKE)
    assert done.returncode != 0
    words = " ".join(done.stdout.split())
    assert "CMAKE_Fortran_COMPILER_ID=NAG" in words
    assert "cmake/compilers" in words


def test_every_file_has_all_facts() -> None:
    for file in FACTS.glob("*.json"):
        facts = json.loads(file.read_text())
        assert facts["name"] == file.stem and facts["package"]
        for each in (*facts["c"].values(), *facts["fortran"].values()):
            assert "like" in each or {"warnings", "keeps_nan", "no_vectors"} <= each.keys()
            assert each.get("keeps_nan") != []


def test_intels_compilers_are_three_files() -> None:
    """What else knows a compiler reads these: set-up, CMake, recipes, and Spack."""
    words = re.compile(r"\b(icp?x|ifx|IntelLLVM|intel-oneapi-compilers)\b(?!-classic)|toolchains/intel")
    files = {
        str(file.relative_to(ROOT))
        for folder in ("kernels/cmake", "envs", "repos", "setup")
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and ".spack-env" not in file.parts and not file.parent.is_symlink()
        if words.search(file.read_text(errors="replace"))
    }
    own = {"kernels/cmake/compilers/intel.json", "envs/toolchains/intel.yaml", "envs/common/include.yaml"}
    assert files == own


def test_intels_compilers_are_detected_and_concretize(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_ins(tmp_path, "icx", "ifx", native=True)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    actual = {compiler.name: compiler for compiler in detect.verified_compilers(ROOT / "setup" / "proof")}
    intel = actual["intel"]
    assert all(program["ok"] for program in intel.proof), intel.reason
    assert (intel.version, intel.entered, Path(intel.fortran).name) == ("2025.2.1", False, "ifx")
    intel.entered = True
    packages = detect.packages_yaml([intel], [])
    (tmp_path / "packages.yaml").write_text(json.dumps(packages))
    folder = environment(checkout, "intel", "pagewise-micro@develop prefetch=software %pagewise-intel")
    text = (folder / "spack.yaml").read_text()
    (folder / "spack.yaml").write_text(
        text.replace("  include:", f"  include:\n  - {tmp_path}/packages.yaml")
    )
    spack(checkout, folder, "concretize")
    (root,) = roots(folder)
    assert root["parameters"]["fflags"] == ["-O3", "-fp-model=precise"]
