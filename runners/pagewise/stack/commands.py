"""Runs commands for their output."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from pagewise.core.environment import C_LOCALE

_SECONDS = 20


def run_to_end(
    command: Sequence[str], environment: Mapping[str, str] | None = None, seconds: float = _SECONDS
) -> subprocess.CompletedProcess[str]:
    """Runs a command without input to its end. Raises OSError, TimeoutExpired."""
    return subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )


def output_of(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, check: bool = True
) -> str | None:
    """The standard output of a command in the C locale, stripped; None if it cannot be run or does not end.

    check: return None for a command that fails, too.
    """
    try:
        done = run_to_end(command, {**(os.environ if environment is None else environment), **C_LOCALE})
    except (OSError, subprocess.SubprocessError):
        return None
    return None if check and done.returncode else done.stdout.strip()
