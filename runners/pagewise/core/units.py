"""Sizes, times and ratios as text, and sizes parsed from text."""

from __future__ import annotations

import re

_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B|[KMGT]|B|)\s*$", re.IGNORECASE)
_STEPS = "KMGT"


def parse_bytes(text: str) -> int:
    """Bytes of `256MiB`, `4 kB`, `1GiB`, `4096`. KiB steps by 1024, kB by 1000. Raises ValueError."""
    match = _SIZE.match(text)
    if not match:
        raise ValueError(f"not a size: {text!r} (write 256MiB, 64kB or 4096)")
    number, unit = float(match[1]), match[2].lower()
    if unit in ("", "b"):
        return int(number)
    step = 1024 if "i" in unit else 1000
    return int(number * step ** (_STEPS.lower().index(unit[0]) + 1))


def bytes_text(count: float) -> str:
    """Bytes in the largest binary unit that keeps the number at or above 1: `256 MiB`, `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{_three(count)} {unit}"
        count /= 1024
    return f"{_three(count)} TiB"


def seconds_text(seconds: float) -> str:
    """A duration in s, ms, us or ns with three figures."""
    for scale, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(seconds) * scale >= 1.0:
            return f"{_three(seconds * scale)} {unit}"
    return f"{_three(seconds * 1e9)} ns"


def clock_text(seconds: float) -> str:
    """A longer duration as `1:07` or `1:02:03`."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def count_text(count: int, noun: str, many: str | None = None) -> str:
    """A count with its noun: `1 run`, `12 runs`; `many` is an irregular plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {many or noun + 's'}"


def number_text(value: float) -> str:
    """A measured value with three figures, large ones by powers of a thousand: `45.2`, `0.0053`, `2.31e6`."""
    exponent = 0
    while abs(value) >= 1e6 or (exponent and abs(value) >= 1e3):
        value, exponent = value / 1e3, exponent + 3
    return f"{_figures(value)}e{exponent}" if exponent else _figures(value)


def percent_text(share: float) -> str:
    """A share in percent: `2.1 %`."""
    return f"{100 * share:.1f} %"


def _three(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1000 else _figures(value)


def _figures(value: float) -> str:
    magnitude = abs(value)
    if 0 < magnitude < 0.1:
        return f"{value:.2g}"
    return f"{value:.0f}" if magnitude >= 100 else f"{value:.1f}" if magnitude >= 10 else f"{value:.2f}"
