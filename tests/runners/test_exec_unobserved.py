"""pagewise exec: processes that a signal ends report nothing; the process that waits for them counts them."""

from __future__ import annotations

import json
import sys

import pytest

from launched import MIB, Launcher

# Starts children with memory, ends them by a signal, or lets them end themselves, and waits for them.
POOL = """
import os, signal, sys
way, number, size, by = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
reader, writer = os.pipe()
children = []
for _ in range(number):
    pid = os.fork()
    if pid == 0:
        memory = bytearray(b"1") * size
        os.write(writer, b"x")
        if by:
            signal.pause()
        os._exit(0)
    children.append(pid)
for _ in children:
    os.read(reader, 1)
for pid in children:
    if by:
        os.kill(pid, by)
for pid in children:
    if way == "wait":
        os.wait()
    elif way == "wait3":
        os.wait3(0)
    elif way == "wait4":
        os.wait4(pid, 0)
    elif way == "waitpid":
        os.waitpid(pid, 0)
    else:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.waitid(os.P_PID, pid, os.WEXITED)
"""


def pool(launcher: Launcher, way: str, *, size: int = 32 * MIB, by: int = 15) -> tuple[dict, str]:
    """The record of the process that waits, and standard error."""
    arguments = [sys.executable, "-SE", "-c", POOL, way, "3", str(size), str(by)]
    done = launcher.run("--record", "pages.jsonl", "none", "--", *arguments)
    assert done.returncode == 0, done.stderr
    records = launcher.records()
    assert len(records) == (1 if by or size < 16 * MIB else 4)
    return next(record for record in records if record["peak_bytes"] < 24 * MIB), done.stderr


@pytest.mark.parametrize("way", ["wait", "wait3", "wait4", "waitpid", "waitid"])
def test_children_that_a_signal_ended_are_counted(launcher: Launcher, way: str):
    record, errors = pool(launcher, way)
    assert record["unobserved_processes"] == 3 and record["met"] is None
    assert {"3", "signals"} <= set(errors.split())


@pytest.mark.parametrize(("size", "by"), [(32 * MIB, 0), (1024, 15), (1024, 0)])
def test_children_that_report_or_have_little_memory_are_not(launcher: Launcher, size: int, by: int):
    record, errors = pool(launcher, "waitpid", size=size, by=by)
    assert record["unobserved_processes"] == 0 and "signals" not in errors


def test_a_small_process_between_reports_its_children(launcher: Launcher):
    arguments = [sys.executable, "-SE", "-c", POOL, "waitpid", "2", str(32 * MIB), "15"]
    launcher.run("--record", "pages.jsonl", "none", "--", "sh", "-c", '"$@"; exit 0', "sh", *arguments)
    records = launcher.records()
    assert sorted(record["unobserved_processes"] for record in records) == [0, 2], json.dumps(records)
