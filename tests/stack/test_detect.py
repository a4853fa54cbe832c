"""Detection: a compiler enters by what its programs print, and by nothing else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from conftest import ROOT


def load_detect() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("detect", ROOT / "setup" / "detect.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


detect = load_detect()
SOURCES = ROOT / "setup" / "proof"


def fake_compiler(folder: Path, version: str, printed: str, suffix: str = "", fortran: bool = True) -> None:
    """A gcc whose programs print the same whatever their source is."""
    script = (
        "#!/bin/sh\n"
        f'case "$*" in *--version*|*-dumpfullversion*) echo {version}; exit;; esac\n'
        'for last; do :; done; threads=; case "$*" in *-fopenmp*) threads="2 ";; esac\n'
        f'printf "#!/bin/sh\\necho ${{threads}}{printed}\\n" > "$last"; chmod +x "$last"\n'
    )
    for name in ("gcc", "g++", "gfortran") if fortran else ("gcc", "g++"):
        (folder / f"{name}{suffix}").write_text(script)
        (folder / f"{name}{suffix}").chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that alone, with a shell's tools, is PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sh").symlink_to("/bin/sh")
    (folder / "chmod").symlink_to("/bin/chmod")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_this_machines_compilers_stand_the_proof() -> None:
    compilers = detect.proved_compilers(SOURCES)
    entered = {compiler.name for compiler in compilers if compiler.entered}
    assert "gcc" in entered
    for compiler in compilers:
        assert compiler.entered == (compiler.reason is None)


def test_a_right_answer_enters(path: Path) -> None:
    fake_compiler(path, "99.1.0", detect.SUM_OF_SQUARES)
    (compiler,) = detect.proved_compilers(SOURCES)
    assert compiler.entered, compiler.reason
    assert [entry["program"] for entry in compiler.proof] == ["C", "Fortran", "C OpenMP", "Fortran OpenMP"]


def test_a_wrong_answer_does_not_enter(path: Path) -> None:
    fake_compiler(path, "99.1.0", "333833499")
    (compiler,) = detect.proved_compilers(SOURCES)
    assert not compiler.entered
    assert "printed '333833499', not '333833500'" in compiler.reason
    assert detect.packages_yaml([compiler], []) == {"packages": {}}


def test_a_compiler_of_c_alone_does_not_enter(path: Path) -> None:
    fake_compiler(path, "99.1.0", detect.SUM_OF_SQUARES, fortran=False)
    (compiler,) = detect.proved_compilers(SOURCES)
    assert not compiler.entered
    assert "Fortran: there is no compiler for it" in compiler.reason


def test_of_a_family_the_newest_that_stands_the_proof_enters(path: Path) -> None:
    fake_compiler(path, "9.4.0", detect.SUM_OF_SQUARES, "-9")
    fake_compiler(path, "10.2.0", detect.SUM_OF_SQUARES, "-10")
    fake_compiler(path, "11.1.0", "0", "-11")
    compilers = detect.proved_compilers(SOURCES)
    entered = {one.version: one.entered for one in compilers}
    assert entered == {"11.1.0": False, "10.2.0": True, "9.4.0": False}
    assert "gcc 10.2.0 is newer" in compilers[2].reason


def test_a_version_is_known_by_its_most_particular_name(path: Path) -> None:
    fake_compiler(path, "12.2.0", detect.SUM_OF_SQUARES)
    fake_compiler(path, "12.2.0", detect.SUM_OF_SQUARES, "-12")
    (compiler,) = detect.proved_compilers(SOURCES)
    assert (Path(compiler.c).name, Path(compiler.fortran).name) == ("gcc-12", "gfortran-12")


def fake_mpicc(folder: Path, said: str, printed: str) -> None:
    """An mpicc whose programs print the same whatever their source is."""
    script = (
        "#!/bin/sh\n"
        f"case \"$1\" in -showme:version|-v) echo '{said}'; exit;; esac\n"
        f'for last; do :; done; printf "#!/bin/sh\\necho {printed}\\n" > "$last"; chmod +x "$last"\n'
    )
    (folder / "mpicc").write_text(script)
    (folder / "mpicc").chmod(0o755)


@pytest.mark.parametrize(
    ("said", "name", "version"),
    [
        ("mpicc: Open MPI 4.1.4 (Language: C)", "openmpi", "4.1.4"),
        ("mpicc for MPICH version 4.0.2", "mpich", "4.0.2"),
    ],
)
def test_an_mpi_enters_by_its_program(path: Path, said: str, name: str, version: str) -> None:
    fake_mpicc(path, said, detect.SUM_OF_SQUARES)
    entered = detect.mpi(SOURCES)
    assert (entered.name, entered.version, entered.prefix) == (name, version, str(path.parent))
    assert detect.packages_yaml([], [entered])["packages"].keys() == {name}


def test_an_mpi_that_counts_wrong_or_is_unknown_is_left_out_aloud(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_mpicc(path, "mpicc: Open MPI 4.1.4 (Language: C)", "0")
    assert detect.mpi(SOURCES) is None
    assert "openmpi 4.1.4" in (told := capsys.readouterr().out) and "left out: " in told
    fake_mpicc(path, "mpicc of somebody", detect.SUM_OF_SQUARES)
    assert detect.mpi(SOURCES) is None
    assert "envs/sites" in capsys.readouterr().out


def test_without_mpicc_there_is_no_mpi(path: Path) -> None:
    assert detect.mpi(SOURCES) is None
