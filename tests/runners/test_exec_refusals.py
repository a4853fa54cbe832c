"""pagewise exec: what it refuses, and that nothing is started then."""

from __future__ import annotations

from pathlib import Path

import pytest

from launched import Launcher
from own_program import needs_madvise, needs_thp
from pagewise.core.text import printable
from pagewise.workloads.program.policy import PARTS


def test_an_unknown_policy_is_wrong_usage_and_the_known_ones_are_listed(launcher: Launcher):
    for policy in ("", "huge", "malloc:64k", "thp:big", "none+reuse", "thp+malloc", "bss+bss"):
        done = launcher.run(policy, "--", "true")
        assert (done.returncode, done.stdout) == (2, ""), policy
        assert all(f"\n  {part} " in done.stderr for part in PARTS)


@pytest.mark.parametrize("name", ["\x1b[31m", "\x1b]0;title\x07", "\r\n", "\x7f", "\x9b2J"])
@pytest.mark.parametrize("words", ["{} -- true", "--{}", "none -- ./{}", "none -- {}"])
def test_names_have_no_control_characters_in_messages(launcher: Launcher, words: str, name: str):
    done = launcher.run(*(word.format(name) for word in words.split(" ")))
    assert done.returncode in (2, 127) and done.stderr.splitlines()[0].startswith("pagewise: error:")
    assert printable(done.stderr) == done.stderr and "\r" not in done.stderr


def test_an_unavailable_policy_starts_nothing(launcher: Launcher):
    done = launcher.run("thp:4k", "--", "touch", "started")
    assert done.returncode == 3 and not (launcher.folder / "started").exists()
    assert done.stderr.startswith("pagewise: error:")


@needs_madvise
def test_policies_by_preloading_are_unavailable_to_static_programs(launcher: Launcher, programs: Path):
    static = programs / "memory-static"
    assert launcher.run("thp", "--", static, "large").returncode == 3
    assert launcher.run("bss", "--", static, "static").returncode == 3
    done = launcher.run("--record", "pages.jsonl", "malloc", "--", static, "large")
    assert done.returncode == 0 and launcher.records() == [] and str(static) in done.stderr


@needs_madvise
def test_a_static_launcher_passes_the_policy_on(launcher: Launcher, programs: Path):
    """For the program that it starts, which is looked up as the launcher itself is."""
    static, started = programs / "memory-static", programs / "memory"
    named = [((), 3), (("--for", started), 0), ((f"--for={started}",), 0), (("--for", "absent"), 127)]
    for options, code in named:
        assert launcher.run("--quiet", *options, "bss", "--", static, "short").returncode == code


@needs_thp
def test_a_static_program_refuses_huge_pages_by_inheritance(launcher: Launcher):
    shown = ("--", "grep", "THP_enabled", "/proc/self/status")
    assert launcher.run("--quiet", "none", *shown).stdout.split() == ["THP_enabled:", "0"]
    # A policy with huge pages accepts them again.
    nested = launcher.run("--quiet", "none", "--", launcher.program, "--quiet", "malloc", *shown)
    assert nested.stdout.split() == ["THP_enabled:", "1"]


def test_a_program_that_cannot_be_executed(launcher: Launcher):
    for name, code in (("/nonexistent", 127), ("no-such-program", 127), ("/etc/passwd", 126)):
        assert launcher.run("none", "--", name).returncode == code
