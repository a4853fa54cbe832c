"""Forecasts of what huge pages save, computed by hand; and the geometry of this node, from a fake pw-tlb."""

from __future__ import annotations

import mmap
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.manifest_parts import Origin, Simulated
from pagewise.workloads.simulation import node
from pagewise.workloads.simulation.forecast import share_saved, with_forecast
from pagewise.workloads.simulation.geometry import Geometry, PageSizes, TlbPart, find_geometry

COSTS = {"base": (2.0, 10.0), "huge": (1.0, 4.0)}


def geometry(costs: bool = True, faults: tuple[float | None, float | None] = (None, None)) -> Geometry:
    """Two levels. A miss of the second adds 10 ns on base pages, and 4 ns on huge pages."""
    tlbs = tuple(
        TlbPart(level, 64 * level, 4, "lru", pages, "test", COSTS[pages][level - 1] if costs else None)
        for level in (1, 2)
        for pages in ("base", "huge")
    )
    sizes = PageSizes(4096, 1 << 21, "test", *faults)
    return replace(find_geometry("zen4"), tlbs=tlbs, pages=sizes)  # type: ignore[arg-type]


def origin(kind: str = "allocation", *, following: int = 0, faults: tuple[int, int] = (0, 0)) -> Origin:
    """1000 misses of the first level and 100 walks; on huge pages 200 and 50."""
    counts = {
        **{"L1D_TLB_REFILL": 1000, "L1D_TLB_REFILL_FOLLOWING": 10 * following, "L1D_TLB_REFILL_ON_HUGE": 200},
        **{"PAGE_WALKS": 100, "PAGE_WALKS_FOLLOWING": following, "PAGE_WALKS_ON_HUGE": 50},
        "PAGE_FAULTS_ON_HUGE": faults[1],
    }
    return Origin(
        kind=kind,  # type: ignore[arg-type]
        name="here",
        bytes=4096,
        allocations=1,
        begin=0,
        end=1,
        page_faults=faults[0],
        counts=counts,
    )


def simulated(*origins: Origin) -> Simulated:
    counts = {"PAGE_WALKS": 100, "PAGE_WALKS_ON_HUGE": 50}
    return Simulated(
        geometry="test", tool="test", pages="base", whole=True, counts=counts, regions=(), origins=origins
    )


def test_all_of_independent_misses_is_exposed_at_most_and_a_fifth_at_least() -> None:
    # (1000 * 2 - 200 * 1) + (100 * 10 - 50 * 4) = 2600 ns
    result = with_forecast(simulated(origin()), geometry(), (3e-5, 2.6e-5))
    (one,) = result.origins or ()
    assert one.saved_seconds == pytest.approx((520e-9, 2600e-9))
    assert result.forecast is not None
    assert result.forecast.saved_seconds == pytest.approx((520e-9, 2600e-9))
    # Of the fastest run.
    assert result.forecast.time_ratio == pytest.approx((0.9, 0.98))
    assert share_saved(one, result.forecast) == pytest.approx((0.02, 0.1))


def test_misses_that_follow_one_another_are_hidden_in_part() -> None:
    result = with_forecast(simulated(origin(following=100)), geometry(), (1.0,))
    assert (result.origins or ())[0].saved_seconds == pytest.approx((0.0, 0.3 * 2600e-9))
    result = with_forecast(simulated(origin(following=50)), geometry(), (1.0,))
    assert (result.origins or ())[0].saved_seconds == pytest.approx((0.5 * 520e-9, 0.65 * 2600e-9))


def test_page_faults_are_saved_or_cost_more() -> None:
    result = with_forecast(
        simulated(origin(faults=(512, 1)), origin(faults=(1, 1))), geometry(faults=(500.0, 56_000.0)), (1.0,)
    )
    dense, sparse = (each.saved_seconds for each in result.origins or ())
    # 512 * 500 - 56000 = 200000 ns; 500 - 56000 = -55500 ns
    assert dense == pytest.approx((0.7 * 200e-6 + 520e-9, 200e-6 + 2600e-9))
    assert sparse == pytest.approx((-55.5e-6 + 520e-9, 0.7 * -55.5e-6 + 2600e-9))


@pytest.mark.parametrize("kind", ["file", "stack"])
def test_memory_that_stays_on_base_pages_saves_nothing(kind: str) -> None:
    result = with_forecast(simulated(origin(kind)), geometry(), (1.0,))
    assert (result.origins or ())[0].saved_seconds == (0.0, 0.0)
    assert result.forecast is not None and result.forecast.time_ratio == (1.0, 1.0)


def test_without_costs_nothing_is_forecast() -> None:
    before = simulated(origin())
    assert with_forecast(before, geometry(costs=False), (1.0,)) == before


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that writes geometries as pw-tlb does, with these costs; a checkout whose state is empty."""
    (tmp_path / ".pagewise").mkdir(mode=0o700)
    monkeypatch.setenv("PAGEWISE_ROOT", str(tmp_path))
    monkeypatch.setenv("FAKE_TLB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("FAKE_TLB_COSTS", "12,90,11,13")
    return Path(__file__).with_name("fake_tlb.py")


def runs(folder: Path) -> list[str]:
    return (folder / "runs").read_text().splitlines()


def test_the_geometry_of_the_node_is_measured_once(tmp_path: Path, kernel: Path) -> None:
    console = Console(quiet=True)
    first = node.node_geometry(kernel, console)
    assert runs(tmp_path) == ["none"] * 3 + ["thp"] * 3
    # The medians of 12, 90, 11 and of 13, 12, 90.
    assert first.miss_costs("base") == (12.0, 0.0) and first.miss_costs("huge") == (13.0, 0.0)
    assert first.pages.base_fault_ns is not None and first.pages.base_fault_ns > 0
    assert node.node_geometry(None, console) == first and len(runs(tmp_path)) == 6
    (file,) = (tmp_path / ".pagewise" / "geometry").iterdir()
    assert file == node.kept_file()


def test_without_huge_pages_the_node_has_the_tlbs_of_base_pages(
    tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TLB_WITHOUT", "thp")
    actual = node.node_geometry(kernel, Console(quiet=True))
    assert runs(tmp_path) == ["none"] * 3 + ["thp"]
    assert [tlb.pages for tlb in actual.tlbs] == ["base"] and not actual.has_costs


def test_a_node_that_cannot_be_measured_is_refused_and_nothing_is_kept(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SelectionError):
        node.node_geometry(None, Console(quiet=True))
    monkeypatch.setenv("FAKE_TLB_WITHOUT", "none")
    with pytest.raises(RefusedError):
        node.node_geometry(kernel, Console(quiet=True))
    assert not node.kept_file().exists()


def test_faults_on_huge_pages_are_divided_from_those_on_base_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 MiB: 16384 base pages in 8 ms are 488 ns each; 31 huge pages and 512 base pages in 2.25 ms."""
    probed = {mmap.MADV_NOHUGEPAGE: (8e-3, 16384), mmap.MADV_HUGEPAGE: (2.25e-3, 31 + 512)}
    monkeypatch.setattr(node, "_probe", lambda _, advice: probed[advice])
    base, huge = node.fault_costs(4096, 1 << 21)
    assert base == pytest.approx(8e6 / 16384)
    assert huge == pytest.approx((2.25e6 - 512 * 8e6 / 16384) / 31)
    probed[mmap.MADV_HUGEPAGE] = probed[mmap.MADV_NOHUGEPAGE]
    assert node.fault_costs(4096, 1 << 21) == (base, None)
