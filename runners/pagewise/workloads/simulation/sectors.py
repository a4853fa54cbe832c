"""Sectors of simulated caches: which arrays have how many ways, as --sector names them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pagewise.core.errors import SelectionError
from pagewise.workloads.simulation.geometry import Geometry

_LEVEL = re.compile(r"L([1-3])=(\d{1,4})")
_ARRAY = re.compile(r"[A-Za-z_]\w*")
_WHERE = "--sector"


@dataclass(frozen=True)
class Sector:
    """A sector: the names of its arrays, and its ways by cache level."""

    arrays: tuple[str, ...]
    ways: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        """As --sector takes it."""
        return ",".join(self.arrays) + ":" + ",".join(f"L{level}={ways}" for level, ways in self.ways)


def parse_sector(text: str) -> Sector:
    """The sector of a text such as `b:L2=10` or `a,c:L1=1,L2=4`. Raises SelectionError."""
    names, _, levels = text.partition(":")
    arrays, parts = names.split(","), levels.split(",")
    ways = [(int(match[1]), int(match[2])) for match in map(_LEVEL.fullmatch, parts) if match]
    if not all(map(_ARRAY.fullmatch, arrays)) or len(ways) != len(parts) or len(dict(ways)) != len(ways):
        raise SelectionError(
            f"{text!r} is not a sector",
            where=_WHERE,
            remedy="name arrays and ways of caches, as in b:L2=10 or a,c:L1=1,L2=4",
        )
    return Sector(tuple(arrays), tuple(sorted(ways)))


def with_sectors(geometry: Geometry, sectors: Sequence[Sector]) -> Geometry:
    """The geometry with these sectors, numbered from 1. Raises SelectionError if it cannot have them."""
    for fault in _faults(geometry, sectors):
        raise SelectionError(
            f"{geometry.title}: {fault}",
            where=_WHERE,
            remedy="choose fewer sectors or ways, or a geometry whose caches have sectors: --geometry a64fx",
        )
    numbered = list(enumerate(sectors, start=1))
    lines = [f"sector {level} {i} {ways}" for i, sector in numbered for level, ways in sector.ways]
    lines += [f"array {name} {i}" for i, sector in numbered for name in sector.arrays]
    return replace(geometry, sectors=tuple(lines))


def text_of(sectors: Sequence[Sector]) -> str:
    """All sectors as one text."""
    return " ".join(sector.text for sector in sectors)


def _faults(geometry: Geometry, sectors: Sequence[Sector]) -> Iterator[str]:
    names = [name for sector in sectors for name in sector.arrays]
    yield from (f"array {name} is in two sectors" for name in dict.fromkeys(names) if names.count(name) > 1)
    caches = {cache["level"]: cache for cache in geometry.data["caches"]}
    for level in sorted({level for sector in sectors for level, _ in sector.ways}):
        given = [ways for sector in sectors for of, ways in sector.ways if of == level]
        has = caches.get(level, {}).get("sectors", 0)
        if not has:
            yield f"L{level} has no sectors"
        elif len(given) >= has:
            yield f"L{level} has {has} sectors, one of them for all other memory"
        elif min(given) < 1 or sum(given) >= caches[level]["ways"]:
            all_ways = caches[level]["ways"]
            yield f"L{level} has {all_ways} ways; each sector, that of other memory included, needs one"
