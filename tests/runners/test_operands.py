"""The memory operands of machine code, as `where --fast` decodes them, against those that objdump prints."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator import compiled

NAMES = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{number}" for number in range(8, 16))]
VALUES = [(number + 1) * (number + 3) << 24 for number in range(32)]
OPERAND = re.compile(
    r"(?P<far>%[fg]s:)?(?P<displacement>-?0x[0-9a-f]+)?"
    r"\((?P<base>%\w+)?(?:,(?P<index>%\w+))?(?:,(?P<scale>\d))?\)"
)
LINE = re.compile(r"\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*(.*)")
# No access, or one that no ModR/M byte names.
ABSOLUTE = re.compile(r"[ ,](%[fg]s:)?0x[0-9a-f]+(,|$)")
WITHOUT = re.compile(r"(data16 |cs |notrack |bnd )*(lea|nop|prefetch)|.*%es:|.*%ds:|endbr|.*\(bad\)|xlat")


class Instruction(ctypes.Structure):
    """What is decoded."""

    _fields_ = (
        ("length", ctypes.c_uint),
        ("accesses", ctypes.c_bool),
        ("address", ctypes.c_uint64),
        ("of_modrm", ctypes.c_uint8 * 4),
    )


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    source = Path(__file__).with_name("operands.c")
    library = ctypes.CDLL(
        str(compiled(tmp_path_factory.mktemp("operands") / "operands.so", "-shared", "-fPIC", source))
    )
    library.decode.restype, library.awaited.restype = Instruction, ctypes.c_uint64
    return library


REGISTERS = (ctypes.c_uint64 * 32)(*VALUES)


def disassembled(file: Path) -> Iterator[tuple[int, bytes, str]]:
    """Address, bytes and text of each instruction of a file's functions."""
    command = ["objdump", "-d", "-w", "--section=.text", "--insn-width=16", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as printed:
        assert printed.stdout is not None
        for line in printed.stdout:
            if match := LINE.fullmatch(line.rstrip("\n")):
                yield int(match[1], 16), bytes.fromhex(match[2]), match[3]


def address_of(text: str) -> int | None:
    """The address of the operand that objdump prints, with the registers' values; None: no access."""
    match = OPERAND.search(text)
    if match is None or match["far"]:
        return None
    if match["base"] == "%rip":
        return int(text.split("# ")[1].split(maxsplit=1)[0], 16)
    address = int(match["displacement"] or "0", 16)
    for name, scale in ((match["base"], 1), (match["index"], int(match["scale"] or 1))):
        # Vectors of indices and %riz add nothing.
        address += VALUES[NAMES.index(name[1:])] * scale if name and name[1:] in NAMES else 0
    return address % 2**64


@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is missing: apt-get install binutils")
def test_instructions_of_the_c_library_are_decoded_as_by_objdump(decoder: ctypes.CDLL):
    library = Path("/lib/x86_64-linux-gnu/libc.so.6")
    if not library.exists():
        pytest.skip("there is no C library of x86-64 here")
    wrong, accesses, seen = [], 0, 0
    for at, code, text in disassembled(library):
        buffer = ctypes.create_string_buffer(code + bytes(16))
        decoded = decoder.decode(1, buffer, REGISTERS)
        seen += 1
        assert decoded.length == len(code), text
        if WITHOUT.match(text):
            continue
        expected = address_of(text)
        actual = decoded.address if decoded.accesses else None
        if actual is not None and "%rip" in text:
            actual += at - ctypes.addressof(buffer)
        accesses += expected is not None
        if expected != actual and not ABSOLUTE.search(text):
            wrong.append((text, expected, actual))
    assert seen > 100_000 and accesses > 20_000
    assert wrong == []


ARM = {
    # From the Arm ARM's encodings: ldr x0, [x1, #8]; ldrb w0, [x1, #8]; str q0, [x1, #16]
    0xF9400420: VALUES[1] + 8,
    0x39402020: VALUES[1] + 8,
    0x3D800420: VALUES[1] + 16,
    # ldr x0, [x1, x2, lsl #3]; ldr w0, [x1, w2, sxtw]; ldr x0, [x1], #8;
    # ldr x0, [x1, #-8]!; ldur x0, [x1, #-8]
    0xF8627820: VALUES[1] + 8 * VALUES[2],
    0xB862C820: VALUES[1] + VALUES[2],
    0xF8408420: VALUES[1],
    0xF85F8C20: VALUES[1] - 8,
    0xF85F8020: VALUES[1] - 8,
    # ldp x0, x2, [sp, #-16]; stp x0, x2, [sp], #16; ldp q0, q1, [x1, #32]
    0xA97F0BE0: VALUES[31] - 16,
    0xA8810BE0: VALUES[31],
    0xAD410420: VALUES[1] + 32,
    # ldadd x0, x1, [x2]; ld1 {v0.2d}, [x1]; ld1d {z0.d}, p0/z, [x1]
    0xF8200041: VALUES[2],
    0x4C407C20: VALUES[1],
    0xA5E0A020: VALUES[1],
    # prfm pldl1keep, [x1]; add x0, x1, x2; b .; fmla v0.2d, v1.2d, v2.2d
    0xF9800020: None,
    0x8B020020: None,
    0x14000000: None,
    0x4E62CC20: None,
}


@pytest.mark.parametrize("code", ARM)
def test_operands_of_aarch64(decoder: ctypes.CDLL, code: int):
    actual = decoder.decode(0, code.to_bytes(4, "little"), REGISTERS)
    assert (actual.length, actual.address if actual.accesses else None) == (4, ARM[code])


# mov (%rax),%rax; add $1,%rdx; mov %rdx,(%rdi); nop; nop
CODE = bytes.fromhex("488b00 4883c201 488917 90 90")
# mov (%r13,%rcx,8),%rcx; mov %rcx,(%r12,%rdx,8)
REPLACED = bytes.fromhex("498b4ccd00 49890cd4")
CALL = bytes.fromhex("4889c7 0f05 4885c0")


@pytest.mark.parametrize(
    ("code", "at", "faulting", "expected"),
    [
        # A load that was waited for is before; the first instruction has nothing before it.
        (CODE, 3, False, VALUES[0]),
        (CODE, 7, False, VALUES[0]),
        (CODE, 7, True, VALUES[7]),
        (CODE, 10, False, VALUES[7]),
        (CODE, 12, False, VALUES[7]),
        (CODE, 0, False, VALUES[0]),
        (REPLACED, 5, False, VALUES[13]),
        (REPLACED, 5, True, VALUES[12] + 8 * VALUES[2]),
        (REPLACED, 0, False, VALUES[13] + 8 * VALUES[1]),
        (CALL, 5, False, 1),
        (CALL, 3, False, 0),
    ],
)
def test_the_address_that_interrupted_code_waits_for(
    decoder: ctypes.CDLL, code: bytes, at: int, faulting: bool, expected: int
):
    # From the start of a page on: nothing before it is read.
    buffer = ctypes.create_string_buffer(2 * 4096)
    page = -ctypes.addressof(buffer) % 4096
    ctypes.memmove(ctypes.addressof(buffer) + page, code + b"\x90" * 32, len(code) + 32)
    place: Any = ctypes.c_void_p(ctypes.addressof(buffer) + page + at)
    assert decoder.awaited(1, place, REGISTERS, faulting) == expected


# add %rdx,%rax; mov (%rax),%eax; nop
SUM = bytes.fromhex("4801d0 8b00 90")
POINTER = 0x7123456789AB


@pytest.mark.parametrize(
    ("before", "code", "frame", "expected"),
    [
        # lea 0x20(%r12,%rax,4),%rax; movslq (%rax),%rax; nop
        ("498d448420", "486300 90", 0, VALUES[12] + 0x20),
        # mov %rbx,%rax; add %rcx,%rax; movslq 8(%rax),%rax; nop
        ("4889d8 4801c8", "48634008 90", 0, VALUES[3] + VALUES[1] + 8),
        # mov -0x10(%rsp),%rax; lea (%r9,%r9,1),%rdx
        ("488b4424f0 4b8d1409", SUM, 0, POINTER + VALUES[2]),
        # mov -0x2000(%rsp),%rax: two pages below the stack pointer
        ("488b842400e0ffff", SUM, 0, VALUES[0]),
        # mov -0x10(%rbp),%rax on the next page, of the frame or not
        ("488b45f0", SUM, 0x100, POINTER + VALUES[2]),
        ("488b45f0", SUM, 0x20000, VALUES[0]),
        ("", SUM, 0, VALUES[0]),
    ],
)
def test_the_base_that_a_load_has_replaced(
    decoder: ctypes.CDLL, before: str, code: str | bytes, frame: int, expected: int
):
    """From what computed it, or as it is. frame: bytes from the stack pointer to the frame pointer."""
    whole = bytes.fromhex(before) + (bytes.fromhex(code) if isinstance(code, str) else code)
    buffer = ctypes.create_string_buffer(3 * 4096)
    page = ctypes.addressof(buffer) + -ctypes.addressof(buffer) % 4096
    ctypes.memmove(page, whole, len(whole))
    ctypes.memmove(page + 4096, POINTER.to_bytes(8, "little"), 8)
    registers = (ctypes.c_uint64 * 32)(*VALUES)
    registers[5] = page + 4096 + 0x10
    registers[4] = registers[5] - frame
    place: Any = ctypes.c_void_p(page + len(whole) - 1)
    assert decoder.awaited(1, place, registers, False) == expected
