"""`pagewise simulate` in a checkout: builds a kernel for the tracer with its preset, and simulates it."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest

from tracing import needs_tracer

ROOT = Path(__file__).parents[2]


@needs_tracer
@pytest.mark.parametrize("compiler", ["gcc", "llvm"])
def test_a_pointer_chase_misses_as_arithmetic_has_it(compiler: str, tmp_path: Path) -> None:
    """16 entries miss random lines on 256 pages of 64 KiB with rate 1 - 16/256, and on 8 huge pages never."""
    arguments = ("pointer_chase", "--working-set", "16MiB", "--hops", "200000", "--repetitions", "1")
    done = subprocess.run(
        [ROOT / "pagewise", "simulate", "--compiler", compiler, "--output", tmp_path, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = tmp_path.glob("*/simulation.csv")
    rows = list(csv.DictReader(file.open(newline="")))
    misses = {
        row["policy"]: int(row["modelled"])
        for row in rows
        if (row["region"], row["count"]) == ("", "L1D_TLB_REFILL")
    }
    assert misses["none"] / 200000 == pytest.approx(1 - 16 / 256, abs=0.004)
    # The machine may not provide transparent huge pages; a message then names the excluded policy.
    assert misses.get("thp", 0) < 100
    assert "thp" in misses or "thp" in done.stderr
