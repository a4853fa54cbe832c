"""likwid-bench: loops in assembler, one for each instruction set and store type."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

from pagewise.workloads.peers.peer import Ask, Call, Peer, Statistic, UnreadableError, with_thp

# Bytes moved in a run by working set: long enough to time, short enough to alternate (0.1 to 0.5 s).
_VOLUMES = ((64 * 1024, 30e9), (1024 * 1024, 15e9), (64 * 1024 * 1024, 8e9))
_VOLUME_IN_MEMORY = 4e9
# Its loops of multiply-adds load one element for 30 operations.
_VOLUME_OF_PEAK = 3e9
_PEAK = "peakflops"
_FEWEST_ITERATIONS = 10


class Likwid(Peer):
    """likwid-bench. Its MByte is 10^6 bytes and counts what the source names: no write-allocate (stream)."""

    name = "likwid-bench"
    program = "likwid-bench"
    source = "https://github.com/RRZE-HPC/likwid"

    def call(self, ask: Ask) -> Call:
        """A number of iterations is given: it takes whole seconds only when it is given a time.

        `N` is the whole node, cut down to the CPUs that the process is bound to.
        """
        volume = next((volume for size, volume in _VOLUMES if ask.working_set <= size), _VOLUME_IN_MEMORY)
        if ask.test.startswith(_PEAK):
            volume = _VOLUME_OF_PEAK
        iterations = max(_FEWEST_ITERATIONS, int(volume / ask.working_set))
        group = f"N:{max(1, ask.working_set // 1000)}kB:{ask.threads}"
        return Call(("-t", ask.test, "-i", str(iterations), "-w", group), with_thp(ask))

    def value(self, output: str, ask: Ask) -> float:
        """GB/s, stream; Gflop/s of its loops of multiply-adds."""
        unit = "MFlops/s" if ask.test.startswith(_PEAK) else "MByte/s"
        tested = re.search(r"^Test: (\S+)$", output, re.MULTILINE)
        rate = re.search(rf"^{unit}:\s+(\d+(?:\.\d+)?)\s*$", output, re.MULTILINE)
        if tested is None or rate is None:
            raise UnreadableError(f"no line `{unit}:`")
        if tested[1] != ask.test or float(rate[1]) == 0:
            raise UnreadableError(f"it tells {rate[1]} {unit} of {tested[1]}, asked for {ask.test}")
        return float(rate[1]) / 1000

    def statistic(self, test: str) -> Statistic:
        """All iterations in one."""
        return "mean"

    def tests(self, program: str) -> Sequence[str] | None:
        """The tests of this architecture, as `likwid-bench -a` lists them."""
        try:
            told = subprocess.run(
                [program, "-a"], capture_output=True, text=True, errors="replace", timeout=20, check=False
            ).stdout
        except (OSError, subprocess.TimeoutExpired):
            return ()
        return re.findall(r"^(\w+) - ", told, re.MULTILINE)
