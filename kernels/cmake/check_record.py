"""check_record CHECK RECORD FACT... -- COMMAND...: run a kernel, and check the record that it writes.

CHECK and its facts: `broken VALUE`, `traffic DESCRIPTION LINE_BYTES`, `regions`, or `placement MIGRATED
RETURNS`. A command that exits with 77 cannot be checked on this machine.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SKIPPED = 77


def run(record: Path, command: list[str], expected: int = 0) -> dict[str, Any]:
    """Return the record of a run that ends with this exit code."""
    record.unlink(missing_ok=True)
    code = subprocess.run([*command, "--record", record], stdout=subprocess.DEVNULL, check=False).returncode
    if code == SKIPPED:
        sys.exit(SKIPPED)
    assert code == expected, f"exit code {code}, not {expected}"
    return json.loads(record.read_text())


def broken(record: Path, command: list[str], value: str) -> None:
    """Wrong timed code is detected; NaN and Inf are the largest error that there is.

    `value`: nan, inf, wrong, repeat (a part of the work repeats another part), or a fault of this kernel.
    """
    if value == "wrong":
        os.environ.pop("PAGEWISE_BROKEN", None)
    else:
        os.environ["PAGEWISE_BROKEN"] = value
    validation = run(record, command, 1)["validation"]
    assert not validation["passed"], validation
    assert (validation["error"] == sys.float_info.max) == (value in ("nan", "inf")), validation


def traffic(record: Path, command: list[str], description: str, line_bytes: str) -> None:
    """The traffic is that of kernel.yaml, per element or, with `per`, per unit of the option of this name.

    Without write_allocate or lines, bytes_hardware depends on more than elements.
    """
    described = json.loads(Path(description).read_text())["traffic"]
    written = run(record, command)
    units = written["passes_per_repetition"]
    units *= written["options"][described["per"]] if "per" in described else written["sizes"]["elements"]
    named = (described["loads"] + described["stores"]) * described["element_bytes"]
    expected = {"bytes_stream": named}
    if "write_allocate" in described:
        regular = written["configuration"]["stores"] == "regular"
        allocated = described["write_allocate"] if regular else 0
        expected["bytes_hardware"] = named + allocated * described["element_bytes"]
    if "lines" in described:
        expected["bytes_hardware"] = described["lines"] * int(line_bytes)
    if "flops" in described:
        expected["flops"] = described["flops"]
    for name, each in expected.items():
        assert math.isclose(written["traffic"][name], each * units, rel_tol=1e-12), (
            name,
            each * units,
            written,
        )


def regions(record: Path, command: list[str]) -> None:
    """The region has the calls of all threads, the repetitions' time to within 1 %, and load imbalances."""
    written = run(record, command)
    region, team = written["regions"][0], len(written["placement"]["cpus"])
    times = written["seconds"]["repetitions"]
    assert (region["path"], region["threads"]) == ("compute", team), region
    assert region["calls"] == len(times) * team, region
    for name in ("seconds", "seconds_mean_of_threads", "seconds_exclusive"):
        assert math.isclose(region[name], sum(times), rel_tol=0.01), (name, region, times)
    for event, count in region.get("counts", {}).items() if team > 1 else ():
        assert count == 0 or 1 <= region["imbalance"][event] <= team, (event, region)


def placement(record: Path, command: list[str], migrated: str, returns: str) -> None:
    """So many threads migrated; the only thread `returns` (1) to the CPU where it began, or not (0)."""
    written = run(record, command)["placement"]
    assert (written["migrated"], len(written["numa_nodes_at_end"])) == (int(migrated), 1), written
    assert (written["cpus"] == written["cpus_at_end"]) == (returns == "1"), written


if __name__ == "__main__":
    words = sys.argv[1:]
    separator = words.index("--")
    check, record, *facts = words[:separator]
    {"broken": broken, "traffic": traffic, "regions": regions, "placement": placement}[check](
        Path(record), words[separator + 1 :], *facts
    )
