"""Runs short commands for their output, in the C locale."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from pagewise.core.environment import C_LOCALE

_SECONDS = 20


def output_of(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, check: bool = True
) -> str | None:
    """The standard output of a command, stripped; None if it cannot be run, or does not end in time.

    check: return None for a command that fails, too.
    """
    try:
        done = subprocess.run(
            command,
            env={**(os.environ if environment is None else environment), **C_LOCALE},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=check,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
