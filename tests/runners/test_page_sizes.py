"""Kernels with base pages of 16 and 64 KiB, and huge pages of other sizes than 2 MiB, by synthetic files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from builders import configuration, kernel, subject_of
from fake_root import THP, tree
from pagewise.core.host import Thp
from pagewise.core.page_policy import PagePolicy, normal_name, size_name
from pagewise.machine.host import default_pool_size, read_host, thp_size
from pagewise.machine.node_state import huge_order, predict
from pagewise.machine.settings.hugepages import margin_pages, pages_needed, pools_of
from pagewise.machine.settings.thp import switches_needed
from pagewise.session import holder
from pagewise.workloads.doctor import page_findings, supply_findings
from pagewise.workloads.kernels import workload
from pagewise.workloads.program.smaps import Mapped, by_kind, kinds, parse
from pagewise.workloads.program.workload import Programs

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
POOLS = "sys/kernel/mm/hugepages"


@dataclass(frozen=True)
class Node:
    """A node: base page, THP size with its order, sizes of pools, the default one, orders of free blocks."""

    base: int
    pmd: int
    order: int
    pools: tuple[int, ...]
    default: int
    switched: tuple[int, ...] = ()
    orders: int = 11

    def write(self, root: Path) -> Path:
        """Its files: 3 free blocks of the THP size, base pages of 100 such blocks, 5 of 7 pages in pools."""
        blocks = [0] * self.orders
        blocks[0], blocks[self.order] = 100 << self.order, 3
        files: dict[str, object] = {
            "proc/meminfo": f"MemAvailable: {GIB} kB\nHugepagesize: {self.default // KIB} kB",
            "proc/buddyinfo": "Node 0, zone   Normal " + " ".join(map(str, blocks)),
            "proc/zoneinfo": "Node 0, zone   Normal\n        min      0\n        protection: (0, 0)",
            f"{THP}/enabled": "always [madvise] never",
            f"{THP}/defrag": "always defer defer+madvise [madvise] never",
            f"{THP}/hpage_pmd_size": self.pmd,
        }
        for size in self.switched:
            files[f"{THP}/hugepages-{size // KIB}kB/enabled"] = "always inherit madvise [never]"
        for size in self.pools:
            folder = f"{POOLS}/hugepages-{size // KIB}kB"
            files |= {f"{folder}/nr_hugepages": 7, f"{folder}/free_hugepages": 5}
        return tree(root, files)


# Sizes: Documentation/arch/arm64/hugetlbpage.rst, arch/arm64/mm/hugetlbpage.c; POWER with the radix and the
# hash MMU. The largest order of free blocks is 13 for base pages of 64 KiB on Arm.
_CONTIGUOUS_64K = (2 * MIB, 512 * MIB, 16 * GIB)
NODES = {
    # The study's node starts with default_hugepagesz=2M (Feldman et al., EAHPC 2022).
    "a64fx": Node(64 * KIB, 512 * MIB, 13, _CONTIGUOUS_64K, 2 * MIB, orders=14),
    "grace-64k": Node(
        64 * KIB, 512 * MIB, 13, _CONTIGUOUS_64K, 512 * MIB, (128 * KIB, 2 * MIB, 512 * MIB), orders=14
    ),
    "grace-4k": Node(4 * KIB, 2 * MIB, 9, (64 * KIB, 2 * MIB, 32 * MIB, GIB), 2 * MIB, (64 * KIB, 2 * MIB)),
    "arm-16k": Node(16 * KIB, 32 * MIB, 11, (2 * MIB, 32 * MIB, GIB), 32 * MIB, orders=12),
    "power-radix": Node(64 * KIB, 2 * MIB, 5, (2 * MIB, GIB), 2 * MIB, orders=9),
    "power-hash": Node(64 * KIB, 16 * MIB, 8, (16 * MIB, 16 * GIB), 16 * MIB, orders=9),
}


@pytest.fixture(params=NODES)
def node(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node whose base page this process seems to have."""
    selected = NODES[str(request.param)]
    other = os.sysconf
    monkeypatch.setattr(
        os, "sysconf", lambda name: selected.base if name in ("SC_PAGESIZE", "SC_PAGE_SIZE") else other(name)
    )
    return selected


def test_a_node_is_read(node: Node, tmp_path: Path):
    root = node.write(tmp_path)
    host = read_host(root)
    assert host.base_page_size_bytes == node.base
    assert [(pool.page_bytes, pool.total, pool.free) for pool in host.pools] == [
        (size, 7, 5) for size in node.pools
    ]
    assert (thp_size(root), default_pool_size(root)) == (node.pmd, node.default)
    assert host.thp is not None and set(host.thp.sizes) == {f"{size // KIB}kB" for size in node.switched}
    for size in node.switched:
        switch = root / THP / f"hugepages-{size // KIB}kB/enabled"
        assert [one.file for one in switches_needed([f"thp:{size_name(size)}"], root)] == [switch]
    of_pmd = root / THP / f"hugepages-{node.pmd // KIB}kB/enabled"
    needed = [one.file for one in switches_needed(["thp"], root)]
    assert needed == ([of_pmd] if node.pmd in node.switched else [])


def test_huge_pages_are_predicted_in_their_own_size(node: Node, tmp_path: Path):
    root = node.write(tmp_path)
    assert huge_order(root) == node.order and node.base << node.order == node.pmd
    supply = predict(Thp("madvise", "madvise", {}), "allowed", root)
    assert supply is not None
    memory = GIB * KIB // node.pmd
    assert (supply.page_bytes, supply.obtainable) == (node.pmd, min(3, memory))
    assert supply.usable_share == pytest.approx(3 / 103, abs=1e-6)
    # The mode of the size, where it has one, precedes the general one.
    of_size = predict(Thp("madvise", "madvise", {f"{node.pmd // KIB}kB": "never"}), "allowed", root)
    assert of_size is not None and of_size.obtainable == 0
    assert [finding.state for finding in supply_findings(supply, root)] == ["note"]


def test_doctor_requires_the_default_pool_only(node: Node, tmp_path: Path):
    root = node.write(tmp_path)
    assert {finding.state for finding in page_findings(read_host(root), root)} == {"good"}
    for size in node.pools:
        (root / POOLS / f"hugepages-{size // KIB}kB/nr_hugepages").write_text("0\n")
    empty = [finding for finding in page_findings(read_host(root), root) if finding.state == "note"]
    assert [finding.remedy is not None for finding in empty] == [size == node.default for size in node.pools]
    named = {size: f"hugetlbfs:{size_name(size)}" for size in node.pools if size != node.default}
    assert all(any(name in finding.detail for finding in empty) for name in named.values())


def test_the_default_pool_is_reserved(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = node.write(tmp_path)
    (pool,) = pools_of([0], root)
    assert pool.page_bytes == node.default
    monkeypatch.setattr(workload, "default_pool_size", lambda: default_pool_size(root))
    of_pool = configuration(label=("hugetlbfs", "hardware", "regular"))
    subject = subject_of(kernel(), configuration(), of_pool)
    selected = SimpleNamespace(subjects=[subject], options=SimpleNamespace(sweep=False))
    selected.placements = [SimpleNamespace(ranks=None)]
    arguments = [subject.benchmark.arguments]
    assert workload.Kernels._pool_pages(selected) == {node.default: pages_needed(arguments, node.default)}
    assert pages_needed(arguments, node.pools[-1]) < pages_needed(arguments, node.pools[0])
    for size in node.pools:
        # Room for the working set, and to round up four arrays.
        assert pages_needed([("--working-set", "1GiB")], size) * size >= GIB + min(3 * size, 32 * MIB)
        # The same margin for each process of a program, and pages for the arena of each thread.
        programs = SimpleNamespace(placements=[SimpleNamespace(threads=2)])
        runs = SimpleNamespace(from_pool=[])
        memory = SimpleNamespace(peak=lambda: SimpleNamespace(resident=0), processes=3)
        of_each = margin_pages(size) + (4 if size <= 2 * MIB else 0)
        assert Programs._pages_needed(programs, runs, memory, size) == 3 * of_each


@pytest.mark.parametrize(
    ("name", "size", "normal"),
    [
        ("thp:64K", 64 * KIB, "thp:64k"),
        ("hugetlbfs:2M", 2 * MIB, "hugetlbfs:2m"),
        ("hugetlbfs:512m", 512 * MIB, "hugetlbfs:512m"),
        ("hugetlbfs:1024m", GIB, "hugetlbfs:1g"),
        ("hugetlbfs:16G", 16 * GIB, "hugetlbfs:16g"),
    ],
)
def test_sizes_by_name(name: str, size: int, normal: str):
    assert PagePolicy(name).size == size and normal_name(name) == normal


def test_other_names_stay():
    names = ["thp", "none", "thp:3x", "thp:", "thp:0m", "thp:2MB"]
    assert [normal_name(name) for name in names] == names


def test_memory_of_a_kernel_with_base_pages_of_64_kib():
    text = (
        "400000-410000 r-xp 00000000 fe:00 1 /opt/app\n"
        "Rss: 64 kB\nKernelPageSize: 64 kB\nMMUPageSize: 64 kB\n"
        "410000-420000 rw-p 00010000 fe:00 1 /opt/app\n"
        "Rss: 64 kB\nKernelPageSize: 64 kB\n"
        "420000-10420000 rw-p 00000000 00:00 0 \n"
        "Rss: 262144 kB\nKernelPageSize: 64 kB\n"
        "ffff60000000-ffffa0000000 rw-p 00000000 00:00 0 \n"
        "Rss: 1048576 kB\nAnonHugePages: 524288 kB\nKernelPageSize: 64 kB\nVmFlags: rd wr hg\n"
        "ffffa0000000-ffffc0000000 rw-p 00000000 00:0f 7 /anon_hugepage (deleted)\n"
        "Rss: 0 kB\nPrivate_Hugetlb: 524288 kB\nKernelPageSize: 524288 kB\n"
    )
    # Its .bss begins 40 KiB into the page that the kernel maps.
    mappings = parse(text)
    usage = by_kind(mappings, 512 * MIB, lambda name: (0x2A000, 0x10020000))
    assert usage["bss"].resident == 256 * MIB and usage["bss"].eligible == 0
    assert usage["anonymous"].huge == GIB and usage["anonymous"].resident == 3 * 512 * MIB
    # The first address is a multiple of 512 MiB, so that two pages fit into the first mapping.
    assert usage["anonymous"].eligible == 3 * 512 * MIB
    # With base pages of 4 KiB, the same addresses are not those of .bss.
    small = parse(text.replace("KernelPageSize: 64 kB", "KernelPageSize: 4 kB"))
    assert "bss" not in {kind for _, kind in kinds(small, lambda name: (0x2A000, 0x10020000))}
    assert Mapped(0, 700 * MIB, "rw-p", 0, "", {"Rss": 700 * MIB}).usage(512 * MIB).eligible == 512 * MIB


@pytest.mark.parametrize(("order", "left"), [(9, 16), (13, 1)])
def test_the_holder_leaves_some_memory_in_its_first_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], order: int, left: int
):
    page = (4 * KIB if order == 9 else 64 * KIB) << order
    asked = []
    monkeypatch.setattr(holder.mmap, "PAGESIZE", page >> order)
    monkeypatch.setattr(holder, "obtainable", lambda of: 20 - sum(asked) if of == order else 0)
    monkeypatch.setattr(holder, "take", lambda count, size: asked.append(count) or (size, 0))
    monkeypatch.setattr(holder, "fragment", lambda *words: None)
    monkeypatch.setattr(holder.signal, "pause", lambda: None)
    monkeypatch.setattr(holder.ctypes, "CDLL", lambda name: SimpleNamespace(prctl=lambda *words: 0))
    monkeypatch.setattr(holder.Path, "write_text", lambda *words, **named: 0)
    holder.main(order, 1000)
    assert asked == [20 - left, left] and capsys.readouterr().out == "ready 20\n"
