"""The machine's settings: one session at a time, always restored; on a synthetic machine."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import killed_sessions
from fake_root import tree
from killed_sessions import state
from pagewise.core.errors import RefusedError
from pagewise.machine.settings import journal
from pagewise.machine.settings.journal import (
    RESTORING,
    SESSION,
    HeldError,
    Journal,
    SettingChange,
    lock,
    make_folder,
    shared_folder,
)
from pagewise.machine.settings.kinds import Msr, Pool, Setting, Word
from pagewise.machine.settings.session import keep_journal, restore, session, traces
from pagewise.workloads.doctor import setting_findings
from scripts import HANGS_AFTER, called
from stage import RUNNERS

KILLED = Path(killed_sessions.__file__)


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, Any]:
    return killed_sessions.machine(tmp_path)


def started(root: Path, block: str, lines: str) -> subprocess.Popen[str]:
    """Start a process that runs these lines in this block of a session, and wait for its first output."""
    code = f"""
import os, signal, sys, time
sys.path[:0] = [{str(RUNNERS)!r}, {str(KILLED.parent)!r}]
from pathlib import Path
import killed_sessions
from pagewise.machine.settings.session import accompany, keep_journal, removed_if_killed
root = Path({str(root)!r})
with {block}:
    {lines}
"""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen([sys.executable, "-c", code], **pipes, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "changed\n"
    return process


def other(root: Path, lines: str) -> subprocess.Popen[str]:
    """Start a session in another process that changes the pool and then runs these lines."""
    changes = f"""machine = killed_sessions.machine(root)
    journal.change(machine["pool"], "144")
    journal.change(machine["attribute"], "0")
    print("changed", flush=True)
    {lines}"""
    return started(root, "keep_journal(root) as journal", changes)


def killed(root: Path) -> None:
    """Kill a session and its guardian with SIGKILL."""
    process = other(root, "time.sleep(60)")
    os.kill(killed_sessions.guardian_of(process.pid), signal.SIGKILL)
    process.kill()
    process.communicate()
    killed_sessions.settle(root)


def test_a_session_restores_after_success_error_and_interrupt(tmp_path: Path, machine: dict[str, Any]):
    before = state(machine)
    for fault in (None, ValueError(), KeyboardInterrupt()):
        try:
            with keep_journal(tmp_path) as changes:
                changes.change(machine["pool"], "100")
                changes.change(machine["msr"], "0x5")
                assert (state(machine)["pool"], state(machine)["msr"]) == (100, 0x45)
                if fault is not None:
                    raise fault
        except (ValueError, KeyboardInterrupt):
            assert fault is not None
        assert state(machine) == before and traces(tmp_path) == []


def test_changes_by_others_are_not_restored(tmp_path: Path, machine: dict[str, Any]):
    """The other bits of a register, and surplus pages of a pool."""
    with keep_journal(tmp_path) as changes:
        changes.change(machine["msr"], "0xf")
        machine["msr"].write(machine["msr"].read() ^ 0xF0)
        changes.change(machine["pool"], "144")
        (machine["pool"].folder / "surplus_hugepages").write_text("44\n")
        machine["pool"].put("188")
    assert machine["pool"].total() == 10 and machine["msr"].read() == 0xB2


@pytest.mark.long
@pytest.mark.parametrize(("which", "count"), [("alone", 100), ("both", 30)])
def test_sessions_killed_anywhere_leave_nothing(tmp_path: Path, which: str, count: int):
    """`alone`: the guardian restores; `both`: it is killed too, and the journal suffices to restore."""
    command = [sys.executable, str(KILLED), str(tmp_path), str(count), which]
    done = called(command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_a_killed_session_is_restored_by_its_guardian(tmp_path: Path, machine: dict[str, Any]):
    """A child of the session, which outlives it, does not keep it open."""
    before = state(machine)
    fork = "child = os.fork(); print(child, flush=True) if child else None; time.sleep(60)"
    process = other(tmp_path, fork)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        guardian = killed_sessions.guardian_of(process.pid)
        assert state(machine) != before and [trace.is_running for trace in traces(tmp_path)] == [True]
        assert [finding.state for finding in setting_findings(tmp_path)] == ["note", "note"]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(guardian, number)
        assert os.getpgid(guardian) == os.getsid(guardian) == guardian
        process.kill()
        process.wait()
        killed_sessions.settle(tmp_path)
        assert state(machine) == before and traces(tmp_path) == []
        assert [finding.state for finding in setting_findings(tmp_path)] == ["good"]
        with session(tmp_path):
            pass
        assert b") S" in Path(f"/proc/{child}/stat").read_bytes(), "the child outlives all that"
    finally:
        os.kill(child, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def run() -> Iterator[subprocess.Popen[bytes]]:
    """A run, in a session of processes by itself."""
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize(
    "setting",
    [
        Pool(Path("/elsewhere/pool")),
        Word(Path("/else\0where")),
        Word(Path("/elsewhere")),
        Msr(Path("/elsewhere"), 0x1A4, 15),
    ],
)
def test_a_journal_with_foreign_paths_restores_nothing(tmp_path: Path, setting: Setting):
    make_folder(shared_folder(tmp_path))
    left = Journal(shared_folder(tmp_path), changes=[SettingChange(setting, "1")])
    left._write()
    with pytest.raises(RefusedError):
        restore(tmp_path)


@pytest.mark.parametrize("how", ["restore", "next session"])
def test_leftovers_after_both_were_killed_are_reported_and_restored(
    tmp_path: Path, machine: dict[str, Any], how: str
):
    before = state(machine)
    killed(tmp_path)
    assert state(machine) != before
    [trace] = traces(tmp_path)
    assert not trace.is_running and [change.before for change in trace.changes] == ["10", "1"]
    findings = list(setting_findings(tmp_path))
    assert [finding.state for finding in findings] == ["missing", "missing"]
    assert all(finding.remedy for finding in findings)
    reported: list[str] = []
    if how == "restore":
        restore(tmp_path, reported.append)
    else:
        with session(tmp_path, reported.append):
            assert state(machine) == before
    assert len(reported) == 2 and state(machine) == before and traces(tmp_path) == []


def test_a_journal_of_an_earlier_boot_is_void(tmp_path: Path, machine: dict[str, Any], monkeypatch):
    killed(tmp_path)
    left = state(machine)
    earlier = Journal(shared_folder(tmp_path)).file
    assert earlier.exists() and len(traces(tmp_path)) == 1
    next_boot = tmp_path / "boot_id"
    next_boot.write_text("00000000-0000-4000-8000-000000000000\n")
    monkeypatch.setattr(journal, "BOOT", next_boot)
    assert traces(tmp_path) == []
    with session(tmp_path):
        assert state(machine) == left
    assert not earlier.exists() and state(machine) == left


@pytest.mark.parametrize("guardian", [False, True])
def test_settings_that_others_changed_are_reported_and_not_restored(
    tmp_path: Path, machine: dict[str, Any], guardian: bool
):
    process = other(tmp_path, "sys.stdin.read()")
    machine["pool"].put("200")
    if guardian:
        process.kill()
    _, errors = process.communicate()
    killed_sessions.settle(tmp_path)
    assert (state(machine)["pool"], state(machine)["attribute"]) == (200, 1)
    assert f"{machine['pool'].place}: 10" in errors and "200" in errors
    assert traces(tmp_path) == []


def test_a_setting_that_cannot_be_restored_stays_in_the_journal(tmp_path: Path, machine: dict[str, Any]):
    folder, aside = machine["pool"].folder, tmp_path / "aside"
    with pytest.raises(RefusedError) as caught, keep_journal(tmp_path) as changes:
        changes.change(machine["attribute"], "0")
        changes.change(machine["pool"], "144")
        folder.rename(aside)
    assert machine["pool"].place in str(caught.value) and machine["attribute"].get() == "1"
    [trace] = traces(tmp_path)
    assert [change.setting for change in trace.changes] == [machine["pool"]]
    # The value must not be taken for the original one: no session starts until it is restored.
    with pytest.raises(RefusedError), session(tmp_path):
        pytest.fail("the block must not run")
    aside.rename(folder)
    restore(tmp_path)
    assert machine["pool"].total() == 10 and traces(tmp_path) == []


def test_a_second_session_is_refused_without_side_effects(tmp_path: Path, machine: dict[str, Any]):
    before = state(machine)
    process = other(tmp_path, "sys.stdin.read()")
    changed = state(machine)
    for claim in (lambda: session(tmp_path).__enter__(), lambda: restore(tmp_path)):
        with pytest.raises(RefusedError) as caught:
            claim()
        assert str(process.pid) in str(caught.value) and state(machine) == changed
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert state(machine) == before
    with session(tmp_path):
        pass


def test_a_stopped_or_killed_guardian_does_not_block_the_session(tmp_path: Path, machine: dict[str, Any]):
    before = state(machine)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        lines = f"os.kill(killed_sessions.guardian_of(os.getpid()), {number:d})"
        lines += "\n    for _ in range(2000): accompany(0)"
        _, errors = other(tmp_path, lines).communicate(timeout=HANGS_AFTER)
        assert errors == "" and state(machine) == before


def test_a_session_within_a_session_restores_its_own_changes(tmp_path: Path, machine: dict[str, Any]):
    """Its locks are not accessible to others."""
    with session(tmp_path):
        for name in (SESSION, RESTORING):
            file = shared_folder(tmp_path) / name
            assert file.stat().st_mode & 0o077 == 0
            with pytest.raises(HeldError):
                lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with keep_journal(tmp_path) as outer:
            outer.change(machine["pool"], "20")
            with keep_journal(tmp_path) as inner:
                inner.change(machine["pool"], "30")
                assert machine["pool"].total() == 30
            assert machine["pool"].total() == 20
        assert machine["pool"].total() == 10


def plant_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def plant_link(file: Path) -> None:
    """A link that leads to what stood there."""
    file.rename(file.with_name("real"))
    file.symlink_to("real")


NONSENSE = '{"schema": "pagewise.journal/1", "session": {}, "changes": [[]]}'
#: What is done to the folder of a journal and its file.
PLANTS: dict[str, Callable[[Path, Path], object]] = {
    "folder link": lambda folder, _: plant_link(folder),
    "journal link": lambda _, file: plant_link(file),
    "writable folder": lambda folder, _: folder.chmod(0o777),
    "writable journal": lambda _, file: file.chmod(0o666),
    "foreign folder": lambda folder, _: os.chown(folder, 65534, 65534),
    "foreign journal": lambda _, file: os.chown(file, 65534, 65534),
    "pipe": lambda _, file: plant_pipe(file),
    "nonsense": lambda _, file: file.write_text(NONSENSE),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_planted_files_are_not_used(tmp_path: Path, machine: dict[str, Any], plant: str):
    if "foreign" in plant and os.geteuid() != 0:
        pytest.skip("only root gives a file away")
    planted = Journal(shared_folder(tmp_path))
    make_folder(planted.folder)
    planted.change(machine["pool"], "144")
    PLANTS[plant](planted.folder, planted.file)
    for use in (lambda: restore(tmp_path), lambda: session(tmp_path).__enter__(), lambda: traces(tmp_path)):
        with pytest.raises(RefusedError):
            use()
    assert machine["pool"].total() == 144
    assert [finding.state for finding in setting_findings(tmp_path)] == ["missing"]


@pytest.mark.parametrize("over", ["no", "run", "block"])
@pytest.mark.parametrize("block", ["keep_journal(root)", "removed_if_killed(root / 'scratch')"])
def test_the_run_of_a_killed_session_is_ended_and_its_files_are_removed_unless_they_were_over(
    tmp_path: Path, run: subprocess.Popen[bytes], block: str, over: str
):
    scratch = tmp_path / "scratch"
    tree(scratch, {"file": ""})
    lines = f"""accompany({run.pid})
    {over != "no"} and accompany()
    {over == "block"} or (print("changed", flush=True), time.sleep(60))
print("changed", flush=True)
time.sleep(60)"""
    session = started(tmp_path, block, lines)
    session.kill()
    session.communicate()
    if over == "no":
        assert run.wait(timeout=HANGS_AFTER) == -signal.SIGKILL
    killed_sessions.settle(tmp_path)
    is_removed = block.startswith("removed") and over != "block"
    while is_removed and scratch.exists():
        time.sleep(0.01)
    assert scratch.exists() != is_removed and (run.poll() is None) == (over != "no")
