"""Geometries: the TLBs and caches of micro-architectures as data, and as the lines that the model reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.reading import parse_yaml, read_file
from pagewise.core.schemas import faults
from pagewise.core.suggestions import choose_of

FOLDER = Path(__file__).parent / "geometries"


@dataclass(frozen=True)
class Geometry:
    """A geometry as its file describes it. sectors: the lines of the sectors of its caches, if any."""

    name: str
    title: str
    data: dict[str, Any]
    sectors: tuple[str, ...] = ()

    def lines(self) -> str:
        """As kernels/model/geometry.h describes it."""
        pages = self.data["pages"]
        out = [f"geometry {self.name}", f"pages {pages['base']} {pages['huge']}"]
        out += [
            f"tlb {tlb['level']} {tlb['entries']} {tlb['ways']} {tlb['replacement']} {tlb['pages']}"
            for tlb in self.data["tlbs"]
        ]
        for cache in self.data["caches"]:
            level, line = cache["level"], cache["line_bytes"]
            out.append(f"cache {level} {cache['bytes']} {cache['ways']} {line} {cache['inclusion']}")
            out += [
                f"hash {level} {hashed['lowest']} {hashed['width']} {hashed['shift']}"
                for hashed in cache.get("index_hash", [])
            ]
        return "\n".join([*out, *self.sectors]) + "\n"


def known() -> list[str]:
    """The names of the geometries that come with pagewise."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def find_geometry(name: str) -> Geometry:
    """The geometry of a name, or of a file. Raises SelectionError, FormatError."""
    if name.endswith(".yaml"):
        file = Path(name)
    elif name in known():
        file = FOLDER / f"{name}.yaml"
    else:
        raise SelectionError(
            f"no geometry is called {name}",
            where="--geometry",
            remedy=f"{choose_of(name, known())}; or name a file of your own, ending in .yaml",
        )
    return read_geometry(file)


def read_geometry(file: Path) -> Geometry:
    """Reads a geometry file. Raises FormatError that names every fault, SelectionError if it is not there."""
    try:
        data = parse_yaml(read_file(file))
    except FileNotFoundError as fault:
        raise SelectionError(
            "there is no such geometry file",
            where=file,
            remedy=f"name a file, or one of: {', '.join(known())}",
        ) from fault
    except (OSError, ValueError) as fault:
        raise FormatError(
            f"the geometry cannot be read: {fault}",
            where=file,
            remedy="correct it, as docs/explanation/simulation.md has it",
        ) from fault
    found = faults("geometry", data) or list(_contradictions(data))
    if found:
        text = "the geometry does not follow pagewise.geometry/1:\n    " + "\n    ".join(found)
        raise FormatError(text, where=file, remedy="docs/explanation/simulation.md describes geometry files")
    return Geometry(data["name"], data["title"], data)


def _contradictions(data: dict[str, Any]) -> Iterator[str]:
    """What the schema cannot see, as `place: what`."""
    pages = data["pages"]
    for name in ("base", "huge"):
        if not _is_power_of_two(pages[name]):
            yield f"pages.{name}: {pages[name]} is no power of two"
    if pages["base"] >= pages["huge"]:
        yield "pages: huge pages are not larger than base pages"
    held: Counter[tuple[int, str]] = Counter()
    for i, tlb in enumerate(data["tlbs"]):
        if tlb["entries"] % tlb["ways"] != 0:
            yield f"tlbs.{i}: {tlb['entries']} entries are not a multiple of {tlb['ways']} ways"
        held.update((tlb["level"], kind) for kind in ("base", "huge") if tlb["pages"] in (kind, "both"))
    yield from (f"tlbs: level {level} has two for {kind} pages" for (level, kind), n in held.items() if n > 1)
    levels = sorted({tlb["level"] for tlb in data["tlbs"]})
    if levels != list(range(1, len(levels) + 1)):
        yield f"tlbs: the levels are {levels}, and are counted from 1"
    yield from _contradictions_of_caches(data["caches"], pages["base"])


def _contradictions_of_caches(caches: list[dict[str, Any]], page: int) -> Iterator[str]:
    levels = [cache["level"] for cache in caches]
    if levels != list(range(1, len(caches) + 1)):
        yield f"caches: the levels are {levels}, and are to be 1, 2 and so on"
    if caches[0]["inclusion"] != "none":
        yield "caches.0: the first level can only have the inclusion none"
    if len({cache["line_bytes"] for cache in caches}) > 1:
        yield "caches: all must have lines of one size"
    for i, cache in enumerate(caches):
        line, way = cache["line_bytes"], cache["ways"] * cache["line_bytes"]
        if not _is_power_of_two(line) or not 8 <= line <= page:
            yield f"caches.{i}: {line} bytes is no power of two from 8 to the base page"
        elif cache["bytes"] % way != 0:
            yield f"caches.{i}: {cache['bytes']} bytes are not a multiple of ways x line"
        elif cache.get("index_hash") and not _is_power_of_two(cache["bytes"] // way):
            yield f"caches.{i}: a hash needs a power of two of sets"


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
