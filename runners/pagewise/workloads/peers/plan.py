"""Which of our kernels stands against what, at which size, and what is aimed at. Data, and its expansion."""

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
from pagewise.workloads.peers.known import element_bytes, matrix_order

KIB, MIB, GIB = 1024, 1024**2, 1024**3
STREAM, HARDWARE = "bandwidth_stream_gb_per_s", "bandwidth_hardware_gb_per_s"
CACHES = ("L1", "L2", "L3")
ROUNDS, QUICK_ROUNDS, QUICK_LEVELS = 9, 3, ("L1", "memory")
_HIGHER: tuple[str, Literal["higher"]] = ("GB/s, stream", "higher")

# The last but two is an instruction, directly too.
_FUNCTIONS = ("exp", "log", "sin", "cos", "tan", "pow", "sqrt", "cbrt", "erf")
_LIBRARIES = ("libmvec", "sleef")
# What a compiler makes no vector calls of, whatever library is linked.
_ONE_BY_ONE = {"llvm": ("cbrt", "erf")}
# Libraries of linear algebra and transforms where none is built: they are then told as missing.
PROVIDERS: Mapping[str, Sequence[str]] = {"blas": ("openblas",), "fftw": ("fftw",)}
# What the own matrix multiplication is held against, and where. The reference BLAS would take a minute.
_BEST_BLAS, _ROWS_OF_OWN = "openblas", (1000, 1536)
_ROWS = {"sgemm": 1000, "dgemm": 1000, "cgemm": 500, "zgemm": 500}
_ROWS_OF_SLOW = {"netlib-lapack": 250}
# Transforms fill four MiB, one at least; a longer one is planned for seconds by each run.
_LENGTHS, _NUMBERS = (2**10, 2**14, 2**18), 2**17
# Configurations and options of ours that are tried, by level. Wide vectors win in L1 and lose in memory.
_WIDTHS = ((), ("--simd", "256"), ("--simd", "512"))
# A loop of loads does no arithmetic: of sums, those of integers come nearest, for wide floating-point
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
    """The peer's side: its tests by glob, those that are not meant, and the page policies it is given.

    library: the one that it calls, by the name which our configurations have it by, if it calls any.
    """

    peer: str
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()
    pages: tuple[str, ...] = ("none",)
    library: str = ""


@dataclass(frozen=True)
class Target:
    """What the speedup of ours over theirs is aimed at: at least `least`, at most `most`.

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

    `compiler` limits both sides; `details` are pages and compiler, where a name needs them; `other_name` is
    that of a kernel of ours as the other side. `remark` is to be known of it.
    """

    level: str
    details: tuple[str, ...]
    working_set: int
    threads: int
    unit: str
    better: Literal["higher", "lower"]
    ours: Ours
    other: Ours | Theirs
    targets: tuple[Target, ...]
    compiler: str | None = None
    other_name: str = ""
    remark: str = ""

    @property
    def against(self) -> str:
        """The other side's name."""
        return self.other.peer if isinstance(self.other, Theirs) else self.other_name

    @property
    def setting(self) -> str:
        """Level and details: `memory thp, 2 cores`."""
        cores = (f"{self.threads} cores",) if self.threads > 1 else ()
        return " ".join((self.level, ", ".join((*self.details, *cores)))).strip()

    @property
    def name(self) -> str:
        """As `schoenauer_triad/memory/likwid-bench/2 cores`: kernel, level, the other side, details."""
        cores = (f"{self.threads} cores",) if self.threads > 1 else ()
        return "/".join((self.ours.kernel, self.level, self.against, *self.details, *cores))


def match_data(match: Match) -> dict[str, Any]:
    """A match as data for JSON, which has no infinity: a target without an upper end has no `most`."""
    data: dict[str, Any] = unstructured(match)
    for target in data["targets"]:
        if math.isinf(target["most"]):
            del target["most"]
    return data


def read_match(data: Mapping[str, Any]) -> Match:
    """Reads what `match_data` made. Raises ValueError."""
    return structured(Match, data)


@dataclass(frozen=True)
class Sizes:
    """Working sets in bytes, by level; those in memory as large as each comparison needs."""

    caches: Mapping[str, int]
    memory: int
    stream: int
    table: int
    matrices: int


def sizes(host: Host) -> Sizes:
    """Sizes for this machine: half of L1 and L2, a quarter of L3 (others use it too), memory beyond L3.

    STREAM's rule is arrays of four times the caches each; the others take four times in all. Powers of two,
    as tables of RandomAccess must be, and no more than a quarter of the memory.
    """
    found = {f"L{cache.level}": cache.bytes for cache in host.caches}
    caches = {level: found[level] // (4 if level == "L3" else 2) for level in CACHES if level in found}
    if "L3" in caches and caches["L3"] < 2 * found["L2"]:
        del caches["L3"]
    largest = max(found.values(), default=32 * MIB)
    limit = (host.memory_bytes or 16 * GIB) // 4
    memory = min(_power_of_two(max(4 * largest, 128 * MIB)), _power_of_two(limit + 1) // 2)
    # An order which is no power of two: a row would else fall on few sets of the caches.
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
    found: Iterable[Match], patterns: Sequence[str], peers: Sequence[str] | None, quick: bool
) -> list[Match]:
    """The comparisons that fit the globs over kernel or name, and the peers. Raises SelectionError."""
    chosen = []
    for one in found:
        fits = not patterns or any(
            fnmatchcase(text, pattern) for text in (one.name, one.ours.kernel) for pattern in patterns
        )
        named = peers is None or (isinstance(one.other, Theirs) and one.other.peer in peers)
        kept = not quick or (one.threads == 1 and one.level in QUICK_LEVELS)
        if fits and named and kept:
            chosen.append(one)
    if not chosen:
        raise SelectionError(
            "no comparison fits", where="--kernels, --peers", remedy="see docs/peers.md for their names"
        )
    return chosen


def _loops(levels: Mapping[str, int], cores: int) -> Iterable[Match]:
    """Each traffic against likwid-bench's best loop of that traffic."""
    aims = (Target("all", 0.97), Target("compiler", 0.90))
    for kernel, tests in (
        ("schoenauer_triad", ("triad", "triad_*")),
        ("stream_copy", ("copy", "copy_*")),
        ("stream_sum", ("load", "load_*", "sum", "sum_*")),
        ("stream_update", ("update", "update_*")),
    ):
        for level, working_set in levels.items():
            cached = level in CACHES
            without = ("*_sp", "*_sp_*", *(("*_mem*",) if cached else ()))
            pages = ("none",) if level in ("L1", "L2") else ("none", "thp")
            widths = _LOADS if kernel == "stream_sum" else _WIDTHS
            ours = Ours(kernel, STREAM, _BUILDS[level], widths if cached else ((),))
            theirs = Theirs("likwid-bench", tests, without, pages)
            for threads in (1,) if cached or cores < 2 else (1, 2):
                yield Match(level, (), working_set, threads, *_HIGHER, ours, theirs, aims)


def _streams(working_set: int, compilers: Sequence[str], cores: int) -> Iterable[Match]:
    """stream_triad against the triads that compilers make, on the same pages, each with its own compiler."""
    both = ("none", "thp")
    for peer, policies in (("stream", ("none",)), ("babelstream", both), ("bwbench", both)):
        for compiler, pages, threads in product(compilers, policies, (1, 2) if cores > 1 else (1,)):
            ours = Ours("stream_triad", STREAM, (f"{pages}/*-regular",))
            theirs = Theirs(peer, ("Triad",), pages=(pages,))
            aims = (Target("compiler", 1.0),)
            details = (compiler, pages)
            yield Match("memory", details, working_set, threads, *_HIGHER, ours, theirs, aims, compiler)


def _latencies(levels: Mapping[str, int]) -> Iterable[Match]:
    for (level, working_set), pages in product(levels.items(), ("none", "thp")):
        ours = Ours("pointer_chase", "latency_ns", (f"{pages}/hardware-regular",))
        # Less than 2 MiB cannot be on a huge page, and a cache does not care.
        theirs = Theirs("multichase", ("chase",), pages=(pages,) if working_set >= 4 * MIB else ("none",))
        aims = (Target("compiler", 1 / 1.03, 1.03),)
        yield Match(level, (pages,), working_set, 1, "ns", "lower", ours, theirs, aims)


def _others(size: Sizes) -> Iterable[Match]:
    reach = (Target("all", 1.0),)
    for pages in ("none", "thp"):
        updates = Ours("random_access", "updates_per_s", (f"{pages}/*-regular",))
        gups = Theirs("hpcc", ("SingleRandomAccess",), pages=(pages,))
        yield Match("memory", (pages,), size.table, 1, "updates/s", "higher", updates, gups, reach)
        # PTRANS adds to what is there, and counts 8 bytes an element.
        transpose = Ours("transpose", "ptrans_gb_per_s", (f"{pages}/*",), (("--form", "add"),))
        ptrans = Theirs("hpcc", ("PTRANS",), pages=(pages,))
        unit = "GB/s, 8 B an element"
        yield Match("memory", (pages,), size.matrices, 1, unit, "higher", transpose, ptrans, reach)
    blocked = ((), ("--blocking", "rows"))
    stencil = Ours("stencil7", HARDWARE, ("thp/*",), blocked)
    limit = Ours("schoenauer_triad", HARDWARE, ("thp/*",))
    aims = (Target("all", 0.9),)
    name = f"limit of {limit.kernel}"
    yield Match(
        "memory", (), size.memory, 1, "GB/s, hardware", "higher", stencil, limit, aims, other_name=name
    )
    around = Ours("stencil7", STREAM, ("thp/*-nontemporal",), blocked)
    through = Ours("stencil7", STREAM, ("thp/*-regular",), blocked)
    name = "regular stores"
    yield Match("memory", ("nontemporal",), size.memory, 1, *_HIGHER, around, through, reach, other_name=name)


def _arithmetic(levels: Mapping[str, int], compilers: Sequence[str]) -> Iterable[Match]:
    """The peak of multiply-adds against likwid-bench's; functions by loops against explicit vector calls."""
    working_set = levels.get("L1", 32 * KIB) // 2
    widths = tuple(("--simd", bits) for bits in ("256", "512"))
    peak = Ours("peak_flops", "gflop_per_s", ("none/hardware-regular",), ((), *widths))
    theirs = Theirs("likwid-bench", ("peakflops*",), ("*_sp", "*_sp_*"))
    aims = (Target("all", 0.97), Target("compiler", 0.97))
    yield Match("L1", (), working_set, 1, "Gflop/s", "higher", peak, theirs, aims)
    by_compiler = (Target("compiler", 0.95),)
    for function, library, compiler in product(_FUNCTIONS, _LIBRARIES, compilers):
        asked = ("--function", function, "--error-samples", "256")
        where = (f"none/hardware-regular-{library}",)
        calls = ((*asked, "--call", "fortran"), (*asked, "--call", "c"))
        loops = Ours("math_functions", "gcalls_per_s", where, calls)
        direct = Ours("math_functions", "gcalls_per_s", where, ((*asked, "--call", "direct"),))
        details = (function, compiler)
        one_by_one = function in _ONE_BY_ONE.get(compiler, ())
        remark = f"{compiler} makes no vector calls of {function}" if one_by_one else ""
        unit = "10^9/s"
        yield Match(
            "L1",
            details,
            working_set,
            1,
            unit,
            "higher",
            loops,
            direct,
            by_compiler,
            compiler,
            library,
            remark,
        )


def _libraries(providers: Mapping[str, Sequence[str]]) -> Iterable[Match]:
    """The own matrix multiplication against a library's; kernels that call libraries against direct calls."""
    unit: tuple[str, Literal["higher"]] = ("Gflop/s", "higher")
    aims: tuple[Target, ...] = (Target("all", 0.85), Target("compiler", 0.85))
    for rows in _ROWS_OF_OWN:
        own = Ours(
            "blocked_dgemm",
            "gflop_per_s",
            ("none/hardware-regular", "thp/hardware-regular"),
            (("--rows", str(rows)),),
        )
        theirs = Theirs("cblas", ("dgemm", "dgemm padded"), pages=("none", "thp"), library=_BEST_BLAS)
        yield _multiplication("dgemm", rows, own, theirs, aims)
    aims = (Target("compiler", 1.0),)
    for kernel, provider in product(_ROWS, providers["blas"]):
        rows = _ROWS_OF_SLOW.get(provider, _ROWS[kernel])
        where = (f"none/hardware-regular-{provider}",)
        ours = Ours(kernel, "gflop_per_s", where, (("--rows", str(rows)),))
        theirs = Theirs("cblas", (kernel, f"{kernel} padded"), library=provider)
        yield _multiplication(kernel, rows, ours, theirs, aims)
    for length, provider in product(_LENGTHS, providers["fftw"]):
        where = (f"none/hardware-regular-{provider}",)
        ours = Ours("fft", "gflop_per_s", where, (("--length", str(length)),))
        theirs = Theirs("fftw", (str(length),), library=provider)
        working_set = 32 * max(length, _NUMBERS)
        yield Match(f"{length} numbers", (provider,), working_set, 1, *unit, ours, theirs, aims)


def _multiplication(routine: str, rows: int, ours: Ours, theirs: Theirs, aims: tuple[Target, ...]) -> Match:
    working_set = 3 * rows**2 * element_bytes(routine)
    details = (theirs.library,)
    return Match(f"{rows} rows", details, working_set, 1, "Gflop/s", "higher", ours, theirs, aims)


def _power_of_two(size: int) -> int:
    return 1 << math.ceil(math.log2(size))
