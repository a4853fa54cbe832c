"""Make many results from one, for nodes, dates and kernel versions, with known effects for queries to find.

To measure the time for a million records (docs/reference/results.md):

    python tests/runners/many_results.py RESULT DIR --nodes 100 --dates 11
"""

from __future__ import annotations

import argparse
import copy
import json
import random
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pagewise.analysis.analysis import analyse_result
from pagewise.analysis.rows import ANALYSIS, judgement
from pagewise.core.record import read_records
from pagewise.core.result import read_result
from pagewise.core.text import json_text
from stage import result_content, write_result

SLOW, SLOWER = "node003", 1.2
KERNELS = ("5.14.0-427", "5.14.0-503")
FIRST = datetime(2026, 1, 5, 6, 0, tzinfo=timezone.utc)


def multiply(template: Path, folder: Path, nodes: int, dates: int, seed: int = 1) -> None:
    """Write one result per node and week, with noise of 2 %, one slow node and a new kernel halfway.

    With the new kernel, transparent huge pages take 10 % longer.
    """
    manifest, records = result_content(template)
    for number in range(nodes * dates):
        node, date = number % nodes, number // nodes
        facts = {
            "host": f"node{node:03d}",
            "kernel": KERNELS[int(2 * date >= dates > 1)],
            "moment": FIRST + timedelta(weeks=date, minutes=node),
        }
        write(folder, manifest, records, random.Random(f"{seed}:{number}"), **facts)


def write(
    folder: Path,
    manifest: dict[str, Any],
    records: list[dict[str, Any]],
    chance: random.Random,
    *,
    host: str,
    kernel: str,
    moment: datetime,
) -> Path:
    """Write one result of a node; returns its folder."""
    result = folder / host / f"{moment:%Y%m%dT%H%M%SZ}-{manifest['name']}"
    result.mkdir(parents=True)
    changed = copy.copy(manifest)
    changed["host"] = {**manifest["host"], "hostname": host, "kernel": kernel}
    changed["created"] = changed["finished"] = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    if changed.get("id") is not None:
        changed["id"] = f"{chance.getrandbits(64):016x}"
    node = SLOWER if host == SLOW else 1.0
    with (result / "records.jsonl").open("w") as stream:
        for record in records:
            row = dict(record)
            row["started"] = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
            if "seconds" in row:
                late = 1.1 if kernel == KERNELS[1] and row["configuration"]["hugepages"] == "thp" else 1.0
                factor = node * late * chance.lognormvariate(0.0, 0.02)
                times = [value * factor for value in row["seconds"]["repetitions"]]
                row["seconds"] = {**row["seconds"], "repetitions": times}
                row["metrics"] = {
                    name: value / factor if name.startswith("bandwidth") else value
                    for name, value in row["metrics"].items()
                }
                row["run"] = {**row["run"], "started": row["started"]}
            if "host" in row:
                row["host"] = {**row["host"], "hostname": host, "kernel": kernel}
            stream.write(json.dumps(row) + "\n")
    return analysed(write_result(result, changed))


def analysed(folder: Path) -> Path:
    """Write the file with the verdicts of a result, as `pagewise report` does; returns the folder."""
    records, _ = read_records(folder / "records.jsonl")
    result = replace(read_result(folder, records=False), records=records)
    (folder / ANALYSIS).write_text(json_text(judgement(result, analyse_result(result))))
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=multiply.__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--dates", type=int, default=11)
    given = parser.parse_args()
    multiply(given.result, given.folder, given.nodes, given.dates)
