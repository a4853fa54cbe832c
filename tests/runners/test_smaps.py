"""Memory by kind, from smaps recorded on a real kernel, and from truncated or garbled texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pagewise.workloads.program.smaps import Mapped, Usage, by_kind, kinds, parse, parse_rollup, zeroed_of

HUGE, MIB = 2 << 20, 1 << 20
RECORDED = Path(__file__).with_name("smaps")
PROGRAM = "/opt/app/memory"


def text(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def no_bss(name: str) -> tuple[int, int]:
    return 0, 0


def mapped(start: int, end: int, resident: int, huge: int = 0) -> Mapped:
    return Mapped(start, end, "rw-p", 0, "", {"Rss": resident, "AnonHugePages": huge})


def test_a_large_array_on_transparent_huge_pages():
    usage = by_kind(parse(text("thp")), HUGE, no_bss)
    assert usage["anonymous"].huge == 62 * MIB and usage["anonymous"].unasked == 0
    assert usage["anonymous"].eligible == usage["anonymous"].huge
    assert usage["heap"] == Usage(HUGE, HUGE, HUGE)
    assert usage["text"].huge == 0 and usage["text"].resident > 500 << 10
    assert {"file", "data", "stack"} <= usage.keys()
    without_advice = by_kind(parse(text("thp").replace(" hg", "")), HUGE, no_bss)["anonymous"]
    assert without_advice.unasked == without_advice.huge == 62 * MIB


def test_pages_of_a_hugetlb_pool_count_although_rss_excludes_them():
    usage = by_kind(parse(text("hugetlbfs")), HUGE, no_bss)
    assert usage["anonymous"].huge == 66 * MIB
    assert usage["anonymous"].coverage > 0.99


def test_static_arrays_are_located_by_the_program_file_or_follow_its_data():
    mappings = kinds(
        parse(text("static")), lambda name: (0x3000, 0x3000 + 51 * MIB) if name == PROGRAM else (0, 0)
    )
    zeroed = [mapping for mapping, kind in mappings if kind == "bss"]
    assert sum(mapping.usage(HUGE).resident for mapping in zeroed) == pytest.approx(48 * MIB, rel=0.01)
    assert max(mapping.usage(HUGE).eligible for mapping in zeroed) >= 44 * MIB
    # Without the file, they follow its data.
    usage = by_kind(parse(text("static")), HUGE, lambda name: None)
    assert usage["bss"].resident == pytest.approx(48 * MIB, rel=0.01)


def test_foreign_and_garbled_lines_are_ignored():
    usage = by_kind(parse(text("foreign")), HUGE, no_bss)
    assert usage.keys() == {"text", "heap"}
    assert usage["heap"].huge == 512 * MIB


@pytest.mark.parametrize("cut", [0, 1, 57, 100, 1000, 3333, 5000])
def test_a_truncated_text_gives_its_complete_mappings(cut: int):
    complete = parse(text("thp"))
    some = parse(text("thp")[:cut])
    assert len(some) <= len(complete)
    assert [mapping.start for mapping in some] == [mapping.start for mapping in complete[: len(some)]]


@pytest.mark.parametrize("name", ["", "\0\0\0", "Rss: 12", "7f-80 rw-p", "Rss:   99999999999999999999 kB"])
def test_other_texts_give_no_mappings(name: str):
    assert parse(name) == []


@pytest.mark.parametrize(
    ("file", "rights", "kinds_of_memory"),
    [
        ("[heap]", "rw-p", ["heap"]),
        ("[stack]", "rw-p", ["stack"]),
        ("[stack:17]", "rw-p", ["stack"]),
        ("[anon: glibc: malloc]", "rw-p", ["anonymous"]),
        ("[anon_shmem:x]", "rw-p", ["shared"]),
        ("/dev/shm/x", "rw-p", ["shared"]),
        ("/memfd:x (deleted)", "rw-p", ["shared"]),
        ("/SYSV00000000 (deleted)", "rw-p", ["shared"]),
        ("/anon_hugepage (deleted)", "rw-p", ["anonymous"]),
        ("/usr/share/data with blanks", "rw-p", ["data"]),
        ("", "rw-p", ["anonymous"]),
        # Machine code that was moved.
        ("", "r-xp", ["text"]),
        ("", "rwxp", ["anonymous"]),
        ("/opt/app/x", "rwxp", ["text"]),
        ("[vdso]", "r-xp", []),
        ("/opt/app/x", "r-xp", ["text"]),
        ("/opt/app/x", "r--p", ["file"]),
        ("/opt/app/x", "rw-s", ["file"]),
    ],
)
def test_kinds_by_name_and_rights(file: str, rights: str, kinds_of_memory: list[str]):
    line = f"10000000-10400000 {rights} 00000000 00:0e 7       {file}\nRss:    4096 kB\n"
    assert [kind for _, kind in kinds(parse(line), no_bss)] == kinds_of_memory


def test_moved_machine_code_is_anonymous_and_executable():
    line = "10000000-10400000 r-xp 00000000 00:00 0 \nRss:    4096 kB\nAnonHugePages:    4096 kB\n"
    line += "VmFlags: rd ex hg\n"
    assert by_kind(parse(line), HUGE) == {"text": Usage(4 * MIB, 4 * MIB, 4 * MIB)}


def test_eligible_bytes():
    assert mapped(0, 4 * HUGE, 4 * HUGE).usage(HUGE).eligible == 4 * HUGE
    # Shifted by 4 KiB: the first and the last huge page are incomplete.
    assert mapped(4096, 4 * HUGE + 4096, 4 * HUGE).usage(HUGE).eligible == 3 * HUGE
    assert mapped(4096, HUGE, HUGE - 4096).usage(HUGE).eligible == 0
    # Partly touched: bytes that can be outside complete huge pages do not count against the policy.
    assert mapped(4096, 4 * HUGE + 4096, HUGE).usage(HUGE).eligible == 0
    assert mapped(4096, 4 * HUGE + 4096, HUGE, huge=HUGE).usage(HUGE).eligible == HUGE


def test_this_process_is_read():
    usage = by_kind(parse(Path("/proc/self/smaps").read_text()), HUGE)
    rollup = parse_rollup(Path("/proc/self/smaps_rollup").read_text())
    assert sum(part.resident for part in usage.values()) == pytest.approx(rollup.resident, rel=0.05)


def test_a_file_that_is_missing_or_not_a_program(tmp_path: Path):
    assert zeroed_of(str(tmp_path / "gone")) is None
    (tmp_path / "plain").write_text("text")
    assert zeroed_of(str(tmp_path / "plain")) == (0, 0)
