"""Emulated A64FX: results with every vector length, the generated code, and refusal on other targets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from conftest import A64FX_KERNELS, A64FX_LENGTHS, disassembly, emulate, installed, run, spack, succeed

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def emulated(small: Path) -> Path:
    """The small checkout with the kernels built for vectors of any length."""
    content = yaml.safe_load((small / "envs" / "a64fx-emulated" / "spack.yaml").read_text())
    content["spack"]["definitions"][1] = {"minis": []}
    content["spack"]["specs"] = content["spack"]["specs"][:1]
    content["spack"]["specs"][0]["matrix"][-1] = ["%pagewise-gcc-a64fx-agnostic"]
    (small / "envs" / "a64fx-agnostic").mkdir()
    (small / "envs" / "a64fx-agnostic" / "spack.yaml").write_text(yaml.safe_dump(content))
    succeed(small / "setup" / "stack", "a64fx-agnostic")
    return small


def prefixes(checkout: Path) -> dict[str, Path]:
    """The installation folders of the environment's roots, by their loop, or software, and stores."""
    roots = ((prefix, root["parameters"]) for prefix, root in installed(checkout, "a64fx-agnostic").items())
    return {
        f"{'software' if values['prefetch'] == 'software' else values['loop']}-{values['stores']}": prefix
        for prefix, values in roots
    }


@pytest.mark.parametrize("bits", A64FX_LENGTHS)
@pytest.mark.parametrize("variant", ["explicit-regular", "explicit-zfill", "compiler-regular"])
def test_results_are_right_with_vectors_of_any_length(
    emulated: Path, tmp_path: Path, variant: str, bits: int
) -> None:
    prefix = prefixes(emulated)[variant]
    for kernel in A64FX_KERNELS:
        file = tmp_path / f"{kernel}.jsonl"
        # Neither the arrays nor the threads' shares are a whole number of cache lines.
        arguments = ("--working-set", "401kB", "--repetitions", "2", "--threads", "3", "--record", str(file))
        done = emulate(prefix / "bin" / f"pw-{kernel}", *arguments, bits=bits)
        assert done.returncode == 0, done.stdout
        record = json.loads(file.read_text())
        assert record["validation"]["passed"]
        built = record["configuration"]
        assert f"{built['loop']}-{built['stores']}" == variant
        assert record["pages"]["huge_coverage"] == 0


def test_the_environment_chooses_the_vector_length(emulated: Path) -> None:
    program = prefixes(emulated)["compiler-regular"] / "bin" / "pw-stream_triad"
    launcher = program.parents[1] / "share" / "pagewise" / "emulate"
    command = (program, "--working-set", "64kB", "--repetitions", "1")
    # The emulator cannot start a program again: a length other than its own is refused.
    for bits, of_emulator, code in (
        ("256", (), 0),
        ("256", ("--vector-bits", "512"), 4),
        ("100", ("--vector-bits", "512"), 2),
    ):
        done = run(launcher, *of_emulator, *command, PAGEWISE_SVE_BITS=bits)
        assert done.returncode == code, done.stdout


@pytest.mark.parametrize("page", [16384, 65536])
def test_base_pages_of_other_sizes(emulated: Path, tmp_path: Path, page: int) -> None:
    for kernel in A64FX_KERNELS:
        file = tmp_path / f"{kernel}.jsonl"
        program = prefixes(emulated)["explicit-regular"] / "bin" / f"pw-{kernel}"
        launcher = program.parents[1] / "share" / "pagewise" / "emulate"
        command = (program, "--working-set", "401kB", "--repetitions", "1", "--record", file)
        succeed(launcher, *command, QEMU_PAGESIZE=str(page))
        record = json.loads(file.read_text())
        assert record["validation"]["passed"] and record["pages"]["huge_coverage"] == 0
        assert record["pages"]["base_page_size_bytes"] == page
        assert record["pages"]["page_size_observed_bytes"] == page


def test_zfill_zeroes_at_any_distance_and_never_after_a_write(emulated: Path) -> None:
    program = prefixes(emulated)["explicit-zfill"] / "bin" / "pw-stream_triad"
    for sweep in ("zero-distance", "type", "simd"):
        done = emulate(program, "--working-set", "101kB", "--repetitions", "1", "--sweep", sweep)
        assert done.returncode == 0, done.stdout
        assert "FAILED" not in done.stdout


@pytest.mark.parametrize("bits", A64FX_LENGTHS)
def test_prefetches_into_both_levels_by_line_vector_and_gather(emulated: Path, bits: int) -> None:
    folder = prefixes(emulated)["software-zfill"] / "bin"
    # The guide's distances for zfill, and ones at which nothing that is zeroed later may be prefetched.
    for arguments in (
        ("stream_triad", "--prefetch-distance=9", "--prefetch-distance-l2=70", "--sweep", "prefetch-by"),
        ("stream_triad", "--prefetch-distance=30", "--sweep", "zero-distance=0,1,2,18,40"),
        ("gather", "--sweep", "prefetch-by"),
    ):
        kernel, *options = arguments
        done = emulate(
            folder / f"pw-{kernel}", "--working-set", "101kB", "--repetitions", "1", *options, bits=bits
        )
        assert done.returncode == 0, done.stdout
        assert "FAILED" not in done.stdout


def code_of(checkout: Path, pattern: str) -> str:
    """The disassembly of the library's objects."""
    objects = list((checkout / ".pagewise" / "opt").glob(f"libpagewise/*/lib*/pagewise/objects-*/{pattern}"))
    assert objects, pattern
    return disassembly(*objects)


def test_loops_are_vector_length_agnostic_sve_and_zfill_zeroes_lines(emulated: Path) -> None:
    plain = code_of(emulated, "pw-stream_triad-timed-hardware-regular-loop-compiler/*.f90.o")
    assert "whilelo" in plain and "ld1d" in plain and "{z" in plain, "predicated SVE"
    assert "zva" not in plain
    assert "zva" in code_of(emulated, "pw-stream_triad-timed-hardware-zfill/**/*.c.o")


def test_software_prefetches_have_the_hint_of_their_level(emulated: Path) -> None:
    text = code_of(emulated, "pw-stream_triad-timed-software-zfill/**/*.c.o")
    operations = set(re.findall(r"\t(prf[md])\s+(p[ls]\w+)", text))
    reads = {(name, hint) for name in ("prfm", "prfd") for hint in ("pldl1keep", "pldl2keep")}
    # What is zeroed in L1 is not prefetched into L2.
    assert operations == reads | {("prfm", "pstl1keep"), ("prfd", "pstl1keep")}
    text = code_of(emulated, "pw-stream_triad-timed-software-regular/**/*.c.o")
    assert re.search(r"\tprfm\s+pstl2keep", text)
    assert re.search(r"\tprfd\s+pldl1keep, p\d+, \[x\d+, z\d+\.d, lsl #3\]", code_of(
        emulated, "pw-gather-timed-software-regular/**/*.c.o"
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("name", "instead", "reason"),
    [
        ("target=a64fx", "target=x86_64_v3", "DC ZVA"),
        ("prefetch=hardware stores=zfill", "prefetch=hardware stores=zfill +ipo", "+ipo"),
    ],
)
def test_spack_refuses_configurations_that_cannot_be_measured(
    small: Path, name: str, instead: str, reason: str
) -> None:
    folder = small / "envs" / "refused"
    folder.mkdir(exist_ok=True)
    text = (small / "envs" / "a64fx-emulated" / "spack.yaml").read_text()
    assert name in text
    (folder / "spack.yaml").write_text(text.replace(name, instead))
    done = spack(small, folder, "concretize", "--force", fails=True)
    assert reason in done.stdout
