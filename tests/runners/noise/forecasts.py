"""Compare forecasts of `pagewise where` with measured time ratios of huge pages.

python tests/runners/noise/forecasts.py COMMANDS [--budget 30s]

COMMANDS is a file with a command per line, after its name and a colon: `sort: sort -n numbers`. Prints for
each the forecast of thp, the measured ratio with its 95 % interval, and how much slower the program is in `where`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from pagewise.analysis.analysis import analyse
from pagewise.core.errors import PagewiseError
from pagewise.core.result import read_result

ROOT = Path(__file__).resolve().parents[3]


def run(*words: str) -> Any:
    """The JSON of a command of pagewise."""
    done = subprocess.run([str(ROOT / "pagewise"), *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise PagewiseError(done.stderr.strip())
    return json.loads(done.stdout)


def measure(command: list[str], budget: str, folder: str) -> tuple[str, float]:
    """A row of the table, and the error of the forecast's middle."""
    began = time.monotonic()
    simulated = run("where", "--json", "--output", folder, "--", *command)
    passed = time.monotonic() - began
    forecast = read_result(Path(simulated["result"])).records[0].simulated.forecast  # type: ignore[union-attr]
    assert forecast is not None
    low, high = forecast.time_ratio
    options = ("--policies", "none,thp", "--budget", budget, "--until", "2%", "--json", "--output", folder)
    compared = read_result(Path(run("compare", *options, "--", *command)["result"]))
    (kernel,) = analyse(compared.subjects, compared.records, 1)
    (row,) = (row for group in kernel.groups for row in group.ranked if row.time is not None)
    ratio = row.time.ratio if row.time is not None else None
    assert ratio is not None
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
    with tempfile.TemporaryDirectory() as folder:
        for line in given.commands.read_text(encoding="utf-8").splitlines():
            name, _, command = line.partition(":")
            try:
                row, error = measure(shlex.split(command), given.budget, folder)
            except PagewiseError as fault:
                row = str(fault)
            else:
                errors.append(abs(error))
            print(f"{name:16} {row}", flush=True)
    if errors:
        sys.stdout.write(f"median error {median(errors):.3f}\n")


main()
