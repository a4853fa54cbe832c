"""Explicit vector code for other processors: sums in registers, stores of vectors, gathers, structures."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from conftest import ROOT, succeed

pytestmark = pytest.mark.release

#: Kernels with non-temporal stores, whose aarch64 code without SVE must store pairs of vectors.
STORING = ("stream_triad", "component_sums", "division_streams", "memcpy", "stencil7")


@dataclass(frozen=True)
class Processor:
    """A processor to compile for: its kind, prefix and flags of the compilers, and what its code has.

    multiply_add: a multiply-add of vectors of doubles, with the register that it adds to. sums: latency times
    pipes of additions, of which table and sources are in pw_group.h.
    """

    kind: str
    prefix: str
    flags: str
    multiply_add: str
    sums: int


PROCESSORS = {
    "a64fx": Processor(
        *("aarch64", "aarch64-linux-gnu", "-mcpu=a64fx -msve-vector-bits=512", r"fmla\s+(z\d+)\.d", 18)
    ),
    "a64fx-neon": Processor("aarch64", "aarch64-linux-gnu", "-mcpu=a64fx", r"fmla\s+(v\d+)\.2d", 18),
    "neoverse-v1": Processor(
        *("aarch64", "aarch64-linux-gnu", "-mcpu=zeus -msve-vector-bits=256", r"fmla\s+(z\d+)\.d", 16)
    ),
    "power9": Processor(*("ppc64le", "powerpc64le-linux-gnu", "-mcpu=power9", r"xvmadd[am]dp\s+(vs\d+)", 14)),
}
STACK = re.compile(r"\[sp\b|\[x29\b|\(r1\)")
Instructions = list[tuple[int, str]]


class CrossBuild:
    """Timed code, compiled for one processor on request."""

    def __init__(self, processor: Processor, folder: Path) -> None:
        self.processor, self.folder = processor, folder
        prefix, flags = processor.prefix, f"-O3 {processor.flags}"
        succeed(
            "cmake",
            *("-S", ROOT / "kernels", "-B", folder, "-G", "Ninja", "-DBUILD_TESTING=OFF"),
            *("-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={processor.kind}"),
            *(f"-DCMAKE_C_COMPILER={prefix}-gcc", f"-DCMAKE_Fortran_COMPILER={prefix}-gfortran"),
            *(f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_Fortran_FLAGS={flags}"),
        )

    @property
    def sve_bits(self) -> int:
        """The length of SVE vectors, 0 in a build without them."""
        actual = re.search(r"sve-vector-bits=(\d+)", self.processor.flags)
        return int(actual[1]) if actual else 0

    def build(self, target: str) -> None:
        succeed("cmake", "--build", self.folder, "--target", target)

    def disassembled(self, kernel: str, variant: str) -> dict[str, Instructions]:
        """Address and text of the instructions of each function in a kernel's explicit code."""
        target = f"pw-{kernel}-timed-{variant}"
        self.build(target)
        objects = list((self.folder / "micro" / kernel / "CMakeFiles" / f"{target}.dir").rglob("*.c.o"))
        assert objects, target
        done = succeed(f"{self.processor.prefix}-objdump", "-d", "--no-show-raw-insn", *objects)
        functions: dict[str, Instructions] = {}
        for line in done.stdout.splitlines():
            if named := re.match(r"[0-9a-f]+ <(\S+)>:", line):
                instructions = functions.setdefault(named[1], [])
            elif actual := re.match(r" *([0-9a-f]+):\t(.*)", line):
                instructions.append((int(actual[1], 16), actual[2]))
        return functions


def loops(instructions: Instructions) -> list[list[str]]:
    """The innermost loops: from the target of a backward branch to the branch."""
    ends = {
        (int(branch[1], 16), address)
        for address, text in instructions
        if (branch := re.match(r"(?:b|cb|tb)\S*\s(?:.*[ ,\t])?([0-9a-f]+) <", text))
        and int(branch[1], 16) < address
    }
    inner = [
        (first, last)
        for first, last in ends
        if not any((a, b) != (first, last) and first <= a and b <= last for a, b in ends)
    ]
    return [[text for at, text in instructions if first <= at <= last] for first, last in inner]


@pytest.fixture(scope="module", params=PROCESSORS)
def cross_build(
    request: pytest.FixtureRequest,
    unavailable: Callable[[str], NoReturn],
    tmp_path_factory: pytest.TempPathFactory,
) -> CrossBuild:
    """A cross build for each processor whose compilers this machine has."""
    processor = PROCESSORS[request.param]
    for program in (f"{processor.prefix}-gcc", f"{processor.prefix}-gfortran"):
        if shutil.which(program) is None:
            unavailable(f"needs {program}")
    return CrossBuild(processor, tmp_path_factory.mktemp(request.param))


@pytest.mark.parametrize("variant", ["hardware-regular", "software-regular"])
def test_a_reduction_has_as_many_sums_as_the_pipes_need_all_in_registers(
    cross_build: CrossBuild, variant: str
) -> None:
    """In each mode of prefetching, which has a separate loop."""
    wanted, bodies = cross_build.processor.sums, []
    for function in cross_build.disassembled("stream_dot", variant).values():
        for loop in loops(function):
            sums = set(re.findall(cross_build.processor.multiply_add, "\n".join(loop)))
            bodies += [loop] if len(sums) >= wanted else []
    assert bodies and [text for body in bodies for text in body if STACK.search(text)] == []
    by_vectors = [body for body in bodies if any(text.startswith("prfd") for text in body)]
    modes = 2 if variant == "software-regular" and cross_build.processor.kind == "aarch64" else 0
    assert len(by_vectors) >= modes


@pytest.mark.parametrize("kernel", STORING)
def test_non_temporal_stores_are_of_two_vectors(cross_build: CrossBuild, kernel: str) -> None:
    if cross_build.processor.kind != "aarch64":
        pytest.skip("other processors have no such stores")
    functions = cross_build.disassembled(kernel, "hardware-nontemporal")
    stores = [
        text for function in functions.values() for _, text in function if "stnp" in text or "stnt1" in text
    ]
    wanted = r"stnt1d" if cross_build.sve_bits else r"stnp\s+q"
    assert any(re.match(wanted, text) for text in stores)
    # Pairs of doubles are those of --simd scalar only, without a lane taken out of a vector.
    for function in functions.values():
        for loop in loops(function):
            if any(re.match(r"stnp\s+d", text) for text in loop):
                assert kernel == "stream_triad"
                assert not any(re.match(r"(mov|dup|umov)\s.*\[1\]", text) for text in loop)


@pytest.mark.parametrize("variant", ["hardware-regular", "hardware-nontemporal"])
def test_scalar_code_stores_single_elements(cross_build: CrossBuild, variant: str) -> None:
    """--simd scalar in a build with vectors: no compiler combines neighbours into vectors."""
    if cross_build.processor.kind != "aarch64":
        pytest.skip("its registers do not show the width")
    bodies = [
        body
        for function in cross_build.disassembled("stream_triad", variant).values()
        for loop in loops(function)
        if (body := "\n".join(loop)).count("fmadd\td") == 8
    ]
    assert len(bodies) == 1
    assert not re.search(r"\bq\d|\bv\d+\.|\bz\d", bodies[0])


def test_gathers_scatters_and_structures_are_alone_in_their_loops(cross_build: CrossBuild) -> None:
    """A loop of alignment loads or stores, by the instruction of its access only: registers hold all else."""
    if cross_build.processor.kind != "aarch64":
        pytest.skip("other processors have no structures")
    functions = cross_build.disassembled("alignment", "hardware-regular").values()
    bodies = [body for function in functions for body in loops(function)]
    patterns = [rf"{name}\s+\{{v\d+\.{lanes}" for name in ("ld2", "st2") for lanes in ("2d", "4s")]
    if cross_build.sve_bits:
        patterns = [f"{name}{size}" for name in ("ld2", "st2") for size in "dw"]
        patterns += [rf"{name}{size}\s.*\[x\d+, z" for name in ("ld1", "st1") for size in "dw"]
    for pattern in patterns:
        actual = [body for body in bodies if any(re.match(pattern, text) for text in body)]
        assert actual, pattern
        accesses = [text for body in actual for text in body if re.match(r"(ld|st)", text)]
        assert [text for text in accesses if not re.match(pattern, text)] == []


def test_accesses_at_any_alignment_give_right_results(
    cross_build: CrossBuild, unavailable: Callable[[str], NoReturn], tmp_path: Path
) -> None:
    if cross_build.processor.kind != "aarch64":
        pytest.skip("has contiguous accesses only")
    if shutil.which("qemu-aarch64") is None:
        unavailable("needs qemu-aarch64")
    cross_build.build("pw-alignment")
    record, bits = tmp_path / "record.jsonl", cross_build.sve_bits
    succeed(
        *(ROOT / "kernels" / "cmake" / "emulate", "--cpu", "max", "--vector-bits", str(bits or 512)),
        *(cross_build.folder / "micro" / "alignment" / "pw-alignment", "--record", record),
        *("--repetitions", "1", "--load-offset", "13", "--store-offset", "7", "--sweep", "access"),
    )
    records = [json.loads(line) for line in record.read_text().splitlines()]
    assert all(each["validation"]["passed"] for each in records)
    parts = {each["options"]["access"] for each in records} - {"copy", "load", "store"}
    names = ("structure-load", "structure-store", *(("gather", "scatter") if bits else ()))
    assert parts == {f"{name}-{size}" for name in names for size in (64, 32)}
