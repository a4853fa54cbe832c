"""The reader of ELF files: against readelf, and with damaged headers."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pytest

from pagewise.stack.binary import NotElfError, read_elf
from scripts import called

PYTHON = Path(sys.executable).resolve()


def test_sizes_match_readelfs_segments() -> None:
    elf = read_elf(PYTHON)
    printed = called(["readelf", "--wide", "--segments", PYTHON], env={"LC_ALL": "C"}, check=True).stdout
    rows = re.findall(r"LOAD +0x\w+ 0x(\w+) 0x\w+ 0x(\w+) 0x(\w+) ([RWE ]{3})", printed)
    parts = [(*(int(value, 16) for value in row[:3]), row[3]) for row in rows]
    assert elf.text_bytes == sum(in_file for _, in_file, _, flags in parts if "E" in flags)
    (data,) = ((address, in_file, size) for address, in_file, size, flags in parts if "W" in flags)
    start = data[0] - (parts[0][0] & -4096)
    assert elf.static_bytes == data[2] and elf.zeroed == (start + data[1], start + data[2])
    alignments = re.findall(r"LOAD .* (0x[0-9a-f]+)$", printed, re.MULTILINE)
    is_fixed = "EXEC" in called(["readelf", "--file-header", PYTHON], check=True).stdout
    assert elf.aligned_bytes == (sys.maxsize if is_fixed else max(int(each, 16) for each in alignments))
    assert elf.interpreter == re.findall(r"program interpreter: (\S+)\]", printed)[0]


def test_damaged_headers_are_refused_or_read(tmp_path: Path) -> None:
    content, draw = Path("/bin/true").read_bytes(), random.Random(1)
    refused = 0
    for number in range(300):
        damaged = bytearray(content[: draw.choice((len(content), 5000, 200, 64, 30, 0))])
        for _ in range(draw.randint(1, 8)):
            if damaged:
                damaged[draw.randrange(min(len(damaged), 800))] = draw.randrange(256)
        file = tmp_path / str(number)
        file.write_bytes(damaged)
        try:
            read_elf(file)
        except NotElfError:
            refused += 1
    assert 100 < refused < 300


@pytest.mark.parametrize(
    ("flags", "expected"),
    [(("-no-pie",), True), (("-pie", "-Wl,-z,max-page-size=0x200000"), True), (("-pie",), False)],
)
def test_a_part_of_three_mebibytes_has_a_whole_page_in_each_run(
    tmp_path: Path, flags: tuple[str, ...], expected: bool
) -> None:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text("int main(void) { return 0; }\n", encoding="ascii")
    called(["cc", "-Wl,-z,max-page-size=0x1000", *flags, source, "-o", program], check=True)
    elf = read_elf(program)
    assert elf.holds(3 << 20, 2 << 20) is expected
    assert elf.holds(4 << 20, 2 << 20) and not elf.holds((2 << 20) - 1, 2 << 20)
