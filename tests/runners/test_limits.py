"""Measured limits of bandwidth by cache level, and what curves reach of them."""

from __future__ import annotations

import math

import pytest

from builders import configuration, kernel
from pagewise.analysis.curves import Curve
from pagewise.analysis.limits import Limiting, levels_of, limits_of, write_allocate_share
from pagewise.core.plan import Cell
from tabled_results import TRAFFIC


def test_levels_begin_where_the_level_before_ends() -> None:
    levels = levels_of([("L1", 32e3), ("L2", 1e6), ("L3", 1.5e6)])
    assert [(level.low, level.high) for level in levels] == [
        (0, 32e3), (32e3, 1e6), (1e6, 1.5e6), (1.5e6, math.inf)
    ]  # fmt: skip
    # A cache less than twice as large as the one before counts from its beginning.
    assert [level.measured_from for level in levels] == [0, 64e3, 1e6, 6e6]
    assert write_allocate_share(TRAFFIC) == 0.8 and write_allocate_share(None) is None


def test_only_regular_stores_share_the_limit_with_their_lines() -> None:
    def curve(stores: str, bandwidth: float) -> Curve:
        measured = configuration(label=("none", "hardware", stores))
        return Curve(kernel().sweeps[0], Cell(measured, (measured,), False), ((1e9, bandwidth),), 0)

    limiting = Limiting("stream_sum", [curve("regular", 10.0)], None)
    for curves, share in (
        ([curve("regular", 6.0)], 0.75),
        ([curve("nontemporal", 9.0)], 0.9),
        ([curve("regular", 6.0), curve("nontemporal", 7.0)], 0.75),
        ([], None),
    ):
        (limit,) = limits_of(levels_of([("L1", 32e3)]), curves, [limiting], TRAFFIC)
        assert (limit.value, limit.with_write_allocate) == (10.0, 8.0)
        assert limit.share == (None if share is None else pytest.approx(share))
