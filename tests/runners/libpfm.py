"""libpfm through ctypes: does it know an event's name? Works for CPUs other than this one."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_USER = 8  # PFM_PLM3: counted in user mode
_PMUS = 3000  # numbers of PMUs lie below, in all versions so far


class _Pmu(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("description", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
        *((name, ctypes.c_int) for name in ("pmu", "type", "events", "first", "encodings")),
        *((name, ctypes.c_int) for name in ("counters", "fixed", "flags")),
    ]


class _Encoding(ctypes.Structure):
    _fields_ = [
        ("codes", ctypes.POINTER(ctypes.c_uint64)),
        ("full_name", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("count", ctypes.c_int),
        ("index", ctypes.c_int),
    ]


@cache
def library() -> ctypes.CDLL | None:
    """libpfm, ready; None where it is not installed. PAGEWISE_TEST_LIBPFM names another one."""
    os.environ["LIBPFM_ENCODE_INACTIVE"] = "1"  # encode events of CPUs that are not this one
    name = os.environ.get("PAGEWISE_TEST_LIBPFM") or ctypes.util.find_library("pfm")
    if name is None:
        return None
    found = ctypes.CDLL(name)
    found.pfm_strerror.restype = ctypes.c_char_p
    return found if found.pfm_initialize() == 0 else None


@cache
def pmus() -> frozenset[str]:
    """The PMUs that it has been built with: those of one architecture, and the kernel's own."""
    return frozenset(_pmus())


def _pmus() -> Iterator[str]:
    lib = library()
    for number in range(_PMUS if lib else 0):
        told = _Pmu(size=ctypes.sizeof(_Pmu))
        if lib.pfm_get_pmu_info(number, ctypes.byref(told)) == 0:
            yield told.name.decode()


def fault(pmu: str, native: str) -> str | None:
    """What it says against the name, None when it knows it."""
    asked = _Encoding(size=ctypes.sizeof(_Encoding))
    name = native if "::" in native else f"{pmu}::{native}"
    answer = library().pfm_get_os_event_encoding(name.encode(), _USER, 0, ctypes.byref(asked))
    return None if answer == 0 else library().pfm_strerror(answer).decode()


@cache
def recorded() -> dict[tuple[str, str], int]:
    """Codes by PMU and name that libpfm gave elsewhere."""
    lines = Path(__file__).with_name("libpfm_encodings.txt").read_text().splitlines()
    told = [line.split() for line in lines if not line.startswith("#")]
    return {(pmu, name): int(code, 16) for pmu, name, code, _ in told}
