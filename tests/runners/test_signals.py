"""Interrupts: what is started is ended, at whatever moment they come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from pagewise.core.errors import Interrupted
from pagewise.core.signals import interruptible, postponed
from pagewise.session.processes import in_session

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_postponed_signal_comes_when_the_block_is_left():
    done = []
    with pytest.raises(Interrupted) as caught, interruptible():
        with postponed():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            done.append("inside")
        done.append("after")
    assert done == ["inside"] and caught.value.signal_number == signal.SIGTERM


def test_nothing_is_raised_where_nothing_came():
    before = signal.getsignal(signal.SIGINT)
    with interruptible(), postponed():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_that_is_interrupted_as_it_starts_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The signal comes after the fork and before the caller knows of the process."""
    started = []

    @contextmanager
    def interrupted_at_its_end():
        yield
        signal.raise_signal(signal.SIGINT)

    class Kept(subprocess.Popen):
        def __init__(self, *arguments, **more):
            super().__init__(*arguments, **more)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Kept)
    with (
        pytest.raises(Interrupted),
        interruptible(),
        in_session(SLEEP, tmp_path / "said", os.environ, tmp_path, interrupted_at_its_end()),
    ):
        pytest.fail("it is not reached")
    assert len(started) == 1
    with pytest.raises(ProcessLookupError):
        os.killpg(started[0].pid, 0)
