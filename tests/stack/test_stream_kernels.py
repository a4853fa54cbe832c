"""A stream kernel is kernel.yaml and loop.f90: CMake writes the rest, and refuses contradicting facts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conftest import ROOT, run

KERNELS = ROOT / "kernels"
STREAMS = sorted(
    file.parent
    for file in KERNELS.glob("micro/*/CMakeLists.txt")
    if "pagewise_stream_kernel()" in file.read_text()
)


def test_a_stream_kernel_costs_at_most_four_files_and_fifty_lines() -> None:
    assert len(STREAMS) >= 10
    for folder in STREAMS:
        files = [file for file in folder.rglob("*") if file.is_file()]
        assert len(files) <= 4
        assert sum(len(file.read_text().splitlines()) for file in files) <= 50


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("traffic: {loads: 2,", "traffic: {loads: 3,"),
        ("write_allocate: 1, flops: 2", "write_allocate: 1, flops: 1"),
        ("stores: 1, write_allocate: 1, ", "stores: 1, "),
        ("equation: a(i) = b(i) + s * c(i)", "equation: a(i) = b(i) + s * d(i)"),
        ("equation: a(i) = b(i) + s * c(i)", "equation: a(i) = sqrt(b(i))"),
        ("equation: a(i) = b(i) + s * c(i)\n", ""),
    ],
)
def test_facts_of_a_stream_that_contradict_each_other_are_refused(tmp_path: Path, old: str, new: str) -> None:
    source = shutil.copytree(KERNELS, tmp_path / "kernels")
    # Only the kernel in question: the others would take half a minute.
    (source / "micro" / "CMakeLists.txt").write_text("add_subdirectory(stream_triad)\n")
    file = source / "micro" / "stream_triad" / "kernel.yaml"
    configure = ("cmake", "-S", source, "-B", tmp_path / "build", "-DBUILD_TESTING=OFF")
    assert run(*configure).returncode == 0
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    done = run(*configure)
    assert done.returncode != 0
    assert "CMake Error" in done.stdout and "stream_triad/kernel.yaml" in done.stdout
