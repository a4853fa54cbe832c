"""The known peers: how each is called, and how its output is read. A new one is a line in PEERS."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pagewise.stack.commands import output_of
from pagewise.workloads.peers.peer import Ask, Call, Peer, Statistic, UnableError, UnreadableError, with_thp

_HERE = Path(__file__).parent
_WORD, _COMPLEX, _LINE = 8, 16, 64
_TRIAD_ARRAYS = 3
# How far the length of STREAM's arrays may be from the one asked for.
_LENGTH_TOLERANCE = 0.01


@dataclass(frozen=True)
class Loops(Peer):
    """STREAM and programs like it: loops in C or C++ that the user compiles.

    arguments: with {elements} for the length of each of the triad's arrays; None: arrays are static, their
    length is compiled in, and they are on base pages. required: patterns of a valid output, each with what is
    wrong where it does not match. gb_per_s: the unit of its rates.
    """

    arguments: tuple[str, ...] | None = None
    required: tuple[tuple[str, str], ...] = ()
    gb_per_s: float = 1.0

    def call(self, ask: Ask) -> Call:
        """All of its kernels in their order."""
        if self.arguments is not None:
            return Call(tuple(word.format(elements=elements(ask)) for word in self.arguments), with_thp(ask))
        if ask.pages != "none":
            raise UnableError("its arrays are static, and these are on base pages")
        return Call()

    def value(self, output: str, ask: Ask) -> float:
        """GB/s, stream, of the fastest pass."""
        for pattern, fault in self.required:
            if not re.search(pattern, output, re.MULTILINE):
                raise UnreadableError(fault)
        if self.arguments is None:
            _check_length(output, elements(ask))
        return _rate(rf"^{ask.test}:?\s+(\d+(?:\.\d+)?)", output) * self.gb_per_s


@dataclass(frozen=True)
class Likwid(Peer):
    """likwid-bench: loops in assembler, one per instruction set and store type.

    Its MByte is 10^6 bytes and counts what the source names: no write-allocate (stream).
    """

    # Bytes moved in a run by working set: long enough to time, short enough to alternate (0.1 to 0.5 s).
    volumes: tuple[tuple[float, float], ...] = (
        (64 * 1024, 30e9),
        (1024 * 1024, 15e9),
        (64 * 1024 * 1024, 8e9),
        (math.inf, 4e9),
    )
    # Its loops of multiply-adds load one element for 30 operations.
    peak: str = "peakflops"
    volume_of_peak: float = 3e9
    fewest_iterations: int = 10

    def call(self, ask: Ask) -> Call:
        """A number of iterations is given: a time would be whole seconds.

        `N` is the whole node, reduced to the CPUs that the process is bound to.
        """
        volume = next(volume for size, volume in self.volumes if ask.working_set <= size)
        if ask.test.startswith(self.peak):
            volume = self.volume_of_peak
        iterations = max(self.fewest_iterations, int(volume / ask.working_set))
        group = f"N:{max(1, ask.working_set // 1000)}kB:{ask.threads}"
        return Call(("-t", ask.test, "-i", str(iterations), "-w", group), with_thp(ask))

    def value(self, output: str, ask: Ask) -> float:
        """GB/s, stream; Gflop/s of its loops of multiply-adds."""
        unit = "MFlops/s" if ask.test.startswith(self.peak) else "MByte/s"
        tested = re.search(r"^Test: (\S+)$", output, re.MULTILINE)
        rate = re.search(rf"^{unit}:\s+(\d+(?:\.\d+)?)\s*$", output, re.MULTILINE)
        if tested is None or rate is None:
            raise UnreadableError(f"no line `{unit}:`")
        if tested[1] != ask.test or float(rate[1]) == 0:
            raise UnreadableError(f"it reports {rate[1]} {unit} of {tested[1]}, asked for {ask.test}")
        return float(rate[1]) / 1000

    def statistic(self, test: str) -> Statistic:
        """All iterations in one."""
        return "mean"

    def tests(self, program: str) -> Sequence[str] | None:
        """The tests of this architecture, as `likwid-bench -a` lists them."""
        listed = output_of([program, "-a"], check=False) or ""
        return re.findall(r"^(\w+) - ", listed, re.MULTILINE)


@dataclass(frozen=True)
class Multichase(Peer):
    """multichase: latency of dependent loads along a random cycle.

    `-T` is equal to `-m`: by default it stays inside 256 KiB, which hides the page walks.
    """

    def call(self, ask: Ask) -> Call:
        """Every cache line of the working set once, as ours, in two samples of 0.5 s; `-X`: not bound."""
        if ask.threads != 1:
            raise UnableError("its threads share the memory in another way than ours")
        if ask.pages not in ("none", "thp"):
            raise UnableError(f"it is not asked for {ask.pages} pages")
        size = str(ask.working_set)
        huge = ("-H",) if ask.pages == "thp" else ()
        return Call(("-X", "-s", "64", "-m", size, "-T", size, "-n", "2", *huge))

    def value(self, output: str, ask: Ask) -> float:
        """Nanoseconds per load, the best sample."""
        last = ([line.strip() for line in output.splitlines() if line.strip()] or ["no output"])[-1]
        if not re.fullmatch(r"\d+(\.\d+)?", last) or float(last) == 0:
            raise UnreadableError(f"its last line is no latency: {last}")
        return float(last)


@dataclass(frozen=True)
class Hpcc(Peer):
    """hpcc: RandomAccess and PTRANS of a single process. Sizes keep its other tests short.

    Of `hpccinf.txt`, the square of HPL's matrix order (line 6) is the memory that RandomAccess takes. Lines
    33 to 36 add sizes for PTRANS, which runs half of HPL's order, too.
    """

    small_order: int = 256

    def call(self, ask: Ask) -> Call:
        """Started by itself it is one MPI process: no mpirun. It is ended after the test asked for."""
        if ask.threads != 1:
            raise UnableError("it is compared as one process")
        if ask.test == "SingleRandomAccess":
            sizes = {"order": math.isqrt(ask.working_set // _WORD - 1) + 1, "count": 0, "matrix": 0}
        elif ask.test == "PTRANS":
            sizes = {"order": self.small_order, "count": 1, "matrix": matrix_order(ask.working_set)}
        else:
            raise UnableError(f"it is not asked for {ask.test}")
        text = (_HERE / "hpccinf.txt").read_text(encoding="utf-8").format(**sizes)
        environment = {**with_thp(ask), "OMP_NUM_THREADS": "1"}
        return Call(
            (), environment, {"hpccinf.txt": text}, "hpccoutf.txt", until=f"End of {ask.test} section."
        )

    def value(self, output: str, ask: Ask) -> float:
        """Updates per second, of the table asked for; or GB/s by its own convention: 8 bytes per element."""
        section = re.search(rf"^Begin of {ask.test} section\.$(.*?)^End of", output, re.MULTILINE | re.DOTALL)
        if section is None:
            raise UnreadableError(f"no whole section {ask.test}")
        if ask.test == "PTRANS":
            return _transposed(section[1], matrix_order(ask.working_set))
        return _updated(section[1], ask.working_set // _WORD)

    def statistic(self, test: str) -> Statistic:
        """RandomAccess times all updates in one; of five transposes PTRANS reports the slowest."""
        return "worst" if test == "PTRANS" else "mean"


@dataclass(frozen=True)
class Direct(Peer):
    """Direct calls of a library from C, by programs of pagewise in direct_calls/.

    They are given the library's file, so that it is the one which a kernel of ours calls.
    """

    def call(self, ask: Ask) -> Call:
        """Square matrices by CBLAS, in `... padded` with columns as our kernels have them; or transforms."""
        if ask.threads != 1:
            raise UnableError("it calls the library from one thread")
        if self.name == "cblas":
            rows = _rows(ask)
            words: tuple[str, ...] = (ask.test.removesuffix(_PADDED), str(rows), str(_stride(rows, ask)))
        else:
            # The working set is input and output.
            words = (ask.test, str(max(1, ask.working_set // (2 * _COMPLEX * int(ask.test)))))
        return Call((ask.library, *words, "10"), {**_ONE_THREAD, **with_thp(ask)})

    def value(self, output: str, ask: Ask) -> float:
        """Gflop/s of the fastest repetition."""
        library = re.search(r"^library (.+)$", output, re.MULTILINE)
        rate = re.search(r"^gflop_per_s (\d+(?:\.\d+)?(?:e[+-]\d+)?)$", output, re.MULTILINE)
        if library is None or rate is None or float(rate[1]) == 0:
            raise UnreadableError("no line `gflop_per_s`")
        if ask.library.startswith("/") and library[1] != ask.library:
            raise UnreadableError(f"it called {library[1]}, asked for {ask.library}")
        work = f"transform {ask.test} numbers"
        if self.name == "cblas":
            work = f"{ask.test.removesuffix(_PADDED)} {_rows(ask)} rows"
        if not re.search(rf"^{work}, check passed$", output, re.MULTILINE):
            raise UnreadableError(f"it does not report {work}, check passed")
        return float(rate[1])


_PADDED = " padded"
# Libraries of any provider compute with one thread.
_ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "BLIS", "MKL", "ARMPL", "VECLIB_MAXIMUM")
}
_OURS = "part of pagewise"
_GITHUB = "https://github.com"
_VALID, _INVALID = "Solution Validates", "it did not validate its solution"
PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Likwid("likwid-bench", "likwid-bench", f"{_GITHUB}/RRZE-HPC/likwid"),
        Loops(
            *("stream", "stream", "https://www.cs.virginia.edu/stream/"),
            by_compiler=True,
            required=((_VALID, _INVALID),),
            gb_per_s=1e-3,
        ),
        Loops(
            *("babelstream", "babelstream", f"{_GITHUB}/UoB-HPC/BabelStream"),
            by_compiler=True,
            arguments=("--arraysize", "{elements}", "--numtimes", "10"),
            required=((r"\A(?![\s\S]*Validation failed)", _INVALID),),
            gb_per_s=1e-3,
        ),
        # It has a fourth array, which its triad does not touch.
        Loops(
            *("bwbench", "bwbench", f"{_GITHUB}/RRZE-HPC/TheBandwidthBenchmark"),
            by_compiler=True,
            arguments=("-m", "ws", "-s", "{elements}", "-n", "10"),
            required=((_VALID, _INVALID), (r"^Function\s+Rate\(GB/s\)", "no column `Rate(GB/s)`")),
        ),
        Multichase("multichase", "multichase", f"{_GITHUB}/google/multichase"),
        Hpcc("hpcc", "hpcc", "https://hpcchallenge.org/"),
        Direct("cblas", "gemm", _OURS, code=_HERE / "direct_calls" / "gemm.c"),
        Direct("fftw", "transform", _OURS, code=_HERE / "direct_calls" / "transform.c"),
    )
}


def elements(ask: Ask) -> int:
    """The length of each of the triad's three arrays."""
    return ask.working_set // (_TRIAD_ARRAYS * _WORD)


def matrix_order(working_set: int) -> int:
    """The order of two square matrices that take so many bytes."""
    return math.isqrt(working_set // (2 * _WORD))


def element_bytes(routine: str) -> int:
    """Bytes of a number of sgemm, dgemm, cgemm, zgemm."""
    return {"s": 4, "d": 8, "c": 8, "z": 16}[routine[0]]


def _rate(pattern: str, text: str) -> float:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None or float(match[1]) == 0:
        raise UnreadableError(f"no rate: {pattern}")
    return float(match[1])


def _check_length(output: str, asked: int) -> None:
    length = re.search(r"^Array size = (\d+) \(elements\)", output, re.MULTILINE)
    if length is None:
        raise UnreadableError(_INVALID)
    if abs(int(length[1]) / asked - 1) > _LENGTH_TOLERANCE:
        raise UnreadableError(
            f"its arrays have {length[1]} elements, asked for {asked}: "
            f"compile it with -DSTREAM_ARRAY_SIZE={asked}"
        )


def _updated(section: str, words: int) -> float:
    table = re.search(r"^Main table size\s+= 2\^\d+ = (\d+) words$", section, re.MULTILINE)
    rate = _rate(r"^(\d+\.\d+) Billion\(10\^9\) Updates\s+per second", section)
    if table is None or int(table[1]) != words:
        raise UnreadableError(f"its table has {table[1] if table else 'no'} words, asked for {words}")
    if "(passed)" not in section:
        raise UnreadableError("it found too many errors in its table")
    return rate * 1e9


def _transposed(section: str, order: int) -> float:
    pattern = rf"^WALL\s+{order}\s+{order}\s.*?\s(\w+)\s+(\d+\.\d+)\s+\S+\s*$"
    lines = re.findall(pattern, section, re.MULTILINE)
    if not lines:
        raise UnreadableError(f"no transpose of order {order}")
    if any(check != "PASSED" for check, _ in lines):
        raise UnreadableError("a transpose failed its check")
    return float(lines[-1][1])


def _rows(ask: Ask) -> int:
    return math.isqrt(ask.working_set // (3 * element_bytes(ask.test)))


def _stride(rows: int, ask: Ask) -> int:
    """Elements from column to column; padded, an odd number of cache lines."""
    if not ask.test.endswith(_PADDED):
        return rows
    per_line = _LINE // element_bytes(ask.test)
    return (-(-rows // per_line) | 1) * per_line
