"""Sectors of simulated caches: against a naive partitioned cache, cases of the guide, and what is refused."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tracing import needs_tracer

from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.result import read_result
from pagewise.report.views import report_of
from pagewise.workloads.simulation.geometry import Geometry, Sector, find_geometry
from pagewise.workloads.simulation.run import UNCHANGED
from scripts import called
from test_model import Naive, counts, small
from test_simulation import simulate

LINE = 256


class Partitioned(Naive):
    """The same with ways by sector: a full one replaces its own oldest line, others one of too many."""

    def __init__(
        self, geometry: Geometry, memory: list[tuple[range, int]], ways: dict[int, list[int]]
    ) -> None:
        super().__init__(geometry, set())
        self.memory, self.ways = memory, ways

    def sector(self, level: int, line: int) -> int:
        length = self.data["caches"][0]["line_bytes"]
        first, end = line * length, (line + 1) * length
        of = next((one for of, one in self.memory if of.start < end and first < of.stop), 0)
        return of if of < len(self.ways[level]) else 0

    def put(self, level: int, line: int, modified: bool) -> None:
        lines, ways = self.set_of(level, line), self.ways.get(level)
        if ways is not None and len(lines) == sum(ways):
            sectors = [self.sector(level, old) for old in lines]
            own = self.sector(level, line)
            over = [one for one, n in enumerate(ways) if sectors.count(one) > n]
            full = sectors.count(own) >= ways[own]
            out = next(
                old for old, one in zip(lines, sectors, strict=True) if (one == own if full else one in over)
            )
            lines.remove(out)
            lines.insert(0, out)
        super().put(level, line, modified)


MACHINES = {
    "two levels": (["1 1024 4 64 none", "2 8192 8 64 none"], {0: [1, 1, 2], 1: [3, 5]}),
    "inclusive": (["1 512 2 64 none", "2 4096 8 64 inclusive"], {1: [2, 6]}),
    "victim": (["1 512 2 64 none", "2 2048 4 64 victim"], {0: [1, 1], 1: [1, 1, 1, 1]}),
}


def trace_of(seed: int) -> Iterator[tuple[str, int, int]]:
    """Sweeps over four arrays of 16 KiB, of which some are short and come again."""
    dice = random.Random(seed)
    for _ in range(600):
        at = dice.randrange(4) * 16384 + dice.choice((0, 0, dice.randrange(12000)))
        kind, stride = dice.choice("rrw"), dice.choice((8, 64, 192))
        for step in range(dice.randrange(1, 20)):
            yield kind, at + step * stride, 8


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", MACHINES)
def test_sectors_count_as_naive_ones(name: str, seed: int, replay: Path, tmp_path: Path) -> None:
    caches, ways = MACHINES[name]
    machine = small(["1 4 4 lru both"], caches)
    memory = [(range(i * 16384, i * 16384 + 12000), i) for i in (1, 2, 3)]
    lines = "".join(
        f"sector {level + 1} {one} {n}\n" for level, of in ways.items() for one, n in enumerate(of) if one
    )
    naive = Partitioned(machine, memory, ways)
    trace = [f"{one} {of.start:x} {of.stop - of.start}" for of, one in memory]
    for kind, address, size in trace_of(seed):
        naive.access(address, size, kind == "w")
        trace.append(f"{kind} {address:x} {size}")
    counted = counts(replay, machine.lines() + lines, "\n".join(trace) + "\n", tmp_path)
    naive.counts["HUGE_PAGE_LOOKUPS"] = counted["HUGE_PAGE_LOOKUPS"]
    assert {key: counted[key] for key in naive.counts} == naive.counts
    whole = counts(replay, machine.lines(), "\n".join(trace) + "\n", tmp_path)
    assert whole != counted, "the sectors have an effect"


def line_counts(replay: Path, folder: Path, trace: list[int], *arrays: tuple[str, str]) -> dict[str, int]:
    """Counts of reads of these lines on A64FX, with sectors of these arrays."""
    lines = find_geometry("a64fx").lines([Sector.parse(sector) for _, sector in arrays])
    text = [*(array for array, _ in arrays), *(f"r {at:x} 8" for at in trace)]
    return counts(replay, lines, "\n".join(text) + "\n", folder)


def test_a_reused_array_survives_streams_only_in_its_sector(replay: Path, tmp_path: Path) -> None:
    """Case 1 of the guide by lines: 4.5 MiB are read again after 8 MiB of streams, when LRU has lost them."""
    reused, streamed = range(0, 9 << 19, LINE), range(1 << 30, (1 << 30) + (8 << 20), LINE)
    trace = [*reused, *streamed, *reused]
    whole = line_counts(replay, tmp_path, trace)
    apart = line_counts(replay, tmp_path, trace, (f"1 0 {9 << 19}", "b:L2=10"))
    assert whole["L2D_CACHE_REFILL"] == len(reused) * 2 + len(streamed)
    assert apart["L2D_CACHE_REFILL"] == len(reused) + len(streamed)


def test_a_sliver_of_b_stays_in_l1_only_in_its_sector(replay: Path, tmp_path: Path) -> None:
    """Case 3 of the guide by lines: 30 KiB of b between 48 KiB of a; two ways of L1 for b, one for a."""
    b, a = range(0, 30 << 10, LINE), range(1 << 20, (1 << 20) + 10 * (48 << 10), LINE)
    tiles = [a[i * 192 : (i + 1) * 192] for i in range(10)]
    trace = [at for tile in tiles for at in (*b, *tile)]
    whole = line_counts(replay, tmp_path, trace)
    arrays = ((f"1 0 {30 << 10}", "b:L1=2"), (f"2 {1 << 20:x} {len(a) * LINE}", "a:L1=1"))
    apart = line_counts(replay, tmp_path, trace, *arrays)
    # In 56 of 64 sets two lines of b and three of a take turns in four ways: b misses in each tile.
    assert whole["L1D_CACHE_REFILL"] == len(a) + len(b) + 9 * 56 * 2
    assert apart["L1D_CACHE_REFILL"] == len(a) + len(b)


# Texts and what is refused


def test_a_sector_is_read_and_written_back() -> None:
    assert Sector.parse("a,c:L2=4,L1=1") == Sector(("a", "c"), ((1, 1), (2, 4)))
    assert Sector.parse("b:L2=10").text == "b:L2=10"
    lines = find_geometry("a64fx").lines([Sector.parse("b,c:L1=2"), Sector.parse("a:L1=1")])
    assert lines.endswith("sector 1 1 2\nsector 1 2 1\narray b 1\narray c 1\narray a 2\n")


@pytest.mark.parametrize("text", ["b", "b:", ":L2=1", "b:L2", "b:L4=1", "b:L2=1,L2=2", "b c:L2=1", "b:L2=x"])
def test_a_malformed_sector_is_refused(text: str) -> None:
    with pytest.raises(SelectionError) as refused:
        Sector.parse(text)
    assert refused.value.where == "--sector"


@pytest.mark.parametrize(
    ("geometry", "texts"),
    [
        ("zen4", "b:L2=1"),
        ("a64fx", "b:L3=1"),
        ("a64fx", "b:L2=16"),
        ("a64fx", "b:L2=0"),
        ("a64fx", "b:L2=4 a:L2=4"),
        ("a64fx", "b:L1=2 a:L1=2"),
        ("a64fx", "b:L1=1 b:L2=1"),
    ],
)
def test_sectors_that_the_machine_does_not_have_are_refused(geometry: str, texts: str) -> None:
    with pytest.raises(SelectionError) as refused:
        find_geometry(geometry).check([Sector.parse(text) for text in texts.split()])
    assert refused.value.where == "--sector"


@pytest.mark.parametrize(
    "line",
    ["sector 3 1 1", "sector 1 0 1", "sector 1 1 4", "sector 1 1 0", "array b 4", 2 * "sector 1 1 1\n"],
)
def test_the_model_refuses_malformed_sectors(line: str, replay: Path, tmp_path: Path) -> None:
    (tmp_path / "geometry").write_text(find_geometry("a64fx").lines() + line.strip() + "\n")
    done = called([replay, tmp_path / "geometry"], input="")
    number = len((tmp_path / "geometry").read_text().splitlines())
    assert done.returncode == 2 and str(number) in re.findall(r"\d+", done.stderr)


# The command


@pytest.mark.long
@needs_tracer
def test_the_command_simulates_without_and_with_sectors(build: Path, tmp_path: Path) -> None:
    """The program marks its pages as an array."""
    walk = ("--", build / "walk", "cyclic", "512", "2048")
    done = simulate(tmp_path / "results", "--build", build, "--sector", "pages:L2=12,L1=1", *walk)
    assert done.exception is None and done.return_value == 0, done.output
    (folder,) = (tmp_path / "results").iterdir()
    result = read_result(folder)
    names = [record.run.module for record in result.records]
    assert names[0] == UNCHANGED != names[1] and names[1].startswith(UNCHANGED)
    assert "pages:L1=1,L2=12" in names[1]
    assert [cell.measured.sector for cell in result.subjects[0].cells] == ["", "pages:L1=1,L2=12"]
    assert [row.policy for row in report_of(result).data.policies] == names
    lookups = [record.simulated.counts["L1D_CACHE"] for record in result.records]
    assert lookups[0] == pytest.approx(lookups[1], abs=50)


@pytest.mark.long
@needs_tracer
def test_an_array_that_the_program_does_not_have_is_a_fault(build: Path, tmp_path: Path) -> None:
    walk = ("--", build / "walk", "cyclic", "8", "8")
    done = simulate(tmp_path / "results", "--build", build, "--sector", "nothing:L2=10", *walk)
    assert done.return_value == 1
    (folder,) = (tmp_path / "results").iterdir()
    first, second = read_result(folder).records
    assert first.status == "ok" and second.status == "failed"
    assert second.failure.exit_code == RefusedError.exit_code and "nothing" in second.failure.message
