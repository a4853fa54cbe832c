"""Turns SIGINT, SIGTERM and SIGHUP into one exception, so that every `finally` on the way runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pagewise.core.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raises Interrupted in the main thread at the first of these signals, while the block lasts.

    Further ones are ignored until the block is left: what the first one undoes is undone whole.
    """
    came = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if not came:
            came = True
            raise Interrupted(number)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def postponed() -> Iterator[None]:
    """Has these signals wait until the block is left: nothing begun in it is lost to who must end it.

    Only the main thread is sent signals; in another one this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
