"""Direct calls of a library from C: programs that come with pagewise, in direct_calls/.

The file of the library is told to them, so that it is the one which a kernel of ours calls.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from pagewise.workloads.peers.peer import Ask, Call, Peer, UnableError, UnreadableError, with_thp

_HERE = Path(__file__).parent / "direct_calls"
_REPETITIONS = "10"
_COMPLEX = 16  # bytes of a number
_LINE = 64
_PADDED = " padded"
# Libraries of any provider compute with one thread.
_ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "BLIS", "MKL", "ARMPL", "VECLIB_MAXIMUM")
}


class Direct(Peer):
    """What direct calls share."""

    source = "comes with pagewise"

    def value(self, output: str, ask: Ask) -> float:
        """Gflop/s of the fastest repetition."""
        library = re.search(r"^library (.+)$", output, re.MULTILINE)
        rate = re.search(r"^gflop_per_s (\d+(?:\.\d+)?(?:e[+-]\d+)?)$", output, re.MULTILINE)
        if library is None or rate is None or float(rate[1]) == 0:
            raise UnreadableError("no line `gflop_per_s`")
        if ask.library.startswith("/") and library[1] != ask.library:
            raise UnreadableError(f"it called {library[1]}, asked for {ask.library}")
        if not re.search(rf"^{self._computed(ask)}, check passed$", output, re.MULTILINE):
            raise UnreadableError(f"it does not tell of {self._computed(ask)}, check passed")
        return float(rate[1])

    def _call(self, ask: Ask, *arguments: str) -> Call:
        if ask.threads != 1:
            raise UnableError("it calls the library from one thread")
        return Call((ask.library, *arguments, _REPETITIONS), {**_ONE_THREAD, **with_thp(ask)})

    def _computed(self, ask: Ask) -> str:
        raise NotImplementedError


class Cblas(Direct):
    """Matrices by CBLAS: tests `dgemm`, and `dgemm padded` with columns as our kernels have them."""

    name = "cblas"
    program = "gemm"
    code = _HERE / "gemm.c"

    def call(self, ask: Ask) -> Call:
        """Three square matrices."""
        rows = _rows(ask)
        return self._call(ask, _routine(ask), str(rows), str(_stride(rows, ask)))

    def _computed(self, ask: Ask) -> str:
        return f"{_routine(ask)} {_rows(ask)} rows"


class Fftw(Direct):
    """Fourier transforms by FFTW's interface; a test is the length, the working set is input and output."""

    name = "fftw"
    program = "transform"
    code = _HERE / "transform.c"

    def call(self, ask: Ask) -> Call:
        """As many transforms as the working set holds."""
        return self._call(ask, ask.test, str(max(1, ask.working_set // (2 * _COMPLEX * int(ask.test)))))

    def _computed(self, ask: Ask) -> str:
        return f"transform {ask.test} numbers"


def element_bytes(routine: str) -> int:
    """Bytes of a number of sgemm, dgemm, cgemm, zgemm."""
    return {"s": 4, "d": 8, "c": 8, "z": 16}[routine[0]]


def _routine(ask: Ask) -> str:
    return ask.test.removesuffix(_PADDED)


def _rows(ask: Ask) -> int:
    return math.isqrt(ask.working_set // (3 * element_bytes(ask.test)))


def _stride(rows: int, ask: Ask) -> int:
    """Elements from column to column; padded, an odd number of cache lines."""
    if not ask.test.endswith(_PADDED):
        return rows
    of_line = _LINE // element_bytes(ask.test)
    return (-(-rows // of_line) | 1) * of_line
