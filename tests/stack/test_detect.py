"""Detection accepts a compiler only if its programs print the right answers."""

from __future__ import annotations

from pathlib import Path

import detect
import pytest

from conftest import ROOT, write_script

SOURCES = ROOT / "setup" / "proof"


def fake_compiler(folder: Path, version: str, printed: str, suffix: str = "", fortran: bool = True) -> None:
    """A gcc whose programs print a fixed text for any source."""
    script = (
        "#!/bin/sh\n"
        f'case "$*" in *--version*) echo "gcc (GCC) {version}"; exit;; esac\n'
        'for last; do :; done; threads=; case "$*" in *-fopenmp*) threads="2 ";; esac\n'
        f'printf "#!/bin/sh\\necho ${{threads}}{printed}\\n" > "$last"; chmod +x "$last"\n'
    )
    for name in ("gcc", "g++", "gfortran") if fortran else ("gcc", "g++"):
        write_script(folder / f"{name}{suffix}", script)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a shell and chmod, which becomes PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sh").symlink_to("/bin/sh")
    (folder / "chmod").symlink_to("/bin/chmod")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_this_machines_compilers_are_verified() -> None:
    compilers = detect.verified_compilers(SOURCES)
    entered = {compiler.name for compiler in compilers if compiler.entered}
    assert "gcc" in entered
    for compiler in compilers:
        assert compiler.entered == (compiler.reason is None)


@pytest.mark.parametrize(
    ("printed", "fortran", "failed"),
    [
        (detect.SUM_OF_SQUARES, True, []),
        ("333833499", True, ["C", "Fortran", "C OpenMP", "Fortran OpenMP"]),
        (detect.SUM_OF_SQUARES, False, ["Fortran", "Fortran OpenMP"]),
    ],
)
def test_a_compiler_is_accepted_if_its_programs_print_the_right_answers(
    path: Path, printed: str, fortran: bool, failed: list[str]
) -> None:
    fake_compiler(path, "99.1.0", printed, fortran=fortran)
    (compiler,) = detect.verified_compilers(SOURCES)
    assert [entry["program"] for entry in compiler.proof if not entry["ok"]] == failed
    assert compiler.entered == (not failed) and len(compiler.proof) == 4
    assert bool(failed) == (detect.packages_yaml([compiler], []) == {"packages": {}})
    assert printed == detect.SUM_OF_SQUARES or printed in compiler.reason


def test_the_newest_verified_compiler_of_a_family_is_accepted(path: Path) -> None:
    fake_compiler(path, "9.4.0", detect.SUM_OF_SQUARES, "-9")
    fake_compiler(path, "10.2.0", detect.SUM_OF_SQUARES, "-10")
    fake_compiler(path, "11.1.0", "0", "-11")
    compilers = detect.verified_compilers(SOURCES)
    entered = {compiler.version: compiler.entered for compiler in compilers}
    assert entered == {"11.1.0": False, "10.2.0": True, "9.4.0": False}
    assert "10.2.0" in compilers[2].reason


def test_a_version_has_its_most_specific_name(path: Path) -> None:
    fake_compiler(path, "12.2.0", detect.SUM_OF_SQUARES)
    fake_compiler(path, "12.2.0", detect.SUM_OF_SQUARES, "-12")
    (compiler,) = detect.verified_compilers(SOURCES)
    assert (Path(compiler.c).name, Path(compiler.fortran).name) == ("gcc-12", "gfortran-12")


def fake_mpicc(folder: Path, version: str, printed: str) -> None:
    """An mpicc whose programs print a fixed text for any source."""
    script = (
        "#!/bin/sh\n"
        f"case \"$1\" in -showme:version|-v) echo '{version}'; exit;; esac\n"
        f'for last; do :; done; printf "#!/bin/sh\\necho {printed}\\n" > "$last"; chmod +x "$last"\n'
    )
    write_script(folder / "mpicc", script)


@pytest.mark.parametrize(
    ("output", "name", "version"),
    [
        ("mpicc: Open MPI 4.1.4 (Language: C)", "openmpi", "4.1.4"),
        ("mpicc for MPICH version 4.0.2", "mpich", "4.0.2"),
    ],
)
def test_an_mpi_is_accepted_by_its_program(path: Path, output: str, name: str, version: str) -> None:
    fake_mpicc(path, output, detect.SUM_OF_SQUARES)
    entered = detect.mpi(SOURCES)
    assert (entered.name, entered.version, entered.prefix) == (name, version, str(path.parent))
    assert detect.packages_yaml([], [entered])["packages"].keys() == {name}


def test_a_wrong_or_unknown_mpi_is_not_used_with_a_message(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_mpicc(path, "mpicc: Open MPI 4.1.4 (Language: C)", "0")
    assert detect.mpi(SOURCES) is None
    assert "openmpi 4.1.4" in capsys.readouterr().out
    fake_mpicc(path, "mpicc of somebody", detect.SUM_OF_SQUARES)
    assert detect.mpi(SOURCES) is None
    assert "envs/sites" in capsys.readouterr().out


def test_without_mpicc_mpi_is_missing(path: Path) -> None:
    assert detect.mpi(SOURCES) is None
