"""Whether this machine can trace programs, for the tests of `pagewise simulate`."""

from __future__ import annotations

import os

import pytest
from pagewise.core.errors import SetupError
from pagewise.workloads.simulation.tracer import find_tracer


def _reason() -> str:
    if os.uname().machine != "x86_64":
        return "the traced programs need x86-64"
    try:
        find_tracer("x86_64")
    except SetupError as fault:
        # In CI the tests run and fail.
        return "" if os.environ.get("CI") else str(fault)
    return ""


#: Skips a test without a QEMU that supports plug-ins, such as on Debian 13 (docs/explanation/simulation.md).
needs_tracer = pytest.mark.skipif(bool(_reason()), reason=_reason())
