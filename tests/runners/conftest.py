"""Fixtures: stages with stand-in modules and kernels. Tests that change or load the machine run alone."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from forked import start_server
from launched import Launcher
from many_results import multiply
from own_program import POOL, Own, compile_program
from pagewise.workloads.program.production import install
from querying import DATES, NODES
from simulator import compiled_build, compiled_replay
from stage import BASE, CHASE, THP, TRIAD, Stage

Once: TypeAlias = Callable[[str, Callable[[Path], Any]], Any]
CHANGES_MACHINE, ALONE = "changes_machine", "alone"
LOCK = Path(tempfile.gettempdir(), f"pagewise-tests-{os.geteuid()}.lock")
GATE = LOCK.with_suffix(".gate")


def pytest_configure(config: pytest.Config) -> None:
    purpose = "briefly changes settings of this machine: needs consent, and no other test at the same time"
    config.addinivalue_line("markers", f"{CHANGES_MACHINE}: {purpose}")
    config.addinivalue_line("markers", f"{ALONE}: no other test runs at the same time and disturbs it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run marked tests and their fixtures alone, all others in parallel."""
    alone = item.get_closest_marker(ALONE) or (item.get_closest_marker(CHANGES_MACHINE) and agreed())
    with LOCK.open("w") as lock:
        # Who waits to be alone holds the gate, so that no other test begins before it.
        with GATE.open("w") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        return (yield)


def agreed() -> bool:
    """Return whether tests may change settings of this machine."""
    consent = os.environ.get("PAGEWISE_TEST_CHANGES_MACHINE") == "1"
    return consent and os.geteuid() == 0 and os.access(POOL, os.W_OK)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker(CHANGES_MACHINE) and not agreed():
        pytest.skip("changes settings briefly; needs root and PAGEWISE_TEST_CHANGES_MACHINE=1")


@pytest.fixture(autouse=True, scope="session")
def prepared() -> None:
    """Load modules for forks, and give tables the width without a terminal, because pytest-xdist sets one."""
    os.environ.pop("COLUMNS", None)
    start_server()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def fill(stage: Stage) -> Stage:
    """Add one compiler with base pages, thp (time ratio 0.8) and software prefetch."""
    stage.add("gcc-12.2.0", BASE, [TRIAD, CHASE])
    stage.add("gcc-12.2.0", THP, [TRIAD, CHASE], factor="0.8")
    stage.add("gcc-12.2.0", ("none", "software", "regular"), [TRIAD, CHASE])
    return stage


@pytest.fixture
def small(stage: Stage) -> Stage:
    return fill(stage)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """A function that fills a folder once for all processes of a test run, and returns what `make` did."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root

    def filled(name: str, make: Callable[[Path], Any]) -> Any:
        folder, kept = root / name, root / f"{name}.pickle"
        with (root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                shutil.rmtree(folder, ignore_errors=True)
                (folder / ".pagewise").mkdir(parents=True)
                kept.write_bytes(pickle.dumps(make(folder)))
        return pickle.loads(kept.read_bytes())

    return filled


@pytest.fixture
def interrupted_starts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Interrupt each start of a process after its fork, before the caller knows of it; the processes."""
    started = []

    class Interrupting(subprocess.Popen):
        def __init__(self, *arguments, **more):
            super().__init__(*arguments, **more)
            started.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupting)
    return started


@pytest.fixture(scope="session")
def compared(once: Once) -> tuple[Stage, subprocess.CompletedProcess[str]]:
    """A finished comparison and its process; tests that change the result copy it first."""

    def make(folder: Path) -> tuple[Stage, subprocess.CompletedProcess[str]]:
        stage = fill(Stage(folder, loads_modules=True))
        return stage, stage.compare("--rounds", "4", "--name", "first", "--seed", "5")

    return once("compared", make)


@pytest.fixture(scope="session")
def programs(once: Once) -> Path:
    """A folder with the program: dynamic, static, with much machine code; compiled libraries stay in it."""

    def make(folder: Path) -> Path:
        compile_program(folder, "memory")
        compile_program(folder, "memory-static", "-static")
        compile_program(folder, "memory-code", "-DLARGE_TEXT")
        compile_program(folder, "memory-data", "-DLARGE_DATA")
        return folder

    return once("programs", make)


@pytest.fixture
def own(programs: Path, tmp_path: Path) -> Iterator[Own]:
    yield Own(programs, tmp_path)


@pytest.fixture(scope="session")
def installed(once: Once) -> Path:
    def make(folder: Path) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PAGEWISE_ROOT", str(folder))
            return install(folder / "prefix")

    return once("installed", make)


@pytest.fixture
def launcher(installed: Path, tmp_path: Path) -> Launcher:
    return Launcher(installed, tmp_path)


@pytest.fixture(scope="session")
def template(compared: tuple[Stage, subprocess.CompletedProcess[str]]) -> Path:
    """The folder of a finished comparison; tests that change it copy it first."""
    return compared[0].result()


@pytest.fixture(scope="session")
def many(template: Path, once: Once) -> Path:
    """A folder with the results of NODES nodes on DATES dates."""

    def make(folder: Path) -> Path:
        multiply(template, folder / "results", NODES, DATES)
        return folder / "results"

    return once("many", make)


@pytest.fixture(scope="session")
def replay(once: Once) -> Path:
    """The simulator as a program that reads a trace."""
    return once("replay", compiled_replay)


@pytest.fixture(scope="session")
def build(once: Once) -> Path:
    """The folder of a build with the plug-in that traces, and a program."""
    return once("build", compiled_build)
