"""Check event names with libpfm through ctypes, also of other CPUs than this one."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_USER = 8  # PFM_PLM3: counted in user mode
_PMUS = 3000  # above the number of every PMU in all versions so far


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
    """The initialized libpfm; None if it is not installed. PAGEWISE_TEST_LIBPFM names another file."""
    os.environ["LIBPFM_ENCODE_INACTIVE"] = "1"  # also encode events of other CPUs
    name = os.environ.get("PAGEWISE_TEST_LIBPFM") or ctypes.util.find_library("pfm")
    if name is None:
        return None
    lib = ctypes.CDLL(name)
    lib.pfm_strerror.restype = ctypes.c_char_p
    return lib if lib.pfm_initialize() == 0 else None


@cache
def pmus() -> frozenset[str]:
    """The PMUs that it was built with: those of one architecture and the kernel's."""
    return frozenset(_pmus())


def _pmus() -> Iterator[str]:
    lib = library()
    for number in range(_PMUS if lib else 0):
        pmu = _Pmu(size=ctypes.sizeof(_Pmu))
        if lib.pfm_get_pmu_info(number, ctypes.byref(pmu)) == 0:
            yield pmu.name.decode()


def fault(pmu: str, native: str) -> str | None:
    """libpfm's error for an event's name; None if the name is valid."""
    encoding = _Encoding(size=ctypes.sizeof(_Encoding))
    name = native if "::" in native else f"{pmu}::{native}"
    answer = library().pfm_get_os_event_encoding(name.encode(), _USER, 0, ctypes.byref(encoding))
    return None if answer == 0 else library().pfm_strerror(answer).decode()


@cache
def recorded() -> dict[tuple[str, str], int]:
    """Codes by PMU and name, recorded with libpfm on other machines."""
    lines = Path(__file__).with_name("libpfm_encodings.txt").read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    return {(pmu, name): int(code, 16) for pmu, name, code, _ in rows}
