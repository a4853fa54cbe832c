"""pagewise exec and compare: what a program does stays as it is, with real libraries and unusual programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from launched import MIB, Launcher, recorded
from own_program import build
from pagewise.workloads.program.policy import FILE

SHARED = ("-shared", "-fPIC")


@pytest.fixture(scope="session")
def snapshot(programs: Path) -> Path:
    """The library of a comparison's trial runs."""
    return build(str(FILE.with_name("snapshot.c")), programs / "snapshot.so", *SHARED)


@pytest.fixture(scope="session")
def linked(programs: Path) -> Path:
    """A program with a library that is initialised before any preloaded one."""
    library = build("missing_symbols.c", programs / "libmissing.so", *SHARED)
    options = ("-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{programs}")
    return build("memory.c", programs / "memory-linked", *options)


@pytest.mark.parametrize("policy", ["none", "malloc", "reuse"])
def test_a_library_may_ask_for_symbols_before_any_constructor(launcher: Launcher, linked: Path, policy: str):
    record = recorded(launcher, policy, linked, "large", "0.01")
    assert record["peak_bytes"] >= 64 * MIB and record["met"] is not None


def test_the_library_of_trial_runs_is_safe_before_its_constructor(
    snapshot: Path, linked: Path, tmp_path: Path
):
    variables = {"LD_PRELOAD": str(snapshot), "PAGEWISE_SNAPSHOT": str(tmp_path / "smaps")}
    done = subprocess.run([linked, "large", "0.01"], env=variables, stdout=subprocess.DEVNULL, check=False)
    assert done.returncode == 0
    assert any(b"memory-linked" in file.read_bytes() for file in tmp_path.glob("smaps.*"))


@pytest.fixture(scope="session", params=["gnu", "sysv"])
def own_malloc(programs: Path, request: pytest.FixtureRequest) -> Path:
    """An allocator that does not report the size of a block. Each kind of hash table finds its functions."""
    options = (*SHARED, "-fno-builtin", f"-Wl,--hash-style={request.param}")
    return build("own_malloc.c", programs / f"own_malloc-{request.param}.so", *options)


def test_an_allocator_need_not_report_the_size_of_its_blocks(
    launcher: Launcher, programs: Path, snapshot: Path, own_malloc: Path
):
    record = recorded(launcher, "none", programs / "memory", "large", "0.01", LD_PRELOAD=str(own_malloc))
    assert record["observed_bytes"] >= 64 * MIB and record["met"] is True
    stem = launcher.folder / "smaps"
    variables = {"LD_PRELOAD": f"{snapshot}:{own_malloc}", "PAGEWISE_SNAPSHOT": str(stem)}
    done = subprocess.run(
        [programs / "memory", "large", "0.01"], env=variables, stdout=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0 and list(launcher.folder.glob("smaps.*"))
