"""Which of our kernels is compared with what, at which size, and the targets. Data, and its expansion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, Literal

from pagewise.core.errors import SelectionError
from pagewise.core.host import Host
from pagewise.core.structure import structured, unstructured
from pagewise.machine.host import thp_size
from pagewise.workloads.peers.known import element_bytes, matrix_order

KIB, MIB, GIB = 1024, 1024**2, 1024**3
STREAM, HARDWARE = "bandwidth_stream_gb_per_s", "bandwidth_hardware_gb_per_s"
CACHES = ("L1", "L2", "L3")
ROUNDS, QUICK_ROUNDS, QUICK_LEVELS = 9, 3, ("L1", "memory")
_PAGES = ("none", "thp")
_TRIAD = "schoenauer_triad"
# Tests of likwid-bench by traffic; those in single precision are not compared.
_LOOPS = {
    _TRIAD: ("triad", "triad_*"),
    "stream_copy": ("copy", "copy_*"),
    "stream_sum": ("load", "load_*", "sum", "sum_*"),
    "stream_update": ("update", "update_*"),
}
_SINGLE = ("*_sp", "*_sp_*")

# `--call direct` uses the instruction of sqrt.
_FUNCTIONS = ("exp", "log", "sin", "cos", "tan", "pow", "sqrt", "cbrt", "erf")
_LIBRARIES = ("libmvec", "sleef")
# Functions that a compiler does not vectorise, whatever library is linked.
_SCALAR = {"llvm": ("cbrt", "erf")}
# Libraries of linear algebra and transforms where none is built: they are then listed as missing.
PROVIDERS: Mapping[str, Sequence[str]] = {"blas": ("openblas",), "fftw": ("fftw",)}
# What our own matrix multiplication is compared with, and at which sizes. Reference BLAS would take a minute.
_BEST_BLAS, _ROWS_OF_OWN = "openblas", (1000, 1536)
_ROWS = {"sgemm": 1000, "dgemm": 1000, "cgemm": 500, "zgemm": 500}
_ROWS_OF_SLOW = {"netlib-lapack": 250}
# Transforms fill 4 MiB (at least one); planning a longer one takes seconds per run.
_LENGTHS, _NUMBERS = (2**10, 2**14, 2**18), 2**17
# Our candidates by level: configurations, and SIMD widths. Wide vectors win in L1 and lose in memory.
_WIDTHS = ((), ("--simd", "256"), ("--simd", "512"))
# A loop of loads does no arithmetic. Sums of integers are closest to it, because wide floating-point
# arithmetic lowers the clock of Intel's processors.
_LOADS = tuple((*(("--type", "int64") if width else ()), *width) for width in _WIDTHS)
_BUILDS = {
    "L1": ("thp/hardware-regular",),
    "L2": ("thp/hardware-regular",),
    "L3": ("thp/hardware-regular", "thp/software-regular"),
    "memory": tuple(
        f"{pages}/{variant}"
        for pages in ("none", "thp")
        for variant in ("hardware-regular", "software-regular", "hardware-nontemporal")
    ),
}


@dataclass(frozen=True)
class Ours:
    """Our side: a kernel, the record's field, configurations by glob, alternatives of further arguments."""

    kernel: str
    field: str
    configurations: tuple[str, ...]
    alternatives: tuple[tuple[str, ...], ...] = ((),)


@dataclass(frozen=True)
class Theirs:
    """The peer's side: its tests by glob, less those of `without`, and the page policies it is given.

    library: the one that it calls, if any, by its name in our configurations.
    """

    peer: str
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()
    pages: tuple[str, ...] = ("none",)
    library: str = ""


@dataclass(frozen=True)
class Target:
    """The target of the speedup of ours over theirs: at least `least`, at most `most`.

    scope: the best of all our configurations, or each compiler's best.
    """

    scope: Literal["all", "compiler"]
    least: float
    most: float = math.inf

    def text(self) -> str:
        """As it is shown."""
        return f"≥ {self.least:.2f}" if math.isinf(self.most) else f"{self.least:.2f}–{self.most:.2f}"


@dataclass(frozen=True)
class Match:
    """Ours against theirs at one size; `other` is a kernel of ours or a peer.

    details: pages and compiler, where a name needs them. compiler: limits both sides. other_name: that of a
    kernel of ours as the other side. remark: shown with the result.
    """

    level: str
    details: tuple[str, ...]
    working_set: int
    ours: Ours
    other: Ours | Theirs
    targets: tuple[Target, ...]
    unit: str = "GB/s, stream"
    better: Literal["higher", "lower"] = "higher"
    threads: int = 1
    compiler: str | None = None
    other_name: str = ""
    remark: str = ""

    @property
    def against(self) -> str:
        """The other side's name."""
        return self.other.peer if isinstance(self.other, Theirs) else self.other_name

    @property
    def _placed(self) -> tuple[str, ...]:
        return (*self.details, *((f"{self.threads} cores",) if self.threads > 1 else ()))

    @property
    def setting(self) -> str:
        """Level and details: `memory thp, 2 cores`."""
        return " ".join((self.level, ", ".join(self._placed))).strip()

    @property
    def name(self) -> str:
        """As `schoenauer_triad/memory/likwid-bench/2 cores`: kernel, level, the other side, details."""
        return "/".join((self.ours.kernel, self.level, self.against, *self._placed))


def match_data(match: Match) -> dict[str, Any]:
    """A match as data for JSON, which has no infinity: a target without an upper end has no `most`."""
    data: dict[str, Any] = unstructured(match)
    for target in data["targets"]:
        if math.isinf(target["most"]):
            del target["most"]
    return data


def read_match(data: Mapping[str, Any]) -> Match:
    """Reads what `match_data` made. Raises ValueError."""
    return structured(Match, data, ignored="unknown and null")


@dataclass(frozen=True)
class Sizes:
    """Working sets in bytes: of the caches by level, in memory by comparison."""

    caches: Mapping[str, int]
    memory: int
    stream: int
    table: int
    matrices: int


def sizes(host: Host) -> Sizes:
    """Sizes for this machine: half of L1 and L2, a quarter of L3 (it is shared), memory beyond L3.

    STREAM requires arrays of four times the caches each; the others use four times in total. Sizes are powers
    of two, as tables of RandomAccess must be, and at most a quarter of the memory.
    """
    found = {f"L{cache.level}": cache.bytes for cache in host.caches}
    caches = {level: found[level] // (4 if level == "L3" else 2) for level in CACHES if level in found}
    if "L3" in caches and caches["L3"] < 2 * found["L2"]:
        del caches["L3"]
    largest = max(found.values(), default=32 * MIB)
    limit = (host.memory_bytes or 16 * GIB) // 4
    memory = min(_power_of_two(max(4 * largest, 128 * MIB)), _power_of_two(limit + 1) // 2)
    # Not a power of two, so that a row is not limited to a few sets of the caches.
    order = matrix_order(memory) // 1000 * 1000
    return Sizes(
        caches, memory, min(_power_of_two(12 * largest), memory * 4), max(memory // 2, MIB), 16 * order**2
    )


def matches(
    size: Sizes, compilers: Sequence[str], cores: int, providers: Mapping[str, Sequence[str]] = PROVIDERS
) -> list[Match]:
    """All comparisons. `compilers` are those of our builds by family, `providers` their libraries."""
    levels = {**size.caches, "memory": size.memory}
    return [
        *_loops(levels, cores),
        *_streams(size.stream, compilers, cores),
        *_latencies(levels),
        *_others(size),
        *_arithmetic(levels, compilers),
        *_libraries(providers),
    ]


def select(
    known: Iterable[Match], patterns: Sequence[str], peers: Sequence[str] | None, quick: bool
) -> list[Match]:
    """The comparisons that match the globs over kernel or name, and the peers. Raises SelectionError."""

    def fits(match: Match) -> bool:
        names = (match.name, match.ours.kernel)
        return (
            (not patterns or any(fnmatchcase(*pair) for pair in product(names, patterns)))
            and (peers is None or (isinstance(match.other, Theirs) and match.other.peer in peers))
            and (not quick or (match.threads == 1 and match.level in QUICK_LEVELS))
        )

    if not (chosen := list(filter(fits, known))):
        raise SelectionError(
            "no comparison fits",
            where="--kernels, --peers",
            remedy="see docs/how-to/peers.md for their names",
        )
    return chosen


def _loops(levels: Mapping[str, int], cores: int) -> Iterable[Match]:
    """Each traffic against likwid-bench's best loop of that traffic."""
    aims = (Target("all", 0.97), Target("compiler", 0.90))
    for (kernel, tests), (level, working_set) in product(_LOOPS.items(), levels.items()):
        cached = level in CACHES
        widths = _LOADS if kernel == "stream_sum" else _WIDTHS
        ours = Ours(kernel, STREAM, _BUILDS[level], widths if cached else ((),))
        without = (*_SINGLE, *(("*_mem*",) if cached else ()))
        theirs = Theirs("likwid-bench", tests, without, ("none",) if level in ("L1", "L2") else _PAGES)
        for threads in (1,) if cached or cores < 2 else (1, 2):
            yield Match(level, (), working_set, ours, theirs, aims, threads=threads)


def _streams(working_set: int, compilers: Sequence[str], cores: int) -> Iterable[Match]:
    """stream_triad against the triads that compilers make, on the same pages, each with its own compiler."""
    aims = (Target("compiler", 1.0),)
    for peer, policies in (("stream", ("none",)), ("babelstream", _PAGES), ("bwbench", _PAGES)):
        for compiler, pages, threads in product(compilers, policies, (1, 2) if cores > 1 else (1,)):
            ours = Ours("stream_triad", STREAM, (f"{pages}/*-regular", f"{pages}/*-regular-loop-compiler"))
            theirs = Theirs(peer, ("Triad",), pages=(pages,))
            details = (compiler, pages)
            yield Match(
                "memory", details, working_set, ours, theirs, aims, threads=threads, compiler=compiler
            )


def _latencies(levels: Mapping[str, int]) -> Iterable[Match]:
    aims = (Target("compiler", 1 / 1.03, 1.03),)
    least = 2 * (thp_size() or 2 * MIB)
    for (level, working_set), pages in product(levels.items(), _PAGES):
        ours = Ours("pointer_chase", "latency_ns", (f"{pages}/hardware-regular",))
        # Less than a huge page cannot be on one, which makes no difference in a cache.
        theirs = Theirs("multichase", ("chase",), pages=(pages,) if working_set >= least else ("none",))
        yield Match(level, (pages,), working_set, ours, theirs, aims, "ns", "lower")


def _others(size: Sizes) -> Iterable[Match]:
    aims = (Target("all", 1.0),)
    for pages in _PAGES:
        updates = Ours("random_access", "updates_per_s", (f"{pages}/*-regular",))
        gups = Theirs("hpcc", ("SingleRandomAccess",), pages=(pages,))
        yield Match("memory", (pages,), size.table, updates, gups, aims, "updates/s")
        # PTRANS adds to what is there, and counts 8 bytes per element.
        transpose = Ours("transpose", "ptrans_gb_per_s", (f"{pages}/*",), (("--form", "add"),))
        ptrans = Theirs("hpcc", ("PTRANS",), pages=(pages,))
        yield Match("memory", (pages,), size.matrices, transpose, ptrans, aims, "GB/s, 8 B an element")
    blocked = ((), ("--blocking", "rows"))
    stencil, limit = Ours("stencil7", HARDWARE, ("thp/*",), blocked), Ours(_TRIAD, HARDWARE, ("thp/*",))
    least, name = (Target("all", 0.9),), f"limit of {_TRIAD}"
    yield Match("memory", (), size.memory, stencil, limit, least, "GB/s, hardware", other_name=name)
    around, through = (
        Ours("stencil7", STREAM, (f"thp/*-{stores}",), blocked) for stores in ("nontemporal", "regular")
    )
    yield Match("memory", ("nontemporal",), size.memory, around, through, aims, other_name="regular stores")


def _arithmetic(levels: Mapping[str, int], compilers: Sequence[str]) -> Iterable[Match]:
    """The peak of multiply-adds against likwid-bench's; functions by loops against explicit vector calls."""
    working_set = levels.get("L1", 32 * KIB) // 2
    peak = Ours("peak_flops", "gflop_per_s", ("none/hardware-regular",), _WIDTHS)
    theirs = Theirs("likwid-bench", ("peakflops*",), _SINGLE)
    aims = (Target("all", 0.97), Target("compiler", 0.97))
    yield Match("L1", (), working_set, peak, theirs, aims, "Gflop/s")
    for function, library, compiler in product(_FUNCTIONS, _LIBRARIES, compilers):
        loops, direct = (
            Ours(
                "math_functions",
                "gcalls_per_s",
                (f"none/hardware-regular-{library}",),
                tuple(("--function", function, "--error-samples", "256", "--call", call) for call in calls),
            )
            for calls in (("fortran", "c"), ("direct",))
        )
        scalar = function in _SCALAR.get(compiler, ())
        yield Match(
            *("L1", (function, compiler), working_set, loops, direct, (Target("compiler", 0.95),), "10^9/s"),
            compiler=compiler,
            other_name=library,
            remark=f"{compiler} makes no vector calls of {function}" if scalar else "",
        )


def _libraries(providers: Mapping[str, Sequence[str]]) -> Iterable[Match]:
    """The own matrix multiplication against a library's; kernels that call libraries against direct calls."""
    aims: tuple[Target, ...] = (Target("all", 0.85), Target("compiler", 0.85))
    for rows in _ROWS_OF_OWN:
        builds = tuple(f"{pages}/hardware-regular" for pages in _PAGES)
        own = Ours("blocked_dgemm", "gflop_per_s", builds, (("--rows", str(rows)),))
        theirs = Theirs("cblas", ("dgemm", "dgemm padded"), pages=_PAGES, library=_BEST_BLAS)
        yield _multiplication("dgemm", rows, own, theirs, aims)
    aims = (Target("compiler", 1.0),)
    for kernel, provider in product(_ROWS, providers["blas"]):
        rows = _ROWS_OF_SLOW.get(provider, _ROWS[kernel])
        build = (f"none/hardware-regular-{provider}",)
        ours = Ours(kernel, "gflop_per_s", build, (("--rows", str(rows)),))
        theirs = Theirs("cblas", (kernel, f"{kernel} padded"), library=provider)
        yield _multiplication(kernel, rows, ours, theirs, aims)
    for length, provider in product(_LENGTHS, providers["fftw"]):
        build = (f"none/hardware-regular-{provider}",)
        ours = Ours("fft", "gflop_per_s", build, (("--length", str(length)),))
        theirs = Theirs("fftw", (str(length),), library=provider)
        working_set = 32 * max(length, _NUMBERS)
        yield Match(f"{length} numbers", (provider,), working_set, ours, theirs, aims, "Gflop/s")


def _multiplication(routine: str, rows: int, ours: Ours, theirs: Theirs, aims: tuple[Target, ...]) -> Match:
    working_set = 3 * rows**2 * element_bytes(routine)
    return Match(f"{rows} rows", (theirs.library,), working_set, ours, theirs, aims, "Gflop/s")


def _power_of_two(size: int) -> int:
    return 1 << math.ceil(math.log2(size))
