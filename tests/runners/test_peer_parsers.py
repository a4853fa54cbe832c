"""Peers' command lines, and their true outputs; and outputs that are not what they should be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pagewise.workloads.peers.known import PEERS
from pagewise.workloads.peers.peer import Ask, UnableError, UnreadableError, find, find_library

OUTPUTS = Path(__file__).with_name("peer_outputs")
STREAM_BYTES = 22369621 * 24
TABLE = 128 * 1024**2
MATRICES = 4096**2 * 16

OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas-r0.3.21.so"
#: What HPCC prints.
END_OF_SECTION = "End of SingleRandomAccess section."
LIBFFTW = "/usr/lib/x86_64-linux-gnu/libfftw3.so.3.6.10"

TRUE = [
    ("likwid-bench", Ask("triad_mem_avx_fma", 512_000_000), "likwid-bench.txt", 10.93591),
    ("stream", Ask("Triad", STREAM_BYTES), "stream.txt", 12.4379),
    ("stream", Ask("Copy", STREAM_BYTES), "stream.txt", 10.2045),
    ("babelstream", Ask("Triad", STREAM_BYTES), "babelstream.txt", 12.249928),
    ("bwbench", Ask("Triad", STREAM_BYTES), "bwbench.txt", 11.71),
    ("multichase", Ask("chase", TABLE), "multichase.txt", 133.9),
    ("hpcc", Ask("SingleRandomAccess", TABLE), "hpcc-random_access.txt", 24.426e6),
    ("hpcc", Ask("PTRANS", MATRICES), "hpcc-ptrans.txt", 0.645),
    ("likwid-bench", Ask("peakflops_avx_fma", 16_000), "likwid-bench-peak.txt", 6.10558),
    ("cblas", Ask("zgemm padded", 3 * 200**2 * 16, library=OPENBLAS), "cblas-zgemm.txt", 4.98623),
    ("fftw", Ask("1024", 4 * 32768, library="libfftw3.so.3"), "fftw.txt", 38.8014),
]


@pytest.mark.parametrize(("name", "ask", "file", "value"), TRUE)
def test_true_outputs_are_read(name, ask, file, value):
    assert PEERS[name].value((OUTPUTS / file).read_text(), ask) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize(("name", "ask", "file", "value"), TRUE)
def test_outputs_that_are_cut_are_refused(name, ask, file, value):
    lines = (OUTPUTS / file).read_text().splitlines()
    for kept in (0, len(lines) // 3):
        with pytest.raises(UnreadableError):
            PEERS[name].value("\n".join(lines[:kept]), ask)


@pytest.mark.parametrize(
    ("name", "ask", "file", "change", "reported"),
    [
        ("likwid-bench", Ask("triad_avx", 1), "likwid-bench.txt", ("x", "x"), "triad_avx"),
        ("likwid-bench", TRUE[0][1], "likwid-bench.txt", ("10935.91", "0.00"), "0.00"),
        ("stream", Ask("Triad", 2 * STREAM_BYTES), "stream.txt", ("x", "x"), "-DSTREAM_ARRAY_SIZE=44739242"),
        ("stream", TRUE[1][1], "stream.txt", ("Solution Validates", "Failed"), ""),
        ("babelstream", TRUE[3][1], "babelstream.txt", ("Dot", "Validation failed on a[]"), ""),
        ("bwbench", TRUE[4][1], "bwbench.txt", ("Rate(GB/s)", "Rate(MB/s)"), "Rate(GB/s)"),
        ("multichase", TRUE[5][1], "multichase.txt", ("133.9", "usage:"), "usage:"),
        ("hpcc", TRUE[6][1], "hpcc-random_access.txt", ("(passed)", "(failed)"), ""),
        ("hpcc", Ask("SingleRandomAccess", 4096), "hpcc-random_access.txt", ("x", "x"), "512"),
        ("hpcc", TRUE[7][1], "hpcc-ptrans.txt", ("PASSED", "FAILED"), ""),
        ("hpcc", Ask("PTRANS", 5000**2 * 16), "hpcc-ptrans.txt", ("x", "x"), "5000"),
        ("cblas", TRUE[9][1], "cblas-zgemm.txt", ("openblas-serial", "blis"), OPENBLAS),
        ("cblas", TRUE[9][1], "cblas-zgemm.txt", ("check passed", "check"), "zgemm 200"),
        ("cblas", Ask("zgemm", 480), "cblas-zgemm.txt", ("x", "x"), "zgemm 3"),
        ("fftw", Ask("2048", 65536), "fftw.txt", ("x", "x"), "2048"),
    ],
)
def test_wrong_results_are_refused_with_the_reason(name, ask, file, change, reported):
    """Each output is true but for one change, or is not of the size asked for."""
    text = (OUTPUTS / file).read_text()
    with pytest.raises(UnreadableError) as raised:
        PEERS[name].value(text.replace(*change), ask)
    assert set(reported.split()) <= set(re.split(r"[\s,`]+", str(raised.value)))


def test_likwid_is_bound_by_us_and_runs_about_as_long_at_any_size():
    call = PEERS["likwid-bench"].call(Ask("copy_avx", 16384, 2))
    assert call.arguments == ("-t", "copy_avx", "-i", str(int(30e9 / 16384)), "-w", "N:16kB:2")
    assert PEERS["likwid-bench"].call(Ask("copy", 1024**3)).arguments[3] == "10"


def test_multichase_visits_the_whole_set_at_random():
    arguments = PEERS["multichase"].call(Ask("chase", 4096, pages="thp")).arguments
    assert arguments[arguments.index("-T") + 1] == arguments[arguments.index("-m") + 1] == "4096"
    assert arguments[arguments.index("-s") + 1] == "64" and "-H" in arguments


def test_what_a_peer_cannot_do_is_said():
    for name, ask in (
        ("stream", Ask("Triad", STREAM_BYTES, pages="thp")),
        ("multichase", Ask("chase", 4096, threads=2)),
        ("multichase", Ask("chase", 4096, pages="hugetlbfs")),
        ("hpcc", Ask("PTRANS", MATRICES, threads=2)),
        ("hpcc", Ask("HPL", MATRICES)),
        ("babelstream", Ask("Triad", STREAM_BYTES, pages="hugetlbfs")),
        ("cblas", Ask("dgemm", MATRICES, threads=2)),
        ("fftw", Ask("1024", MATRICES, pages="hugetlbfs")),
    ):
        with pytest.raises(UnableError):
            PEERS[name].call(ask)


def test_libraries_are_called_with_one_thread_on_matrices_and_transforms_of_the_size_asked_for():
    call = PEERS["cblas"].call(Ask("dgemm", 3 * 1536**2 * 8, library=OPENBLAS))
    assert call.arguments == (OPENBLAS, "dgemm", "1536", "1536", "10")
    assert call.environment["OPENBLAS_NUM_THREADS"] == call.environment["BLIS_NUM_THREADS"] == "1"
    # An odd number of lines: 193 of 8 numbers, 251 of 4.
    assert PEERS["cblas"].call(Ask("dgemm padded", 3 * 1536**2 * 8)).arguments[3] == str(193 * 8)
    assert PEERS["cblas"].call(Ask("zgemm padded", 3 * 1000**2 * 16)).arguments[2:4] == ("1000", "1004")
    call = PEERS["fftw"].call(Ask("1024", 32768 * 7, pages="thp", library=LIBFFTW))
    assert call.arguments == (LIBFFTW, "1024", "7", "10")
    assert call.environment["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=1"


def test_a_library_is_found_in_folders_first(tmp_path: Path):
    environ = {"PAGEWISE_PEERS": str(tmp_path / "b")}
    assert find_library("no-such-library", [tmp_path], environ) is None
    named = program(tmp_path / "b", "libopenblas.so.0")
    assert find_library("openblas", [tmp_path / "a"], environ) == named
    first = program(tmp_path / "a", "libopenblas.so")
    assert find_library("openblas", [tmp_path / "a"], environ) == first


def test_hpcc_is_given_sizes_and_ended_after_its_section():
    table = PEERS["hpcc"].call(Ask("SingleRandomAccess", TABLE, pages="thp"))
    lines = table.files["hpccinf.txt"].splitlines()
    assert lines[5].split()[0] == "4096" and lines[32].split()[0] == "0"
    assert table.until == END_OF_SECTION and table.output == "hpccoutf.txt"
    assert table.environment["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=1"
    matrices = PEERS["hpcc"].call(Ask("PTRANS", MATRICES)).files["hpccinf.txt"].splitlines()
    assert matrices[5].split()[0] == "256"
    assert [line.split()[0] for line in matrices[32:36]] == ["1", "4096", "0", "80"]


def program(folder: Path, name: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return str(folder / name)


def test_programs_are_found_in_folders_first_and_by_compiler(tmp_path: Path):
    plain = program(tmp_path / "b", "stream")
    environ = {"PATH": str(tmp_path / "b"), "PAGEWISE_PEERS": str(tmp_path / "a")}
    (only,) = find(PEERS["stream"], [], ["gcc", "llvm"], environ)
    assert (only.path, only.compiler) == (plain, None)
    named = program(tmp_path / "a", "stream-llvm")
    (found,) = find(PEERS["stream"], [], ["gcc", "llvm"], environ)
    assert (found.path, found.compiler) == (named, "llvm")
    program(tmp_path / "b", "multichase")
    first = program(tmp_path / "c", "multichase")
    assert find(PEERS["multichase"], [tmp_path / "c"], [], environ)[0].path == first
    assert find(PEERS["hpcc"], [tmp_path / "c"], [], environ) == []
