"""Compare forecasts of `pagewise where` with measured time ratios of huge pages.

python tests/runners/noise/forecasts.py COMMANDS [--budget 30s]

COMMANDS is a file with a command per line, after its name and a colon: `sort: sort -n numbers`. Prints for
each the forecast of thp, the measured ratio with its 95 % interval, and how much slower the program is in
`where`.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from pagewise.analysis.analysis import analyse
from pagewise.core.errors import PagewiseError, RefusedError
from pagewise.core.result import Result, read_result

ROOT = Path(__file__).resolve().parents[3]


def result_of(*words: str) -> Result:
    """The result of a command of pagewise."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(ROOT / "pagewise"), words[0], "--output", folder, *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise PagewiseError(done.stderr.strip())
        return read_result(next(Path(folder).iterdir()))


def measure(command: list[str], budget: str) -> tuple[str, float]:
    """A row of the table, and the error of the forecast's middle."""
    began = time.monotonic()
    (record,) = result_of("where", "--", *command).records
    passed = time.monotonic() - began
    assert record.simulated is not None and record.simulated.forecast is not None
    forecast = record.simulated.forecast
    low, high = forecast.time_ratio
    compared = result_of(
        *("compare", "--policies", "none,thp", "--budget", budget, "--until", "2%", "--", *command)
    )
    kernels = analyse(compared.subjects, compared.records, 1)
    rows = [row for kernel in kernels for group in kernel.groups for row in group.ranked]
    ratio = next((row.time.ratio for row in rows if row.time is not None), None)
    if ratio is None:
        raise RefusedError("thp was not measured")
    error = (low + high) / 2 - ratio.median
    return (
        f"{low:.2f}-{high:.2f}  {ratio.median:.3f} ({ratio.low:.3f}-{ratio.high:.3f})  error {error:+.3f}  "
        f"{passed / min(forecast.native_seconds):.0f} x"
    ), error


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commands", type=Path)
    parser.add_argument("--budget", default="30s")
    given = parser.parse_args()
    errors = []
    for line in given.commands.read_text(encoding="utf-8").splitlines():
        name, _, command = line.partition(":")
        try:
            row, error = measure(shlex.split(command), given.budget)
        except PagewiseError as fault:
            row = str(fault)
        else:
            errors.append(abs(error))
        print(f"{name:16} {row}", flush=True)
    if errors:
        sys.stdout.write(f"median error {median(errors):.3f}\n")


main()
