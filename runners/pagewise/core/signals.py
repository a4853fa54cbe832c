"""Turns SIGINT, SIGTERM, SIGHUP and the end of a time limit into exceptions, so that every `finally` runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pagewise.core.errors import Interrupted

# A shell adds it to the number of the signal that ended a program.
_SHELL_BASE = 128
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raises Interrupted in the main thread at the first of these signals during the block.

    Further signals are ignored until the block ends, so that they do not interrupt the restoring.
    """
    received = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal received
        if not received:
            received = True
            raise Interrupted(number)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def postpone_signals() -> Iterator[None]:
    """Delays these signals until the block ends, so that nothing begun in it remains unknown.

    Only the main thread receives signals; in other threads this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = {number: signal.signal(number, lambda number, _: received.append(number)) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the block after this time: a pattern of the user may take forever.

    Only the main thread receives signals; in other threads there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def shell_code(code: int) -> int:
    """The exit code of a process as a shell reports it, from that of subprocess (-9: ended by signal 9)."""
    return code if code >= 0 else _SHELL_BASE - code


def signal_name(code: int) -> str | None:
    """The name of the signal of an exit code, above 128 or negative; None for another exit code."""
    number = -code if code < 0 else code - _SHELL_BASE
    if number <= 0:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def exit_text(code: int) -> str:
    """How a process ended: `crashed by SIGSEGV`, `ended with exit code 3`."""
    name = signal_name(code)
    return f"ended with exit code {code}" if name is None else f"crashed by {name}"
