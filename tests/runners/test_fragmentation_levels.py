"""What `doctor` predicts from the free memory, against what programs then get, over real fragmentation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from own_program import bytes_on_huge_pages, needs_thp
from pagewise.machine.host import read_host
from pagewise.machine.node_state import predict
from pagewise.session.node_states import NodeStates, compact

DEFRAG = Path("/sys/kernel/mm/transparent_hugepage/defrag")
HUGE = 2 << 20
#: Huge pages that are left free; other free memory is held. At the highest level 200 of them stay whole: the
#: kernel's lists per CPU have some dozens that no file shows, and a program gets so many more.
LEFT = 4096
#: Shares of these that are fragmented.
LEVELS = (0.0, 0.25, 0.5, 0.7, 0.85, 0.95)
#: Sizes of programs relative to the prediction.
SIZES = (0.5, 0.9, 1.2, 1.5)
#: As much of a program's memory as page verification wants.
ENOUGH = 0.99


@contextmanager
def holder(count: int) -> Iterator[subprocess.Popen[str]]:
    """A process that holds so many huge pages."""
    code = f"from pagewise.session.holder import take; held = take({count}, {HUGE}); print(); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "\n"
        yield process
        process.kill()


@contextmanager
def defrag(setting: str) -> Iterator[None]:
    before = DEFRAG.read_text().partition("[")[2].partition("]")[0]
    DEFRAG.write_text(setting)
    try:
        yield
    finally:
        DEFRAG.write_text(before)


def got(count: int) -> float:
    """The share of a program's memory of so many huge pages that is on huge pages."""
    return bytes_on_huge_pages(count * HUGE) / (count * HUGE)


@needs_thp
@pytest.mark.release
@pytest.mark.changes_machine
def test_prediction_and_outcome_over_levels_of_real_fragmentation(tmp_path: Path) -> None:
    compact()
    found = predict(read_host().thp)
    if found is None or found.page_bytes != HUGE or found.obtainable < 1.5 * LEFT:
        pytest.skip("needs 12 GiB of free memory in huge pages of 2 MiB")
    cases: list[tuple[float, int, int, bool, bool]] = []
    # Page faults take free huge pages and do not wait for more: what `obtainable` predicts.
    with defrag("never"), holder(found.obtainable - LEFT) as rest:
        for level in LEVELS:
            with NodeStates(tmp_path, most=int(level * LEFT)) as states:
                if level > 0:
                    states.enter("aged")
                for size in SIZES:
                    supply = predict(read_host().thp)
                    assert supply is not None
                    predicted = supply.obtainable
                    count = max(1, int(size * predicted))
                    cases.append((level, predicted, count, count <= predicted, got(count) >= ENOUGH))
                states.check()
            assert rest.poll() is None, "the kernel ended the process that holds the rest"
    right = sum(would == does for *_, would, does in cases)
    assert {would for *_, would, _ in cases} == {True, False}
    assert right >= 0.9 * len(cases), cases
