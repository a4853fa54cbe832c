"""Programs built with a sanitizer: AddressSanitizer's library refuses to be loaded behind another one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from conftest import Once
from launched import Launcher
from own_program import Own, compile_program
from pagewise.stack.binary import examine

IMPOSSIBLE = ("thp", "malloc", "reuse", "bss", "text")


@pytest.fixture(scope="session")
def sanitized(once: Once) -> dict[str, Path]:
    """The program by sanitizer, of those that the compiler has."""

    def make(folder: Path) -> dict[str, Path]:
        made = {}
        for name in ("address", "leak", "thread"):
            try:
                made[name] = compile_program(folder, f"memory-{name}", f"-fsanitize={name}")
            except subprocess.CalledProcessError:
                continue
        return made

    return once("sanitized", make)


@pytest.fixture
def program(sanitized: dict[str, Path]) -> Path:
    if "address" not in sanitized:
        pytest.skip("the compiler does not have AddressSanitizer")
    return sanitized["address"]


@pytest.mark.parametrize("name", ["address", "leak", "thread"])
@pytest.mark.parametrize(("way", "code"), [("short", 0), ("wrong", 3)])
def test_a_sanitized_program_runs_as_without_us(
    launcher: Launcher, sanitized: dict[str, Path], name: str, way: str, code: int
):
    if name not in sanitized:
        pytest.skip(f"the compiler does not have the {name} sanitizer")
    plain = subprocess.run([sanitized[name], way], stdout=subprocess.PIPE, text=True, check=False)
    done = launcher.run("none", "--", sanitized[name], way)
    assert plain.returncode == code and (done.returncode, done.stdout) == (code, plain.stdout)


@pytest.mark.parametrize("policy", IMPOSSIBLE)
def test_nothing_starts_under_a_policy_that_needs_a_preloaded_library(
    launcher: Launcher, program: Path, policy: str
):
    done = launcher.run(policy, "--", program, "short")
    assert (done.returncode, done.stdout) == (3, "")


def test_the_users_runtime_stays_first(launcher: Launcher, program: Path):
    """As for a module of Python that was built with it."""
    runtime = next(Path(name).name for name in examine(str(program), os.environ).libraries if "asan" in name)
    variables = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"}
    done = launcher.run("none", "--", "sh", "-c", "echo $LD_PRELOAD", **variables)
    assert (done.returncode, done.stdout.split()) == (0, [runtime])
    assert launcher.run("thp", "--", "true", **variables).returncode == 3


def test_the_launcher_or_a_script_may_start_it(launcher: Launcher, program: Path):
    """A script, if the runtime does not check the order of libraries."""
    script = ("sh", "-c", f"'{program}' large 0.01; exit $?")
    within = launcher.run("none", "--", launcher.program, "none", "--", program, "short")
    of_script = launcher.run("none", "--", *script, ASAN_OPTIONS="verify_asan_link_order=0")
    for done in (within, of_script):
        assert done.returncode == 0 and done.stdout.startswith("sum:")


@pytest.mark.long
def test_a_comparison_of_a_sanitized_program(own: Own, sanitized: dict[str, Path], program: Path):
    own.programs = program.parent
    done = own.run("--policies", "none,thp", "--rounds", "1", program=program.name, way="large 0.1")
    assert done.returncode in (0, 1) and own.statuses() == {"none": {"ok"}, "thp": {"pages_unavailable"}}
