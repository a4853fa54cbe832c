"""pagewise exec and compare: programs that forbid system calls (seccomp)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from launched import MIB, Launcher
from own_program import Own, build, needs_madvise

WAYS = ("prctl", "raw", "seccomp", "strict")
OUTPUT = {"strict": "before\n", "asked": "before\n"}


@pytest.fixture(scope="session")
def filtered(programs: Path) -> Path:
    return build("filtered.c", programs / "filtered")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", ["none", "reuse"])
def test_no_call_of_ours_follows_a_filter(launcher: Launcher, filtered: Path, policy: str, way: str):
    done = launcher.run("--record", "pages.jsonl", policy, "--", filtered, way)
    assert (done.returncode, done.stdout) == (5, OUTPUT.get(way, "before\nafter\n")), done.stderr
    (record,) = launcher.records()
    assert record["met"] is None and record["observed_bytes"] >= 32 * MIB
    assert len(done.stderr.splitlines()) == 1


def test_a_question_is_not_a_filter(launcher: Launcher, filtered: Path):
    done = launcher.run("--record", "pages.jsonl", "none", "--", filtered, "asked")
    (record,) = launcher.records()
    assert (done.returncode, done.stdout) == (5, "before\n") and record["met"] is True


@needs_madvise
@pytest.mark.parametrize("policy", ["bss", "text"])
def test_memory_after_a_filter_is_not_advised(launcher: Launcher, filtered: Path, policy: str):
    assert launcher.run(policy, "--", filtered, "prctl").returncode == 5


def test_the_advising_library_makes_no_call_after_a_filter(launcher: Launcher, filtered: Path):
    """With all that it does for memory; glibc's own tunable for advice is not set."""
    library = launcher.program.parents[1] / "lib/pagewise/remap.so"
    actions = "advise,advise-malloc,shared,bss,pool-shared"
    variables = {"LD_PRELOAD": str(library), "PAGEWISE_PRELOAD": actions}
    done = subprocess.run([filtered, "prctl"], env=variables, stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stdout) == (5, "before\nafter\n")


@pytest.mark.long
def test_trial_runs_of_a_comparison_survive_a_filter(own: Own, filtered: Path):
    options = ("--policies", "none,reuse", "--rounds", "1", *own.case(exit_codes=[5]))
    own.run(*options, program="filtered", way="prctl")
    assert own.statuses() == {"none": {"ok"}, "reuse": {"ok"}}
