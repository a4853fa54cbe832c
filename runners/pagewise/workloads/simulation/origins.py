"""Names the origins of a program's memory: call sites by function and line, from what the plug-in reports.

A site is the first frame that does not allocate for its caller, and the caller: docs/explanation/origins.md.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import add
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from pagewise.core.manifest_parts import Origin
from pagewise.core.units import bytes_text
from pagewise.stack.commands import output_of

#: The most origins of a record; the others are summed.
MOST = 100
_MISSES = "L1D_TLB_REFILL"
# Modules whose functions allocate for their callers.
_RUNTIMES = re.compile(
    r"ld-|libpagewise-preload"
    r"|lib(c|m|gcc_s|pthread|stdc\+\+|c\+\+|gfortran|flang|Fortran|gomp|omp|tcmalloc|jemalloc|mimalloc)[-.]"
)
# Functions that do: xmalloc, PyObject_Malloc, std::vector<...>::resize; not reallocate_grid.
_WRAPPERS = re.compile(
    r"\w*(malloc|calloc|realloc(?!ate)|memalign|strdup)\w*(\(.*)?|_?npy_alloc\w*|_?Py(Data)?Mem_\w+"
    r"|([^(]* )?(std|__gnu_cxx)::.*|(void\* )?operator new.*",
    re.IGNORECASE | re.DOTALL,
)
_FRAME = re.compile(r"^(?!0x)(?P<function>.*)\n(?P<file>.*):(?P<line>\d+|\?).*$", re.MULTILINE)
# gfortran's names of the procedures of modules.
_FORTRAN = re.compile(r"^__(\w+?)_MOD_(\w+)$")
#: Addresses per call of addr2line.
_ADDRESSES = 200


@dataclass(frozen=True)
class _Frame:
    """A function at a return address; its callers into which it was put (inline) have the same address.

    address: the module's build ID and the offset of the return address in it.
    """

    function: str
    line: str | None
    module: str
    address: str

    @property
    def is_wrapper(self) -> bool:
        """Whether it allocates for its caller."""
        return bool(_RUNTIMES.match(Path(self.module).name) or _WRAPPERS.fullmatch(self.function))

    @property
    def text(self) -> str:
        """The function with its line."""
        return self.function if self.line is None else f"{self.function} {self.line}"


def name_origins(reported: Sequence[Mapping[str, Any]]) -> tuple[Origin, ...]:
    """The origins by page walks or samples, most first. reported: by kernels/model/origins.c."""
    frames = _symbolize(reported)
    merged: dict[tuple[str, ...], Origin] = {}
    for each in reported:
        origin = _origin(each, frames)
        key = (origin.kind, *origin.identity)
        merged[key] = _sum(merged[key], origin) if key in merged else origin
    ranked = sorted(
        merged.values(),
        key=lambda origin: (origin.weight, origin.counts.get(_MISSES, 0), origin.bytes),
        reverse=True,
    )
    rest = ranked[MOST:]
    return (*ranked[:MOST], *([sum_of(rest)] if rest else []))


def sum_of(origins: Sequence[Origin]) -> Origin:
    """The sum of origins that are not listed one by one."""
    summed = reduce(_sum, origins)
    name = f"{len(origins)} others"
    return replace(
        summed, kind="others", name=name, place=None, caller=None, identity=(), wrappers=(), modules={}
    )


def _sum(one: Origin, other: Origin) -> Origin:
    """Both, such as two call paths of a site; their peak is at most the sum of the two."""
    saved = None
    if one.saved_seconds and other.saved_seconds:
        saved = tuple(map(add, one.saved_seconds, other.saved_seconds))
    return replace(
        one,
        wrappers=tuple(dict.fromkeys((*one.wrappers, *other.wrappers))),
        modules={**one.modules, **other.modules},
        bytes=one.bytes + other.bytes,
        allocations=one.allocations + other.allocations,
        begin=min(one.begin, other.begin),
        end=max(one.end, other.end),
        page_faults=one.page_faults + other.page_faults,
        counts={name: count + other.counts[name] for name, count in one.counts.items()},
        distant={name: tuple(map(add, each, other.distant[name])) for name, each in one.distant.items()},
        saved_seconds=saved,
    )


def _origin(reported: Mapping[str, Any], symbolized: Mapping[tuple[str, int], list[_Frame]]) -> Origin:
    kind, module = reported["kind"], reported["module"]
    name, place, caller = reported["name"], None, None
    identity: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    files: dict[str, str] = {}
    if kind == "allocation":
        frames = [
            frame for part in reported["frames"] for frame in symbolized[part["module"], part["offset"]]
        ]
        # A stack of wrappers alone: the C library's own memory.
        first = next((i for i, frame in enumerate(frames) if not frame.is_wrapper), 0)
        site, callers = frames[first], frames[first + 1 :]
        name, module = site.function, Path(site.module).name
        # A function without a name has its module in its place.
        place = site.line or (None if name.startswith(f"{module}+") else module)
        caller = next((frame.text for frame in callers if not frame.is_wrapper), None)
        outer = next((frame for frame in callers if frame.address != site.address), None)
        identity = (site.address,) if outer is None else (site.address, outer.address)
        wrappers = [frame for frame in frames[:first] if frame.address != site.address]
        inner = tuple(dict.fromkeys(frame.address for frame in wrappers))
        known = (site, *wrappers, *((outer,) if outer is not None else ()))
        files = {_build_id(frame.module): frame.module for frame in known}
    elif kind in ("static", "file"):
        identity = (_build_id(module), *filter(None, [name]))
        files = {identity[0]: module}
        place = Path(module).name if name else None
        name = _FORTRAN.sub(r"\1::\2", name) or Path(module).name
    elif kind == "anonymous":
        # Of a program without reported sites, by size.
        identity = (name,)
        name = f"mapping of {bytes_text(int(name))}" if name else "other anonymous memory"
    return Origin(
        kind=kind,
        name=name or kind,
        place=place,
        caller=caller,
        identity=identity,
        wrappers=inner,
        modules=files,
        bytes=reported["bytes"],
        allocations=reported["allocations"],
        begin=reported["begin"],
        end=reported["end"],
        page_faults=reported["page_faults"],
        counts=dict(reported["counts"]),
        distant={name: tuple(each) for name, each in reported["distant"].items()},
    )


def _symbolize(reported: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], list[_Frame]]:
    """The functions at each return address (module, offset), innermost first."""
    offsets: dict[str, set[int]] = {}
    for each in reported:
        for frame in each["frames"]:
            offsets.setdefault(frame["module"], set()).add(frame["offset"])
    return {
        (module, offset): [
            _Frame(function, line, module, f"{_build_id(module)}+{offset:#x}") for function, line in functions
        ]
        for module, known in offsets.items()
        for offset, functions in _functions(module, sorted(known))
    }


def _functions(module: str, offsets: Sequence[int]) -> Iterator[tuple[int, list[tuple[str, str | None]]]]:
    """Functions and lines by addr2line; of a module without symbols, or without addr2line, its offset."""
    tool, start = shutil.which("addr2line"), _start(module)
    for i in range(0, len(offsets), _ADDRESSES):
        some = offsets[i : i + _ADDRESSES]
        parts: Sequence[str] = []
        if tool is not None and start is not None:
            # The call is before the return address.
            addresses = [f"{start + offset - 1:#x}" for offset in some]
            printed = output_of([tool, "-afCi", "-e", module, *addresses], check=False) or ""
            parts = re.split(r"^0x[0-9a-f]+\n", printed, flags=re.MULTILINE)[1:]
        for offset, part in zip(some, parts or [""] * len(some), strict=True):
            functions = [
                (_FORTRAN.sub(r"\1::\2", match["function"]), _line(match["file"], match["line"]))
                for match in _FRAME.finditer(part)
                if match["function"] != "??"
            ]
            # Of a stripped module, addr2line names the exported function before the address.
            if functions and (functions[0][1] is not None or _is_inside(module, (start or 0) + offset - 1)):
                yield offset, functions
            else:
                yield offset, [(f"{Path(module).name or '?'}+{offset:#x}", None)]


def _is_inside(module: str, address: int) -> bool:
    """Whether a function of the symbol table, or of the dynamic one of a stripped module, has the address."""
    return any(begin <= address < end for begin, end in _ranges(module))


@cache
def _ranges(module: str) -> tuple[tuple[int, int], ...]:
    with Path(module).open("rb") as stream:
        file = ELFFile(stream)
        tables = [file.get_section_by_name(name) for name in (".symtab", ".dynsym")]
        table = next((table for table in tables if isinstance(table, SymbolTableSection)), None)
        return tuple(
            (symbol["st_value"], symbol["st_value"] + symbol["st_size"])
            for symbol in (table.iter_symbols() if table is not None else ())
            if symbol["st_size"] > 0
            and symbol["st_info"]["type"] in ("STT_FUNC", "STT_GNU_IFUNC", "STT_LOOS")
        )


def _line(file: str, line: str) -> str | None:
    return None if file == "??" or line in ("?", "0") else f"{Path(file).name}:{line}"


@cache
def _start(module: str) -> int | None:
    """The address in the file that its first mapped byte has; None for what is not a program or library."""
    try:
        with Path(module).open("rb") as stream:
            loaded = [part["p_vaddr"] for part in ELFFile(stream).iter_segments("PT_LOAD")]
            return min(loaded) & -4096 if loaded else None
    except (OSError, ELFError):
        return None


@cache
def _build_id(module: str) -> str:
    """The build ID of a program or library; its name where it has none."""
    try:
        with Path(module).open("rb") as stream:
            parts = (part for part in ELFFile(stream).iter_sections() if isinstance(part, NoteSection))
            notes = (note for part in parts for note in part.iter_notes())
            return next(str(note["n_desc"]) for note in notes if note["n_type"] == "NT_GNU_BUILD_ID")
    except (OSError, ELFError, StopIteration):
        return Path(module).name
