"""Settings of the machine that are put back when a block ends, whatever ends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from pagewise.errors import Interrupted, RefusedError


class Setting(Protocol):
    """Something of the machine that has a value and can be given another."""

    def get(self) -> str:
        """The value now. Raises RefusedError."""

    def put(self, value: str) -> None:
        """Sets the value. Raises RefusedError."""


@contextmanager
def kept(settings: Sequence[Setting]) -> Iterator[list[str]]:
    """Gives the values before; at the end of the block each setting has its own again.

    An exception or a signal turned into one ends the block like any other end. Raises RefusedError.
    """
    before = [setting.get() for setting in settings]
    try:
        yield before
    finally:
        try:
            _put_back(settings, before)
        except Interrupted:
            # The one signal that is turned into an exception (see signals.py) came just now: begin again.
            _put_back(settings, before)
            raise


def _put_back(settings: Sequence[Setting], values: Sequence[str]) -> None:
    """The last one set is the first one back; one that is refused does not hinder the others."""
    refused = None
    for setting, value in reversed(list(zip(settings, values, strict=True))):
        try:
            setting.put(value)
        except RefusedError as fault:
            refused = refused or fault
    if refused is not None:
        raise refused
