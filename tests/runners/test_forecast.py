"""Forecasts of what huge pages save, computed by hand; and the geometry of this node, from fake programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from builders import origin, simulated
from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.manifest_parts import Forecast, Origin
from pagewise.core.structure import from_data, to_data
from pagewise.workloads.simulation import node
from pagewise.workloads.simulation.forecast import EXPOSED, share_saved, with_forecast
from pagewise.workloads.simulation.geometry import Costs, Translation
from scripts import called, write_script
from simulator import SOURCES, compiled

COSTS = Costs(500.0, 56_000.0, (Translation(64, 2.0, 0.5, 0.1), Translation(4096, 30.0, 4.0, 1.0)))


def missing(kind: str = "allocation", pattern: str = "dependent", faults: tuple[int, int] = (0, 0)) -> Origin:
    """An origin with 300 accesses beyond 64 pages, and 100 beyond 4096."""
    distant = {name: (300, 100) if name == pattern else (0, 0) for name in EXPOSED}
    counts = {"PAGE_FAULTS_ON_HUGE": faults[1]}
    return origin(kind=kind, page_faults=faults[0], counts=counts, distant=distant)


def forecast(*origins: Origin, seconds: tuple[float, ...] = (1.0,)) -> tuple[Forecast, tuple[Origin, ...]]:
    """The forecast for all origins, and the origins with their forecasts."""
    counts = {"PAGE_WALKS": 100, "PAGE_WALKS_ON_HUGE": 50}
    made = with_forecast(simulated(*origins, counts=counts), COSTS, seconds)
    assert made.forecast is not None and made.origins is not None
    return made.forecast, made.origins


@pytest.mark.parametrize(
    ("pattern", "nanoseconds"), [("dependent", 3600.0), ("independent", 550.0), ("adjacent", 130.0)]
)
def test_each_pattern_has_its_cost_at_each_distance(pattern: str, nanoseconds: float) -> None:
    """300 times the first cost and 100 times the second, of which the program waits for a share."""
    whole, (one,) = forecast(missing(pattern=pattern), seconds=(3e-5, 2.5e-5))
    saved = tuple(share * nanoseconds * 1e-9 for share in EXPOSED[pattern])
    assert one.saved_seconds == pytest.approx(saved) == whole.saved_seconds
    # Of the fastest run.
    assert whole.time_ratio == pytest.approx((1 - saved[1] / 2.5e-5, 1 - saved[0] / 2.5e-5))
    assert share_saved(one, whole) == pytest.approx((saved[0] / 2.5e-5, saved[1] / 2.5e-5))


def test_page_faults_are_saved_or_cost_more() -> None:
    _, origins = forecast(missing(faults=(512, 1)), missing(faults=(1, 1)))
    dense, sparse = (each.saved_seconds for each in origins)
    low, high = (share * 3600e-9 for share in EXPOSED["dependent"])
    # 512 * 500 - 56000 = 200000 ns; 500 - 56000 = -55500 ns
    assert dense == pytest.approx((0.7 * 200e-6 + low, 1.3 * 200e-6 + high))
    assert sparse == pytest.approx((1.3 * -55.5e-6 + low, 0.7 * -55.5e-6 + high))


@pytest.mark.parametrize("kind", ["file", "stack"])
def test_memory_that_stays_on_base_pages_saves_nothing(kind: str) -> None:
    whole, (one,) = forecast(missing(kind))
    assert one.saved_seconds == (0.0, 0.0) and whole.time_ratio == (1.0, 1.0)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that writes geometries as pw-tlb does; a checkout whose state is empty."""
    (tmp_path / ".pagewise").mkdir(mode=0o700)
    monkeypatch.setenv("PAGEWISE_ROOT", str(tmp_path))
    monkeypatch.setenv("FAKE_TLB_RUNS", str(tmp_path / "runs"))
    return Path(__file__).with_name("fake_tlb.py")


@pytest.fixture
def costs(tmp_path: Path) -> Path:
    """A program that prints costs as `pagewise-costs` does."""
    script = f"#!/bin/sh\necho $1 >>{tmp_path / 'runs'}\necho '{json.dumps(to_data(COSTS))}'\n"
    return write_script(tmp_path / "pagewise-costs", script)


def test_the_geometry_of_the_node_is_measured_once(tmp_path: Path, kernel: Path, costs: Path) -> None:
    console = Console(quiet=True)
    first = node.node_geometry(kernel, costs, console)
    none, thp, *sizes = (tmp_path / "runs").read_text().splitlines()
    assert (none, thp) == ("none", "thp") and len(sizes) > 2
    assert len({*sizes}) == 1 and int(sizes[0]) % (2 << 20) == 0
    assert [tlb.pages for tlb in first.tlbs] == ["base", "huge"] and first.costs == COSTS
    assert first.lines(caches=False).splitlines()[-2:] == ["distance 64", "distance 4096"]
    assert node.node_geometry(None, costs, console) == first
    assert len((tmp_path / "runs").read_text().splitlines()) == 2 + len(sizes)
    (file,) = (tmp_path / ".pagewise" / "geometry").iterdir()
    assert file == node.kept_file()


def test_a_cost_is_the_median_of_several_runs() -> None:
    def costs(fault: float, dependent: float) -> Costs:
        return Costs(fault, 2.0 * fault, (Translation(256, dependent, 1.0, 2.0),))

    actual = node.median_of([costs(3.0, 10.0), costs(1.0, 90.0), costs(2.0, 20.0)])
    assert actual == costs(2.0, 20.0)


def test_costs_are_measured_at_ascending_distances(tmp_path: Path) -> None:
    program = compiled(tmp_path / "costs", SOURCES / "costs.c", SOURCES / "mapping.c")
    size = 64 << 20
    done = called([program, size])
    if done.returncode == 3:
        pytest.skip(done.stderr)
    actual = from_data(Costs, json.loads(done.stdout))
    distances = [each.pages for each in actual.translations]
    assert distances == [256 << i for i in range(len(distances))]
    assert distances[-1] <= size // os.sysconf("SC_PAGESIZE") // 2 < 2 * distances[-1]
    assert 0 < actual.base_fault_ns < actual.huge_fault_ns
    for wrong in ([], ["4096"], [f"{size}x"]):
        assert called([program, *wrong]).returncode == 2


def test_without_huge_pages_the_node_has_no_costs(kernel: Path, costs: Path, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_TLB_WITHOUT", "thp")
    costs.write_text("#!/bin/sh\nexit 3\n")
    actual = node.node_geometry(kernel, costs, Console(quiet=True))
    assert [tlb.pages for tlb in actual.tlbs] == ["base"] and actual.costs is None


def test_a_node_that_cannot_be_measured_is_refused(kernel: Path, costs: Path, monkeypatch) -> None:
    for programs in ((None, costs), (kernel, costs.with_name("missing"))):
        with pytest.raises(SelectionError):
            node.node_geometry(*programs, Console(quiet=True))
    monkeypatch.setenv("FAKE_TLB_WITHOUT", "none")
    with pytest.raises(RefusedError):
        node.node_geometry(kernel, costs, Console(quiet=True))
    assert not node.kept_file().exists()
