"""Compare the methods of a comparison, turns and whole runs, in one interleaved experiment.

python tests/runners/noise/methods.py [--bursts] [--sessions 4] [--rounds 4] COMMAND...

COMMAND is one of pagewise: `kernels --env quick --no-sweep`, or `compare --policies none,thp -- PROGRAM`.
Sessions with `--method turns` and `--method runs` alternate. --bursts: another process copies 256 MiB again
and again for up to half a second, with pauses. For each kernel, configuration and method this prints the mean
ratio with its standard error, the scatter of a round, the seconds of a round, and the seconds to an interval
of 3 % (rounds: (2 * 1.96 * scatter / 3 %) squared); and the quotient of these, turns over runs.
"""

from __future__ import annotations

import argparse
import math
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from multiprocessing import Process
from pathlib import Path
from statistics import fmean, stdev

from pagewise.analysis.analysis import analyse
from pagewise.core.result import read_result

ROOT = Path(__file__).resolve().parents[3]
WIDTH = 0.03


def bursts() -> None:
    """Copies memory for up to half a second, again and again."""
    source, target = bytearray(1 << 28), bytearray(1 << 28)
    while True:
        end = time.monotonic() + random.uniform(0.05, 0.5)
        while time.monotonic() < end:
            memoryview(target)[:] = source
        time.sleep(random.uniform(0.05, 1.0))


@contextmanager
def neighbour(disturb: bool) -> Iterator[None]:
    """With such bursts, until the block ends."""
    other = Process(target=bursts, daemon=True)
    if disturb:
        other.start()
    try:
        yield
    finally:
        if disturb:
            other.terminate()


def session(command: list[str], method: str, rounds: int) -> Iterator[tuple[str, list[float], float]]:
    """By kernel and configuration, the log ratios of rounds, and the seconds of a round of this kernel."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--rounds", str(rounds), "--method", method, "--output", folder]
        words = [str(ROOT / "pagewise"), command[0], *options, *command[1:]]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(done.stderr)
        result = read_result(next(Path(folder).iterdir()))
    for kernel in analyse(result.subjects, result.records, 1):
        name = kernel.benchmark.name
        walls = [
            run.wall_seconds or 0.0 for each in result.records if (run := each.run) and each.of_kernel == name
        ]
        for row in chain.from_iterable(group.ranked for group in kernel.groups):
            ratios = row.time.by_round if row.time is not None else {}
            yield f"{name} {row.cell.measured.label}", [*map(math.log, ratios.values())], sum(walls) / rounds


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bursts", action="store_true")
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    sessions: dict[str, dict[str, list[tuple[list[float], float]]]] = defaultdict(lambda: defaultdict(list))
    with neighbour(given.bursts):
        for _ in range(given.sessions):
            for method in random.sample(("turns", "runs"), 2):
                for name, logs, seconds in session(given.command, method, given.rounds):
                    if logs:
                        sessions[name][method].append((logs, seconds))
    for name, by_method in sessions.items():
        needed = {}
        for method, several in sorted(by_method.items()):
            means = [fmean(logs) for logs, _ in several]
            scatter = math.sqrt(fmean(stdev(logs) ** 2 for logs, _ in several))
            seconds = fmean(each for _, each in several)
            needed[method] = (2 * 1.96 * scatter / WIDTH) ** 2 * seconds
            error = scatter / math.sqrt(sum(len(logs) for logs, _ in several))
            print(
                f"{name:40} {method:5}  ratio {math.exp(fmean(means)):.4f} +- {error:.4f}  "
                f"scatter {scatter:6.2%}  round {seconds:5.2f} s  to 3 %: {needed[method]:7.1f} s"
            )
        if len(needed) == 2:
            print(f"{name:40} turns : runs = 1 : {needed['runs'] / needed['turns']:.1f}")


main()
