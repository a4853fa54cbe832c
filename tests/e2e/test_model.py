"""`pagewise simulate` in a checkout: builds a kernel for the tracer with its preset, and simulates it."""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path

import pytest
from pagewise.workloads.simulation.geometry import read_geometry

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
        row["policy"]: int(row["simulated"])
        for row in rows
        if (row["region"], row["count"]) == ("", "L1D_TLB_REFILL")
    }
    assert misses["none"] / 200000 == pytest.approx(1 - 16 / 256, abs=0.004)
    # The machine may not provide transparent huge pages; a message then names the excluded policy.
    assert misses.get("thp", 0) < 100
    assert "thp" in misses or "thp" in done.stderr


@needs_tracer
def test_the_geometry_of_this_node_is_simulated(tmp_path: Path) -> None:
    """`pw-tlb` writes the TLBs that it infers, one run per page size; `simulate` reads the file."""
    for words in (("--preset", "gcc-model"), ("--build", "--preset", "gcc-model", "--target", "pw-tlb")):
        subprocess.run(["cmake", *words], cwd=ROOT / "kernels", capture_output=True, check=True)
    file, pages = tmp_path / "node.yaml", os.sysconf("SC_PAGE_SIZE")
    program = ROOT / ".pagewise/build/gcc-model/micro/tlb/pw-tlb"
    subprocess.run([program, "--pages", "none", "--geometry", file, "--repetitions", "1"], check=True)
    geometry = read_geometry(file)
    assert geometry.pages.base == pages and all(tlb.pages == "base" for tlb in geometry.tlbs)
    arguments = ("pointer_chase", "--working-set", "16MiB", "--hops", "200000", "--repetitions", "1")
    words = ("simulate", "--policies", "none", "--geometry", file, "--output", tmp_path, *arguments)
    subprocess.run([ROOT / "pagewise", *words], check=True)
    (table,) = tmp_path.glob("*/simulation.csv")
    rows = {
        row["count"]: int(row["simulated"])
        for row in csv.DictReader(table.open(newline=""))
        if not row["region"]
    }
    resident = geometry.tlbs[0].entries / (16 * 2**20 / pages)
    assert rows["L1D_TLB_REFILL"] / 200000 == pytest.approx(1 - resident, abs=0.05)
