"""Every micro-kernel built by compilers and for processors that no site has, and run: right or wrong."""

from __future__ import annotations

import json
import platform
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
from pagewise.core.kernel import read_source

from conftest import ROOT, run, succeed

pytestmark = pytest.mark.release

KERNELS = ROOT / "kernels"
HERE = platform.machine()


@dataclass(frozen=True)
class Target:
    """Compilers, a processor, the SIMD widths it has, and variants without instructions for it."""

    c: str
    fortran: str
    flags: str
    processor: str = HERE
    widths: tuple[str, ...] = ("compiler", "scalar", "128")
    refused: tuple[str, ...] = ()

    @property
    def programs(self) -> tuple[str, ...]:
        """What a machine needs for it."""
        return (self.c, self.fortran, *(() if self.processor == HERE else (f"qemu-{self.processor}",)))


def oldest(name: str, first: int) -> str:
    """The program with the lowest version from `first` on, of those whose name ends in one."""
    versions = (re.fullmatch(rf"{name}-(\d+)", file.name) for file in Path("/usr/bin").glob(f"{name}-*"))
    known = sorted(int(match[1]) for match in versions if match and int(match[1]) >= first)
    return f"{name}-{known[0] if known else first}"


def newest_clang() -> str:
    """The clang with libomp, whichever flang is used."""
    names = sorted(Path("/usr/bin").glob("clang-[0-9][0-9]"))
    return names[-1].name if names else "clang"


NATIVE = "-O3 -march=native" if HERE == "x86_64" else "-O3 -mcpu=native"
FLANG = oldest("flang-new", 19)
#: By name. The oldest supported compilers are those of setup/system-packages.
TARGETS = {
    "oldest-gcc": Target(oldest("gcc", 11), oldest("gfortran", 11), NATIVE),
    "oldest-flang": Target(newest_clang(), FLANG, NATIVE),
    "ppc64le": Target(
        "powerpc64le-linux-gnu-gcc",
        "powerpc64le-linux-gnu-gfortran",
        "-O2 -mcpu=power9",
        "ppc64le",
        refused=("STORES=nontemporal", "STORES=zfill"),
    ),
    "riscv64": Target(
        "riscv64-linux-gnu-gcc",
        "riscv64-linux-gnu-gfortran",
        "-O2",
        "riscv64",
        ("compiler", "scalar"),
        ("STORES=nontemporal", "STORES=zfill", "PREFETCH=software", "PREFETCH=compiler"),
    ),
}


def configure(build: Path, target: Target, *options: str) -> tuple[int, str]:
    """Configure a build of the kernels. Returns exit code and output."""
    words = [
        *("-S", KERNELS, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF"),
        *(f"-DCMAKE_C_COMPILER={target.c}", f"-DCMAKE_Fortran_COMPILER={target.fortran}"),
        *(f"-DCMAKE_C_FLAGS={target.flags}", f"-DCMAKE_Fortran_FLAGS={target.flags}"),
    ]
    if target.processor != HERE:
        words += ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={target.processor}"]
    done = run("cmake", *words, *options)
    return done.returncode, done.stdout


def command(program: Path) -> tuple[Path, ...]:
    """The command that runs a program of any processor."""
    processor = (program.parents[1] / "processor").read_text()
    return (program,) if processor == HERE else (KERNELS / "cmake" / "emulate", program)


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest, unavailable: Callable[[str], NoReturn]) -> Target:
    """A target for which this machine has compilers and, if needed, an emulator."""
    wanted = TARGETS[str(request.param)]
    for program in wanted.programs:
        if shutil.which(program) is None:
            unavailable(f"needs {program}")
    return wanted


@pytest.fixture(scope="module")
def build(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All programs, warnings being errors."""
    folder = tmp_path_factory.mktemp("build")
    code, text = configure(folder, target, "-DPAGEWISE_WERROR=ON")
    assert code == 0, text
    succeed("cmake", "--build", folder, "--", "--quiet")
    (folder / "micro" / "processor").write_text(target.processor)
    return folder


def test_every_kernel_computes_the_right_result(build: Path, tmp_path: Path) -> None:
    checked = 0
    for file in sorted(KERNELS.glob("micro/*/kernel.yaml")):
        kernel = read_source(file)
        if "needs" in kernel:
            continue
        record = tmp_path / f"{kernel['name']}.jsonl"
        program = build / "micro" / kernel["name"] / kernel["executable"]
        arguments = (*kernel["smoke"]["arguments"], "--record", record)
        succeed(*command(program), *arguments)
        assert json.loads(record.read_text().splitlines()[0])["validation"]["passed"]
        checked += 1
    assert checked >= 30


def test_explicit_vectors_and_scalar_code_agree_with_the_reference(build: Path, target: Target) -> None:
    for kernel in ("stream_triad", "stream_dot"):
        for width in target.widths:
            arguments = ("--working-set", "101kB", "--repetitions", "1", "--simd", width)
            succeed(*command(build / "micro" / kernel / f"pw-{kernel}"), *arguments)


def test_unsupported_instructions_are_refused(target: Target, tmp_path: Path) -> None:
    for variant in target.refused:
        code, text = configure(tmp_path / variant, target, f"-DPAGEWISE_{variant}")
        assert code != 0, variant
        assert "CMake Error" in text and variant.split("=")[1] in text
