"""Runs end with all that they started: what is stopped, ignores signals, left its group or is interrupted."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from pagewise.core.errors import Interrupted
from pagewise.core.signals import interruptible, postpone_signals
from pagewise.session import processes
from pagewise.session.processes import Running, Shell, in_session

# Detaches itself like a daemon, and prints its process ID.
DAEMON = """
import os, sys, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.write(writer, b"x")
        time.sleep(60)
    os._exit(0)
os.read(reader, 1)
"""


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.3)
    yield
    for pid in tuple(processes._left):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        processes._left.discard(pid)


def run(folder: Path, program: str, limit: float = 30.0, *, end_leftovers: bool = False) -> Running:
    command = [sys.executable, "-c", program]
    output = folder / "said"
    with in_session(
        command, output, os.environ, folder, nullcontext(), end_leftovers=end_leftovers
    ) as running:
        running.wait(limit)
    return running


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.long
@pytest.mark.parametrize(
    "program",
    [
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
        "import os, signal; os.killpg(0, signal.SIGSTOP)",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
        "import os, signal\nsignal.signal(15, signal.SIG_IGN)\nos.kill(os.getpid(), signal.SIGSTOP)",
        "import time; time.sleep(60)",
        "import os, time\nif os.fork() == 0: os.setsid()\ntime.sleep(60)",
    ],
)
def test_the_limit_ends_whatever_the_run_does(tmp_path: Path, program: str):
    began = time.monotonic()
    running = run(tmp_path, program, limit=0.3)
    assert running.is_ended_by_us and time.monotonic() - began < 20
    assert not is_there(running.pid) and not any(is_there(one.pid) for one in running.left)
    assert all(one.ended for one in running.left)


def test_processes_that_a_run_leaves_in_its_group_are_ended_and_the_subreaper_is_put_back(tmp_path: Path):
    program = (
        "import os, signal, time\npid = os.fork()\nif pid == 0:\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\nprint(pid)"
    )
    running = run(tmp_path, program)
    assert not running.is_ended_by_us and running.left == []
    assert not is_there(int((tmp_path / "said").read_text().split()[0]))
    subreaper = ctypes.c_int(-1)
    ctypes.CDLL(None).prctl(processes._GET_SUBREAPER, ctypes.byref(subreaper), 0, 0, 0)
    assert subreaper.value == 0


@pytest.mark.parametrize("ending", [False, True])
def test_daemons_are_reported_and_ended_on_request(tmp_path: Path, ending: bool):
    running = run(tmp_path, DAEMON, end_leftovers=ending)
    assert running.process.returncode == 0 and not running.is_ended_by_us
    (left,) = running.left
    assert left.ended == ending and is_there(left.pid) != ending and left.command.startswith(sys.executable)
    again = run(tmp_path, "pass")
    assert again.left == [] and again.left_behind is None


def test_a_daemon_that_is_stopped_or_has_children_is_ended_too(tmp_path: Path):
    # Both are there before the run ends.
    forked = DAEMON.replace("os.write(w", "if os.fork(): os.write(w")
    stopped = forked.replace("time.sleep(60)", "os.kill(os.getpid(), 19)")
    running = run(tmp_path, stopped, end_leftovers=True)
    assert len(running.left) == 2
    assert all(one.ended for one in running.left) and not any(is_there(one.pid) for one in running.left)


# The command ends when the daemon is a session leader.
SHELL_DAEMON = "setsid sh -c ': >up; exec sleep 60' >/dev/null 2>&1 & until [ -e up ]; do :; done; echo done"


def shell(
    folder: Path, command: str, limit: float = 30.0, *, alone: bool = False, ending: bool = False
) -> Shell:
    with Shell(folder, os.environ, folder, ending) as started:
        code, output = started.run_alone(command, limit) if alone else started.run(command, limit)
        assert limit < 1 or (code == 0 and output == "done\n")
        if limit >= 1 and not alone:
            # What a command before a run starts may serve the run. During its exec, it has no command line.
            end = time.monotonic() + 10
            while not sleepers() and time.monotonic() < end:
                time.sleep(0.01)
            assert sleepers()
    return started


def sleepers() -> list[int]:
    """The children of this process that sleep."""
    return [pid for pid in processes._children() if b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("ending", [False, True])
def test_daemons_of_shell_commands_are_reported_and_ended_on_request(
    tmp_path: Path, ending: bool, alone: bool
):
    (left,) = shell(tmp_path, SHELL_DAEMON, alone=alone, ending=ending).left
    assert left.command.endswith("sleep 60") and left.ended == ending != is_there(left.pid)


def test_processes_left_by_shell_commands_are_ended_after_the_run(tmp_path: Path):
    assert shell(tmp_path, "sleep 60 >/dev/null 2>&1 & echo done").left == []
    assert sleepers() == []


@pytest.mark.parametrize(
    "command", ["sleep 60 | cat", "setsid sleep 60 | cat", "trap '' TERM; sleep 60; sleep 60"]
)
def test_shell_commands_that_take_too_long_are_ended_with_all_they_started(tmp_path: Path, command: str):
    left = shell(tmp_path, command, limit=0.2).left
    assert all(process.ended for process in left)
    assert sleepers() == []


def test_a_shell_command_reads_a_text_and_its_output_is_limited(tmp_path: Path):
    with Shell(tmp_path, os.environ, tmp_path) as started:
        assert started.run_alone("cat; exit 3", 30, "a text\n") == (3, "a text\n")
        assert started.run("cat; pwd", 30) == (0, f"{tmp_path}\n")
        code, output = started.run_alone("yes | head -c 1000000; echo end >&2; kill -9 $$", 30)
        assert code == -signal.SIGKILL and len(output) <= 10_000 and output.endswith("end\n")
    assert started.left == []


def test_a_postponed_signal_comes_when_the_block_is_left():
    done, before = [], signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted) as caught, interruptible():
        with postpone_signals():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            done.append("inside")
        done.append("after")
    assert done == ["inside"] and caught.value.signal_number == signal.SIGTERM
    with interruptible(), postpone_signals():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_that_is_interrupted_as_it_starts_is_ended(tmp_path: Path, interrupted_starts: list[int]):
    with (
        pytest.raises(Interrupted),
        interruptible(),
        in_session(["sleep", "600"], tmp_path / "said", os.environ, tmp_path, nullcontext()),
    ):
        pytest.fail("it is not reached")
    with pytest.raises(ProcessLookupError):
        os.killpg(interrupted_starts[0], 0)
