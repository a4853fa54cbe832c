"""STREAM, BabelStream and TheBandwidthBenchmark: loops in C or C++ that the user compiles."""

from __future__ import annotations

import re

from pagewise.workloads.peers.peer import Ask, Call, Peer, UnableError, UnreadableError, with_thp

_WORD = 8
_REPETITIONS = 10
_ENOUGH = 0.01  # how far the arrays' length may be from the one asked for
_TRIAD_ARRAYS = 3


class Stream(Peer):
    """STREAM. Its arrays are static: their length is compiled in, and they are on base pages."""

    name = "stream"
    program = "stream"
    source = "https://www.cs.virginia.edu/stream/"
    by_compiler = True

    def call(self, ask: Ask) -> Call:
        """It takes no arguments."""
        if ask.pages != "none":
            raise UnableError("its arrays are static, and these are on base pages")
        return Call()

    def value(self, output: str, ask: Ask) -> float:
        """GB/s, stream, of the fastest pass."""
        length = re.search(r"^Array size = (\d+) \(elements\)", output, re.MULTILINE)
        wanted = elements(ask)
        if length is None or "Solution Validates" not in output:
            raise UnreadableError("it did not validate its solution")
        if abs(int(length[1]) / wanted - 1) > _ENOUGH:
            raise UnreadableError(
                f"its arrays have {length[1]} elements, asked for {wanted}: "
                f"compile it with -DSTREAM_ARRAY_SIZE={wanted}"
            )
        return _rate(output, rf"^{ask.test}:\s+(\d+(?:\.\d+)?)", 1e-3)


class BabelStream(Peer):
    """BabelStream with OpenMP."""

    name = "babelstream"
    program = "babelstream"
    source = "https://github.com/UoB-HPC/BabelStream"
    by_compiler = True

    def call(self, ask: Ask) -> Call:
        """All of its kernels in their order, as others run it."""
        length = str(elements(ask))
        return Call(("--arraysize", length, "--numtimes", str(_REPETITIONS)), with_thp(ask))

    def value(self, output: str, ask: Ask) -> float:
        """GB/s, stream, of the fastest pass."""
        if "Validation failed" in output:
            raise UnreadableError("it did not validate its solution")
        return _rate(output, rf"^{ask.test}\s+(\d+(?:\.\d+)?)", 1e-3)


class BandwidthBenchmark(Peer):
    """TheBandwidthBenchmark. It has a fourth array, which its triad leaves alone."""

    name = "bwbench"
    program = "bwbench"
    source = "https://github.com/RRZE-HPC/TheBandwidthBenchmark"
    by_compiler = True

    def call(self, ask: Ask) -> Call:
        """All of its kernels in their order."""
        return Call(("-m", "ws", "-s", str(elements(ask)), "-n", str(_REPETITIONS)), with_thp(ask))

    def value(self, output: str, ask: Ask) -> float:
        """GB/s, stream, of the fastest pass."""
        if "Solution Validates" not in output:
            raise UnreadableError("it did not validate its solution")
        if not re.search(r"^Function\s+Rate\(GB/s\)", output, re.MULTILINE):
            raise UnreadableError("no column `Rate(GB/s)`")
        return _rate(output, rf"^{ask.test}\s+(\d+(?:\.\d+)?)", 1.0)


def elements(ask: Ask) -> int:
    """The length of each of the triad's three arrays."""
    return ask.working_set // (_TRIAD_ARRAYS * _WORD)


def _rate(output: str, pattern: str, unit: float) -> float:
    found = re.search(pattern, output, re.MULTILINE)
    if found is None or float(found[1]) == 0:
        raise UnreadableError(f"no rate: {pattern}")
    return float(found[1]) * unit
