"""The TLB and cache simulator: its geometries, and its counts against those of a naive second one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.structure import from_data, to_data
from pagewise.core.text import choose_of, nearest
from pagewise.workloads.simulation.geometry import (
    FOLDER,
    Geometry,
    find_geometry,
    known_geometries,
    read_geometry,
)
from scripts import called

EXTENT = 2 << 20


@pytest.mark.parametrize("name", known_geometries())
def test_a_geometry_is_valid_sourced_and_read_by_the_model(name: str, replay: Path, tmp_path: Path) -> None:
    geometry = find_geometry(name)
    assert geometry.name == name
    assert from_data(Geometry, to_data(geometry)) == geometry
    assert counts(replay, geometry.lines(), "r 0 8\n", tmp_path)["L1D_TLB_REFILL"] == 1


def test_a64fx_matches_its_manual() -> None:
    a64fx = find_geometry("a64fx")
    tlbs = [(tlb.entries, tlb.ways, tlb.replacement) for tlb in a64fx.tlbs]
    assert tlbs == [(16, 16, "fifo"), (1024, 4, "lru")]
    caches = [(cache.bytes, cache.ways, cache.line_bytes) for cache in a64fx.caches]
    assert caches == [(64 << 10, 4, 256), (8 << 20, 16, 256)] and a64fx.pages.base == 64 << 10


def test_an_unknown_geometry_is_reported_with_the_nearest() -> None:
    with pytest.raises(SelectionError) as raised:
        find_geometry("zen5")
    assert raised.value.where == "--geometry" and choose_of("zen5", known_geometries()) in raised.value.remedy
    assert nearest("zen5", known_geometries())[0] == "zen4"
    with pytest.raises(SelectionError) as raised:
        find_geometry("mine.yaml")
    assert raised.value.where == "mine.yaml"


COST = {"dependent_ns": 1.0, "independent_ns": 1.0, "adjacent_ns": 1.0}
DESCENDING = [{"pages": pages, **COST} for pages in (512, 256)]
COSTS = {"base_fault_ns": 1.0, "huge_fault_ns": 1.0, "translations": DESCENDING}
#: Where the fault is, and the data that its line names.
WRONG = [
    ("tlbs.0", ("70", "72"), lambda data: data["tlbs"][0].update(entries=70)),
    ("pages.base", ("5000",), lambda data: data["pages"].update(base=5000)),
    ("pages", (), lambda data: data["pages"].update(huge=4096)),
    ("tlbs", ("1", "base"), lambda data: data["tlbs"][1].update(level=1)),
    ("tlbs", ("[1, 3]",), lambda data: data["tlbs"][1].update(level=3)),
    ("caches", ("[1, 1, 3]",), lambda data: data["caches"][1].update(level=1)),
    ("caches.0", ("none",), lambda data: data["caches"][0].update(inclusion="victim")),
    ("caches", (), lambda data: data["caches"][0].update(line_bytes=128)),
    ("caches.1", ("1000000",), lambda data: data["caches"][1].update(bytes=1000000)),
    ("tlbs.1.replacement", ("'random'",), lambda data: data["tlbs"][1].update(replacement="random")),
    ("tlbs.1", ("'source'",), lambda data: data["tlbs"][1].pop("source")),
    ("costs.translations", ("[512, 256]",), lambda data: data.update(costs=COSTS)),
]


@pytest.mark.parametrize(("place", "named", "change"), WRONG)
def test_a_malformed_geometry_is_refused_with_its_fault(
    place: str, named: tuple[str, ...], change: Callable[[Any], object], tmp_path: Path
) -> None:
    data = yaml.safe_load((FOLDER / "zen4.yaml").read_text())
    change(data)
    file = tmp_path / "wrong.yaml"
    file.write_text(yaml.safe_dump(data))
    with pytest.raises(FormatError) as raised:
        read_geometry(file)
    lines = [line.strip().partition(": ") for line in raised.value.message.splitlines()]
    assert any(where == place and all(word in text for word in named) for where, _, text in lines)
    assert raised.value.where == str(file)


class Naive:
    """The same machine by the shortest code: lists in the order of last use or arrival."""

    def __init__(self, geometry: Geometry, huge: set[int]) -> None:
        self.data, self.huge = to_data(geometry), huge
        self.tlbs = [(tlb, {}) for tlb in self.data["tlbs"]]
        self.caches = [(cache, {}) for cache in self.data["caches"]]
        self.dirty: list[set[int]] = [set() for _ in self.caches]
        self.counts = dict.fromkeys(
            itertools.chain(
                (f"L{n + 1}D_TLB_REFILL" for n in range(max(t["level"] for t in self.data["tlbs"]))),
                (f"L{n + 1}D_CACHE_{name}" for n in range(len(self.caches)) for name in ("REFILL", "WB")),
                ("PAGE_WALKS", "L1D_CACHE", "HUGE_PAGE_LOOKUPS"),
            ),
            0,
        )

    def access(self, address: int, size: int, store: bool) -> None:
        length = self.data["caches"][0]["line_bytes"]
        for line in range(address // length, (address + size - 1) // length + 1):
            self.counts["L1D_CACHE"] += 1
            self.translate(line * length)
            self.cache(line, store)

    def translate(self, address: int) -> None:
        kind = "huge" if address // EXTENT in self.huge else "base"
        self.counts["HUGE_PAGE_LOOKUPS"] += kind == "huge"
        page = (kind, address // self.data["pages"][kind])
        missed = []
        for tlb, sets in sorted(self.tlbs, key=lambda one: one[0]["level"]):
            if tlb["pages"] not in (kind, "both"):
                continue
            entries = sets.setdefault(page[1] % (tlb["entries"] // tlb["ways"]), [])
            if page in entries:
                if tlb["replacement"] == "lru":
                    entries.remove(page)
                    entries.append(page)
                break
            self.counts[f"L{tlb['level']}D_TLB_REFILL"] += 1
            missed.append((tlb, entries))
        else:
            self.counts["PAGE_WALKS"] += 1
        for tlb, entries in missed:
            entries.append(page)
            del entries[: -tlb["ways"]]

    def set_of(self, level: int, line: int) -> list[int]:
        cache, sets = self.caches[level]
        index, address = line, line * cache["line_bytes"]
        for part in cache.get("index_hash", []):
            index ^= (address >> part["lowest"]) % (1 << part["width"]) << part["shift"]
        return sets.setdefault(index % (cache["bytes"] // cache["line_bytes"] // cache["ways"]), [])

    def cache(self, line: int, store: bool) -> None:
        actual, modified = len(self.caches), False
        for level, (cache, _) in enumerate(self.caches):
            lines = self.set_of(level, line)
            if line in lines:
                actual = level
                lines.remove(line)
                if cache["inclusion"] == "victim":
                    modified = line in self.dirty[level]
                    self.dirty[level].discard(line)
                else:
                    lines.append(line)
                break
            self.counts[f"L{level + 1}D_CACHE_REFILL"] += 1
        for level in reversed(range(actual)):
            if self.caches[level][0]["inclusion"] != "victim":
                self.put(level, line, modified)
                modified = False
        if store:
            self.dirty[0].add(line)

    def put(self, level: int, line: int, modified: bool) -> None:
        lines = self.set_of(level, line)
        lines.append(line)
        if modified:
            self.dirty[level].add(line)
        if len(lines) <= self.caches[level][0]["ways"]:
            return
        out = lines.pop(0)
        dirty = out in self.dirty[level]
        self.dirty[level].discard(out)
        if self.caches[level][0]["inclusion"] == "inclusive":
            for inner in range(level):
                if out in self.set_of(inner, out):
                    self.set_of(inner, out).remove(out)
                    if out in self.dirty[inner]:
                        self.dirty[inner].discard(out)
                        self.counts[f"L{inner + 1}D_CACHE_WB"] += 1
                        dirty = True
        self.counts[f"L{level + 1}D_CACHE_WB"] += dirty
        if level + 1 == len(self.caches):
            return
        victim = self.caches[level + 1][0]["inclusion"] == "victim"
        below = self.set_of(level + 1, out)
        if out in below:
            if victim:
                below.remove(out)
                below.append(out)
            if dirty:
                self.dirty[level + 1].add(out)
        elif victim or dirty:
            self.put(level + 1, out, dirty)


def counts(replay: Path, lines: str, trace: str, folder: Path) -> dict[str, int]:
    (folder / "geometry").write_text(lines)
    done = called([replay, folder / "geometry"], input=trace, check=True)
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def small(tlbs: list[str], caches: list[str], hashed: bool = False) -> Geometry:
    """A machine so small that a short trace fills it."""
    kinds = ("level", "entries", "ways", "replacement", "pages")
    parts = ("level", "bytes", "ways", "line_bytes", "inclusion")
    source = {"source": "none"}
    data: dict[str, Any] = {
        **{"schema": "pagewise.geometry/1", "name": "small", "title": "small"},
        "pages": {"base": 4096, "huge": 65536, **source},
        "tlbs": [source | dict(zip(kinds, map(number, line.split()), strict=True)) for line in tlbs],
        "caches": [source | dict(zip(parts, map(number, line.split()), strict=True)) for line in caches],
    }
    if hashed:
        data["caches"][-1]["index_hash"] = [{"lowest": 13, "width": 2, "shift": 1}]
    return from_data(Geometry, data)


def number(word: str) -> int | str:
    return int(word) if word.isdigit() else word


MACHINES = {
    "one level, lru": small(["1 6 6 lru both"], ["1 1024 4 64 none"]),
    "fifo, then lru in sets": small(
        ["1 4 4 fifo both", "2 24 3 lru both"], ["1 1024 2 64 none", "2 8192 4 64 none"]
    ),
    "an array for each page size": small(
        ["1 4 2 lru base", "1 2 2 lru huge", "2 12 4 lru base"], ["1 512 2 64 none", "2 4096 4 64 inclusive"]
    ),
    "inclusive, victim": small(
        ["1 8 8 lru both"], ["1 512 2 64 none", "2 2048 4 64 inclusive", "3 8192 8 64 victim"]
    ),
    "victim behind one that includes nothing": small(
        ["1 3 1 fifo both"], ["1 512 2 64 none", "2 1024 4 64 none", "3 4096 2 64 victim"]
    ),
    "hashed": small(["1 8 8 lru both"], ["1 512 2 256 none", "2 4096 4 256 inclusive"], hashed=True),
}


def trace_of(seed: int) -> Iterator[tuple[str, int, int]]:
    """Runs of strides among jumps, near and far, over 40 pages."""
    dice = random.Random(seed)
    spots = [dice.randrange(20) * EXTENT // 4 for _ in range(12)]
    for _ in range(400):
        at, stride = dice.choice(spots) + dice.randrange(16384), dice.choice((8, 8, 64, 200, 4096))
        kind = dice.choice("rrw")
        for step in range(dice.randrange(1, 12)):
            yield kind, at + step * stride, dice.choice((1, 8, 32, 64))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MACHINES)
def test_the_model_counts_as_a_naive_one(name: str, seed: int, replay: Path, tmp_path: Path) -> None:
    huge = {1, 3}
    naive = Naive(MACHINES[name], huge)
    lines = [f"h {extent * EXTENT:x}" for extent in sorted(huge)]
    for kind, address, size in trace_of(seed):
        naive.access(address, size, kind == "w")
        lines.append(f"{kind} {address:x} {size}")
    simulated = counts(replay, MACHINES[name].lines(), "\n".join(lines) + "\n", tmp_path)
    assert {key: simulated[key] for key in naive.counts} == naive.counts
    assert all(value > 0 for value in naive.counts.values())


def test_replay_refuses_malformed_traces(replay: Path, tmp_path: Path) -> None:
    (tmp_path / "geometry").write_text(find_geometry("zen4").lines())
    done = called([replay, tmp_path / "geometry"], input="x 10 8\n")
    assert done.returncode == 2 and done.stderr
