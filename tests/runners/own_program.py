"""own_programs/memory.c, a program as a user has one, and comparisons of it on this machine's real pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pagewise.core.record import Record
from pagewise.machine.host import bracketed_word
from scripts import called
from stage import Stage, write_case

SOURCES = Path(__file__).with_name("own_programs")
THP = Path("/sys/kernel/mm/transparent_hugepage")
POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")

# Maps memory at an address of 2 MiB, advises huge pages, touches it piece by piece, and prints the kilobytes
# on huge pages. It ends when 1 % is on base pages: the rest would take memory that the machine may not have.
_ADVISED = """
import ctypes, mmap, re, sys
size, huge = int(sys.argv[1]), 2 << 20
memory = mmap.mmap(-1, size + huge, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
begin = -address % huge
memory.madvise(mmap.MADV_HUGEPAGE, begin, size)

def on_huge_pages():
    inside = total = 0
    for line in open("/proc/self/smaps"):
        span = re.match("([0-9a-f]+)-([0-9a-f]+) ", line)
        if span:
            inside = int(span[1], 16) <= address + begin < int(span[2], 16)
        elif inside and line.startswith("AnonHugePages"):
            total += int(line.split()[1])
    return total

piece = 32 * huge
for start in range(0, size, piece):
    end = min(start + piece, size)
    for at in range(begin + start, begin + end, 4096):
        memory[at] = 1
    if end - on_huge_pages() * 1024 > size // 100:
        break
print(on_huge_pages())
"""

needs_thp = pytest.mark.skipif(
    not THP.exists() or bracketed_word((THP / "enabled").read_text()) == "never",
    reason="transparent huge pages are switched off on this machine",
)
needs_madvise = pytest.mark.skipif(
    not THP.exists() or bracketed_word((THP / "enabled").read_text()) != "madvise",
    reason="this machine gives transparent huge pages to all, or to none",
)

needs_advised = pytest.mark.skipif(
    tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 18),
    reason="PR_THP_DISABLE_EXCEPT_ADVISED needs Linux 6.18",
)


def bytes_on_huge_pages(size: int) -> int:
    """How much of a program's memory of this size, which it advises, is on huge pages of 2 MiB.

    The program touches no more of it as soon as 1 % is on base pages.
    """
    done = called([sys.executable, "-c", _ADVISED, str(size)], check=True)
    return int(done.stdout) * 1024


def build(source: str, made: Path, *options: str) -> Path:
    """Compile a file of own_programs, or another one that is named with its path.

    Whole, or not at all: another process of the tests may run it, or build it, too.
    """
    partial = made.with_name(f"{made.name}.{os.getpid()}")
    command = ["gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", SOURCES / source, "-o", partial]
    subprocess.run([*command, *options], check=True)
    return partial.replace(made)


def compile_program(folder: Path, name: str, *options: str) -> Path:
    return build("memory.c", folder / name, *options)


class Own:
    """Compares a program in a fresh folder."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder = programs, folder
        self.stage = Stage(folder, {"PAGEWISE_ROOT": str(programs)})

    def command(self, *arguments: str) -> list[str]:
        return self.stage.command("compare", "--output", str(self.stage.results), *arguments)

    def run(
        self, *arguments: str, program: str = "memory", way: str = "large", code: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        words = ["compare", "--output", str(self.stage.results), *arguments, "--"]
        return self.stage.run(*words, str(self.programs / program), *way.split(), code=code)

    def case(self, **fields: object) -> tuple[str, str]:
        return "--case", write_case(self.folder, **fields)

    def records(self, series: str = "compare") -> list[Record]:
        return [one for one in self.stage.read_result().records if one.run.series == series]

    def statuses(self) -> dict[str, set[str]]:
        actual: dict[str, set[str]] = {}
        for one in self.records():
            actual.setdefault(one.configuration.hugepages, set()).add(one.status)
        return actual

    def reason(self, policy: str) -> str:
        reported = next(one for one in self.records() if one.configuration.hugepages == policy)
        return reported.failure.message
