"""Geometries: the TLBs and caches of micro-architectures as data, and as the lines that the model reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pagewise.core.errors import SelectionError
from pagewise.core.fields import SomeText
from pagewise.core.reading import read_document
from pagewise.core.structure import Form, Limits
from pagewise.core.text import choose_of

FOLDER = Path(__file__).parent / "geometries"
_LEVEL = re.compile(r"L([1-3])=(\d{1,4})")
_ARRAY = re.compile(r"[A-Za-z_]\w*")
_SECTOR = "--sector"

AtLeastOne = Annotated[int, Limits(1)]
AtLeastZero = Annotated[float, Limits(0)]
Level = Annotated[int, Limits(1, 3)]


@dataclass(frozen=True)
class PageSizes:
    """The sizes of its pages in bytes."""

    base: AtLeastOne
    huge: AtLeastOne
    source: SomeText


@dataclass(frozen=True)
class Translation:
    """What an access costs more on base pages than on huge pages, by how the program got its address.

    pages: the least base pages accessed since the last access to the same page. dependent_ns: of an access
    whose address another one loaded; independent_ns: of any other; adjacent_ns: of each page of a stream.
    """

    pages: AtLeastOne
    dependent_ns: AtLeastZero
    independent_ns: AtLeastZero
    adjacent_ns: AtLeastZero


@dataclass(frozen=True)
class Costs:
    """What base pages cost on a node.

    Faults: CPU time of the first access to a page of this size, and of its release.
    """

    base_fault_ns: AtLeastZero
    huge_fault_ns: AtLeastZero
    translations: Annotated[tuple[Translation, ...], Limits(1, 12)]


@dataclass(frozen=True)
class TlbPart:
    """A TLB. miss_ns: how much longer a load takes that misses this level and no other.

    entry_bytes: what an entry translates of a huge page, where this is less than the page.
    """

    level: Level
    entries: AtLeastOne
    ways: AtLeastOne
    replacement: Literal["lru", "fifo"]
    pages: Literal["base", "huge", "both"]
    source: SomeText
    miss_ns: AtLeastZero | None = None
    entry_bytes: AtLeastOne | None = None


@dataclass(frozen=True)
class HashPart:
    """Bits of the address that are XORed, shifted left, into the set number."""

    lowest: Annotated[int, Limits(0, 63)]
    width: Annotated[int, Limits(1, 32)]
    shift: Annotated[int, Limits(0, 32)]


@dataclass(frozen=True)
class CachePart:
    """A cache. sectors: parts of some ways that software can assign to arrays."""

    level: Level
    bytes: AtLeastOne
    ways: AtLeastOne
    line_bytes: AtLeastOne
    inclusion: Literal["none", "inclusive", "victim"]
    source: SomeText
    sectors: Annotated[int, Limits(2, 4)] | None = None
    index_hash: Annotated[tuple[HashPart, ...], Limits(most=8)] = ()


@dataclass(frozen=True)
class Sector:
    """A sector of caches, as --sector names it: its arrays, and its ways by cache level."""

    arrays: tuple[str, ...]
    ways: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, text: str) -> Sector:
        """The sector of a text such as `b:L2=10` or `a,c:L1=1,L2=4`. Raises SelectionError."""
        names, _, levels = text.partition(":")
        arrays, parts = names.split(","), levels.split(",")
        ways = [(int(match[1]), int(match[2])) for match in map(_LEVEL.fullmatch, parts) if match]
        if not all(map(_ARRAY.fullmatch, arrays)) or len(ways) != len(parts) or len(dict(ways)) != len(ways):
            raise SelectionError(
                f"{text!r} is not a sector",
                where=_SECTOR,
                remedy="name arrays and ways of caches, as in b:L2=10 or a,c:L1=1,L2=4",
            )
        return cls(tuple(arrays), tuple(sorted(ways)))

    @property
    def text(self) -> str:
        """As --sector takes it."""
        return ",".join(self.arrays) + ":" + ",".join(f"L{level}={ways}" for level, ways in self.ways)


@dataclass(frozen=True)
class Geometry:
    """The data TLBs and caches of a micro-architecture, as one core sees them."""

    schema: Literal["pagewise.geometry/1"]
    name: Annotated[str, Form("[a-z0-9_]+")]
    title: SomeText
    pages: PageSizes
    tlbs: Annotated[tuple[TlbPart, ...], Limits(1)]
    caches: Annotated[tuple[CachePart, ...], Limits(1, 3)]
    costs: Costs | None = None

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """What cannot be built, or that the model cannot simulate."""
        for name, size in (("base", self.pages.base), ("huge", self.pages.huge)):
            if not _is_power_of_two(size):
                yield f"pages.{name}", f"{size} is not a power of two"
        if self.pages.base >= self.pages.huge:
            yield "pages", "huge pages are not larger than base pages"
        held: Counter[tuple[int, str]] = Counter()
        for i, tlb in enumerate(self.tlbs):
            if tlb.entries % tlb.ways != 0:
                yield f"tlbs.{i}", f"{tlb.entries} entries are not a multiple of {tlb.ways} ways"
            entry = tlb.entry_bytes or self.pages.huge
            if not _is_power_of_two(entry) or not self.pages.base <= entry <= self.pages.huge:
                yield f"tlbs.{i}.entry_bytes", f"{entry} is not a power of two from a base to a huge page"
            held.update((tlb.level, kind) for kind in ("base", "huge") if tlb.pages in (kind, "both"))
        for (level, kind), number in held.items():
            if number > 1:
                yield "tlbs", f"level {level} has two for {kind} pages"
        levels = sorted({tlb.level for tlb in self.tlbs})
        if levels != list(range(1, len(levels) + 1)):
            yield "tlbs", f"the levels are {levels}; count them from 1"
        distances = [each.pages for each in (self.costs.translations if self.costs else ())]
        if distances != sorted(set(distances)) or not all(map(_is_power_of_two, distances)):
            yield "costs.translations", f"the pages are {distances}; write powers of two that ascend"
        yield from self._contradictions_of_caches()

    def _contradictions_of_caches(self) -> Iterator[tuple[str, str]]:
        levels = [cache.level for cache in self.caches]
        if levels != list(range(1, len(levels) + 1)):
            yield "caches", f"the levels are {levels}; write 1, 2 and so on"
        if self.caches[0].inclusion != "none":
            yield "caches.0", "the first level can only have the inclusion none"
        if len({cache.line_bytes for cache in self.caches}) > 1:
            yield "caches", "all must have lines of one size"
        for i, cache in enumerate(self.caches):
            line, way = cache.line_bytes, cache.ways * cache.line_bytes
            if not _is_power_of_two(line) or not 8 <= line <= self.pages.base:
                yield f"caches.{i}", f"{line} bytes is not a power of two from 8 to the base page"
            elif cache.bytes % way != 0:
                yield f"caches.{i}", f"{cache.bytes} bytes are not a multiple of ways x line"
            elif cache.index_hash and not _is_power_of_two(cache.bytes // way):
                yield f"caches.{i}", "a hash needs a power of two of sets"

    @property
    def entry_bytes(self) -> int:
        """The bytes of a huge page that an entry translates."""
        held = [tlb.entry_bytes for tlb in self.tlbs if tlb.entry_bytes is not None]
        return min(held, default=self.pages.huge)

    def lines(self, sectors: Sequence[Sector] = (), *, caches: bool = True) -> str:
        """As kernels/model/geometry.h describes it, also without its caches; sectors are numbered from 1."""
        out = [f"geometry {self.name}", f"pages {self.pages.base} {self.pages.huge} {self.entry_bytes}"]
        out += [
            f"tlb {tlb.level} {tlb.entries} {tlb.ways} {tlb.replacement} {tlb.pages}" for tlb in self.tlbs
        ]
        for cache in self.caches if caches else ():
            level, line = cache.level, cache.line_bytes
            out.append(f"cache {level} {cache.bytes} {cache.ways} {line} {cache.inclusion}")
            out += [f"hash {level} {part.lowest} {part.width} {part.shift}" for part in cache.index_hash]
        out += [f"distance {each.pages}" for each in (self.costs.translations if self.costs else ())]
        numbered = list(enumerate(sectors, start=1))
        out += [f"sector {level} {i} {ways}" for i, sector in numbered for level, ways in sector.ways]
        out += [f"array {name} {i}" for i, sector in numbered for name in sector.arrays]
        return "\n".join(out) + "\n"

    def check(self, sectors: Sequence[Sector]) -> None:
        """Raises SelectionError unless its caches can have these sectors."""
        for fault in self._faults(sectors):
            raise SelectionError(
                f"{self.title}: {fault}",
                where=_SECTOR,
                remedy="choose fewer sectors or ways, or a geometry whose caches have sectors: "
                "--geometry a64fx",
            )

    def _faults(self, sectors: Sequence[Sector]) -> Iterator[str]:
        names = Counter(name for sector in sectors for name in sector.arrays)
        yield from (f"array {name} is in two sectors" for name, number in names.items() if number > 1)
        caches = {cache.level: cache for cache in self.caches}
        for level in sorted({level for sector in sectors for level, _ in sector.ways}):
            given = [ways for sector in sectors for of, ways in sector.ways if of == level]
            cache = caches.get(level)
            if cache is None or not cache.sectors:
                yield f"L{level} has no sectors"
            elif len(given) >= cache.sectors:
                yield f"L{level} has {cache.sectors} sectors, one of them for all other memory"
            elif min(given) < 1 or sum(given) >= cache.ways:
                yield f"L{level} has {cache.ways} ways; each sector, that of other memory included, needs one"


def known_geometries() -> list[str]:
    """The names of the geometries that come with pagewise."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def find_geometry(name: str) -> Geometry:
    """The geometry of a name, or of a file. Raises SelectionError, FormatError."""
    if name.endswith(".yaml"):
        file = Path(name)
    elif name in known_geometries():
        file = FOLDER / f"{name}.yaml"
    else:
        raise SelectionError(
            f"no geometry is called {name}",
            where="--geometry",
            remedy=f"{choose_of(name, known_geometries())}; or name your file that ends in .yaml",
        )
    return read_geometry(file)


def read_geometry(file: Path) -> Geometry:
    """Reads a geometry file. Raises FormatError that names every fault, SelectionError if it is not there."""
    if not file.exists():
        raise SelectionError(
            "there is no such geometry file",
            where=file,
            remedy=f"name a file, or one of: {', '.join(known_geometries())}",
        )
    return read_document(Geometry, file, "docs/explanation/simulation.md describes geometry files")


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
