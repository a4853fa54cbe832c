"""Record the noise of programs' times: python record_noise.py FILE SECONDS ORDER WHAT...

Each WHAT is KERNEL:PAGES:THREADS (schoenauer_triad:thp:1), whose program pw-KERNEL is in the folder
PAGEWISE_BIN. ORDER is `interleaved` (one run of each in turn) or `blocks` (each for its share of SECONDS).
Appends one line per run to FILE: piece, kernel, pages, threads, order, start of the run in seconds since the
start of the piece, and seconds per pass as pagewise compares them (the median repetition divided by its
passes). The runs have the arguments of the kernels' comparison.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import cycle
from pathlib import Path
from statistics import median

ARGUMENTS = {
    "schoenauer_triad": ["--working-set", "256MiB", "--repetitions", "8"],
    "pointer_chase": ["--working-set", "128MiB", "--repetitions", "7"],
    "random_access": ["--working-set", "256MiB", "--updates", "524288", "--repetitions", "7"],
}
FIELDS = ("piece", "kernel", "pages", "threads", "order", "began", "seconds")


def run(kernel: str, pages: str, threads: str, folder: Path) -> float:
    """Run a program once; returns the seconds per pass."""
    program, file = Path(os.environ["PAGEWISE_BIN"]) / f"pw-{kernel}", folder / "record.json"
    file.unlink(missing_ok=True)
    cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))[-int(threads) :]]
    options = ["--pages", pages, "--threads", threads, "--record", file]
    subprocess.run(
        ["taskset", "-c", ",".join(cpus), program, *ARGUMENTS[kernel], *options],
        env={"OMP_NUM_THREADS": threads, "OMP_PROC_BIND": "close", "OMP_PLACES": "cores", **os.environ},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    record = json.loads(file.read_text())
    return median(record["seconds"]["repetitions"]) / record.get("passes_per_repetition", 1)


def main() -> None:
    """Record one piece."""
    file, seconds, order, whats = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4:]
    new = not file.exists()
    before = [] if new else list(csv.DictReader(file.open()))
    piece = max((int(line["piece"]) for line in before), default=0) + 1
    started = time.monotonic()
    with file.open("a", newline="") as stream, tempfile.TemporaryDirectory() as folder:
        writer = csv.writer(stream, lineterminator="\n")
        if new:
            writer.writerow(FIELDS)
        for label in cycle(whats):
            passed = time.monotonic() - started
            if passed > seconds:
                break
            selected = whats[min(int(len(whats) * passed / seconds), len(whats) - 1)]
            kernel, pages, threads = (label if order == "interleaved" else selected).split(":")
            spent = run(kernel, pages, threads, Path(folder))
            writer.writerow([piece, kernel, pages, threads, order, f"{passed:.2f}", f"{spent:.7g}"])


main()
