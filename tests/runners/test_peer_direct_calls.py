"""The programs of direct calls: they call the given library and detect wrong results."""

from __future__ import annotations

import ctypes.util
import subprocess
from pathlib import Path

import pytest

from pagewise.core.errors import SetupError
from pagewise.stack.c_code import find_compiler
from pagewise.workloads.peers.known import PEERS
from pagewise.workloads.peers.peer import Ask, Call, find

#: What dlerror(3) reports, and a compiler of this test.
NO_FUNCTION, NO_LIBRARY, FULL = "undefined symbol", "cannot open shared object file", "no-space-left"
# Libraries that omit work: an element of c, a number of the last transform.
WRONG = {
    "cblas": (
        "void cblas_dgemm(int o, int s, int t, int m, int n, int k, double x, const double *a, int la,\n"
        "                 const double *b, int lb, double y, double *c, int lc)\n"
        "{ (void)o, (void)s, (void)t, (void)y;\n"
        "  for (int j = 0; j < n; j++) for (int i = 0; i < m - (j == n - 1); i++)\n"
        "  for (int p = 0; p < k; p++) c[j * lc + i] += x * a[p * la + i] * b[j * lb + p]; }\n"
    ),
    "fftw": (
        "void *fftw_plan_dft_1d(int n, void *in, void *out, int sign, unsigned flags)\n"
        "{ static int plan; (void)n, (void)in, (void)out, (void)sign, (void)flags; return &plan; }\n"
        "void fftw_execute_dft(void *plan, double *in, double *out) { (void)plan; out[0] = in[0]; }\n"
    ),
}


def run(name: str, call: Call) -> subprocess.CompletedProcess[str]:
    (program,) = find(PEERS[name], [], [])
    # Few repetitions, because only the result is tested.
    arguments = [program.path, *call.arguments[:-1], "1"]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)


def computed(name: str, ask: Ask) -> float:
    done = run(name, PEERS[name].call(ask))
    assert done.returncode == 0, done.stderr
    return PEERS[name].value(done.stdout, ask)


@pytest.mark.parametrize("routine", ["sgemm", "dgemm", "cgemm", "zgemm"])
@pytest.mark.parametrize("padded", ["", " padded"])
@pytest.mark.parametrize("name", ["openblas", "blas"])
def test_matrices_are_multiplied_by_the_library_that_is_named(name: str, routine: str, padded: str):
    element_bytes = {"s": 4, "d": 8, "c": 8, "z": 16}[routine[0]]
    ask = Ask(routine + padded, 3 * 37**2 * element_bytes, library=ctypes.util.find_library(name))
    assert computed("cblas", ask) > 0


@pytest.mark.parametrize("length", ["2", "63", "1024"])
def test_transforms_are_right(length: str):
    assert computed("fftw", Ask(length, 65536, library=ctypes.util.find_library("fftw3"))) > 0


@pytest.mark.parametrize(("name", "test"), [("cblas", "dgemm"), ("fftw", "64")])
def test_a_wrong_result_and_a_missing_function_are_reported(tmp_path: Path, name: str, test: str):
    source, library = tmp_path / "wrong.c", tmp_path / "libwrong.so"
    source.write_text(WRONG[name])
    subprocess.run([*find_compiler(), "-shared", "-fPIC", source, "-o", library], check=True)
    done = run(name, PEERS[name].call(Ask(test, 50_000, library=str(library))))
    assert done.returncode == 1
    done = run(name, PEERS[name].call(Ask(test, 50_000, library=ctypes.util.find_library("m"))))
    assert done.returncode == 3 and NO_FUNCTION in done.stderr
    done = run(name, PEERS[name].call(Ask(test, 50_000, library=str(tmp_path / "none.so"))))
    assert done.returncode == 3 and NO_LIBRARY in done.stderr


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("cblas", ("x", "qgemm", "1", "1"), "sgemm|dgemm|cgemm|zgemm"),
        ("cblas", ("x", "dgemm", "many", "1"), "many:"),
        ("cblas", ("x", "dgemm", "10", "9"), "9:"),
        ("fftw", ("x", "0", "1"), "0:"),
        ("fftw", ("x", "1", "1"), "1:"),
        ("fftw", ("x",), "LENGTH"),
    ],
)
def test_wrong_usage_is_refused(name: str, arguments: tuple[str, ...], named: str):
    done = run(name, Call((*arguments, "1")))
    assert done.returncode == 2 and named in done.stderr.split()


def test_without_a_compiler_they_are_missing_and_a_broken_compiler_is_an_error(tmp_path: Path):
    assert find(PEERS["cblas"], [], [], {"PATH": str(tmp_path)}) == []
    assert "CC=" in PEERS["cblas"].missing(["gcc"])
    broken = tmp_path / "broken-cc"
    broken.write_text(f"#!/bin/sh\necho {FULL} >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(SetupError, match=FULL) as raised:
        find(PEERS["fftw"], [], [], {"CC": str(broken), "HOME": str(tmp_path)})
    assert "CC=gcc" in raised.value.remedy
