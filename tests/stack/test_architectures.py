"""Every micro-kernel built for processors without a site of ours, and run in QEMU: right or wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from conftest import ROOT, run

KERNELS = ROOT / "kernels"
#: By processor: the compilers' prefix, flags, SIMD widths, and variants without instructions for it.
PROCESSORS: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "ppc64le": (
        "powerpc64le-linux-gnu",
        "-mcpu=power9",
        ("compiler", "scalar", "128"),
        ("STORES=nontemporal", "STORES=zfill"),
    ),
    "riscv64": (
        "riscv64-linux-gnu",
        "",
        ("compiler", "scalar"),
        ("STORES=nontemporal", "STORES=zfill", "PREFETCH=software", "PREFETCH=compiler"),
    ),
}


def configure(build: Path, processor: str, *options: str) -> tuple[int, str]:
    """Configure a cross build of the kernels. Returns exit code and output."""
    prefix, flags, *_ = PROCESSORS[processor]
    done = run(
        "cmake",
        *("-S", KERNELS, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF"),
        *("-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={processor}"),
        *(f"-DCMAKE_C_COMPILER={prefix}-gcc", f"-DCMAKE_Fortran_COMPILER={prefix}-gfortran"),
        *(f"-DCMAKE_C_FLAGS=-O2 {flags}", f"-DCMAKE_Fortran_FLAGS=-O2 {flags}"),
        *options,
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module", params=PROCESSORS)
def processor(request: pytest.FixtureRequest, unavailable: Callable[[str], NoReturn]) -> str:
    """A processor for which this machine has cross compilers and an emulator."""
    name = str(request.param)
    for program in (f"{PROCESSORS[name][0]}-gfortran", f"{PROCESSORS[name][0]}-gcc", f"qemu-{name}"):
        if shutil.which(program) is None:
            unavailable(f"needs {program}")
    return name


@pytest.fixture(scope="module")
def build(processor: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All programs, warnings being errors."""
    folder = tmp_path_factory.mktemp(processor)
    code, text = configure(folder, processor, "-DPAGEWISE_WERROR=ON")
    assert code == 0, text
    done = run("cmake", "--build", folder, "--", "--quiet")
    assert done.returncode == 0, done.stdout
    return folder


def test_every_kernel_computes_the_right_result(build: Path, processor: str, tmp_path: Path) -> None:
    checked = 0
    for file in sorted(KERNELS.glob("micro/*/kernel.yaml")):
        kernel = yaml.safe_load(file.read_text())
        if "needs" in kernel:
            continue
        record = tmp_path / f"{kernel['name']}.jsonl"
        program = build / "micro" / kernel["name"] / kernel["executable"]
        arguments = (*kernel["smoke"]["arguments"], "--record", record)
        done = run(KERNELS / "cmake" / "emulate", program, *arguments)
        assert done.returncode == 0, f"{kernel['name']}: {done.stdout}"
        assert json.loads(record.read_text().splitlines()[0])["validation"]["passed"]
        checked += 1
    assert checked >= 30


def test_explicit_vectors_and_scalar_code_agree_with_the_reference(build: Path, processor: str) -> None:
    for kernel in ("stream_triad", "stream_dot"):
        for width in PROCESSORS[processor][2]:
            arguments = ("--working-set", "101kB", "--repetitions", "1", "--simd", width)
            done = run(KERNELS / "cmake" / "emulate", build / "micro" / kernel / f"pw-{kernel}", *arguments)
            assert done.returncode == 0, f"{kernel} {width}: {done.stdout}"


def test_what_the_processor_has_no_instruction_for_is_refused(processor: str, tmp_path: Path) -> None:
    for variant in PROCESSORS[processor][3]:
        code, text = configure(tmp_path / variant, processor, f"-DPAGEWISE_{variant}")
        assert code != 0, variant
        assert "CMake Error" in text and variant.split("=")[1] in text
