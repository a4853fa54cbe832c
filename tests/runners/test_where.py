"""`pagewise where`: programs whose memory, and page walks on a small TLB, are known by construction."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tracing import needs_tracer

from json_schema import faults
from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.manifest_parts import Origin, Simulated, without_arguments
from pagewise.core.result import read_result
from pagewise.core.structure import from_data
from pagewise.workloads.simulation import tracer
from pagewise.workloads.simulation.origins import MOST, name_origins
from querying import invoked
from scripts import called
from simulator import compiled
from stage import csv_rows

SOURCES = Path(__file__).with_name("origins")
# A TLB of 8 pages: a program that touches more of them in turn misses each time.
TINY = "geometry tiny\npages 4096 2097152\ntlb 1 8 8 lru both\ncache 1 32768 8 64 none\n"
SMALL = TINY.replace("8 8 lru", "32 32 lru")
PAGE = 4096


Simulate: TypeAlias = Callable[..., Simulated]


@pytest.fixture(scope="module")
def simulate(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Simulate:
    """A function that simulates a program on the TLB."""

    def simulated(program: Path, *arguments: str, geometry: str = TINY, origins: bool = True) -> Simulated:
        traced = tracer.trace(
            tracer.find_tracer("x86_64"),
            build / "model" / "libpagewise-model.so",
            geometry,
            tracer.ProgramRun(
                tracer.find_program(str(program)), arguments, tmp_path_factory.mktemp("simulated")
            ),
            records=False,
            without_thp=True,
            preload=build / "model" / "libpagewise-preload.so" if origins else None,
        )
        return from_data(Simulated, {**traced.simulated, "tool": "qemu"}, ignored="null")

    return simulated


def walks(origins: Sequence[Origin]) -> int:
    return sum(origin.counts["PAGE_WALKS"] for origin in origins)


def of(result: Simulated, name: str) -> Origin:
    """The only origin of this name."""
    (origin,) = [origin for origin in result.origins or () if origin.name == name]
    return origin


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("known") / "known", "-g", SOURCES / "known.c")


@pytest.fixture(scope="module")
def of_known(simulate: Simulate, known: Path) -> Simulated:
    return simulate(known)


@needs_tracer
def test_each_origin_has_its_walks_faults_and_size(of_known: Simulated) -> None:
    """Functions of the program, not xmalloc, which allocates for them; the array by its symbol."""
    for name, pages, times in (
        ("repeated", 64, 100),
        ("sequential", 1000, 1),
        ("reserved", 40, 50),
        ("table", 128, 10),
        ("first_use", 16, 100),
        ("second_use", 16, 50),
        ("variable", 32, 200),
    ):
        origin = of(of_known, name)
        # Other data may have touched the first page before.
        assert pages * times - 1 <= walks([origin]) <= pages * times + 6 + times // 4, name
        assert pages * PAGE <= origin.bytes <= (pages + 1) * PAGE, name
        if name not in ("second_use", "variable"):
            assert pages - 1 <= origin.page_faults <= pages + 2, name
    table, repeated = of(of_known, "table"), of(of_known, "repeated")
    assert (table.kind, table.place) == ("static", "known")
    assert (repeated.place or "").startswith("known.c:")
    assert (repeated.caller or "").startswith("main known.c:")
    assert of_known.sites and of_known.whole and not of_known.child_processes
    # All misses have an origin.
    assert walks(of_known.origins or ()) == pytest.approx(of_known.counts["PAGE_WALKS"], abs=5)


@needs_tracer
def test_one_run_has_the_misses_on_both_page_sizes(simulate: Simulate, tmp_path: Path) -> None:
    """On a TLB of 8 pages, 12 huge pages in turn miss each time; two of them once."""
    program = compiled(tmp_path / "pages", "-g", SOURCES / "pages.c")
    result = simulate(program, geometry=TINY + "distance 8\ndistance 256\n")
    for name, accesses, on_huge, pattern, distances in (
        ("far_apart", 50 * 12, 50 * 12, "independent", (49 * 12, 0)),
        ("dense", 10 * 1000, 2, "adjacent", (0, 9 * 999)),
        ("scattered", 10 * 1000, 2, "independent", (0, 9 * 1000)),
        ("chain", 100 + 2000, 1, "dependent", (2000, 0)),
        ("table", 20 * 12, 20 * 12, "independent", (19 * 12, 0)),
    ):
        counts = of(result, name).counts
        assert accesses <= counts["PAGE_WALKS"] <= accesses + 4, name
        # The 8 entries also have to hold the stack and the program.
        assert on_huge <= counts["PAGE_WALKS_ON_HUGE"] <= on_huge + 2, name
        # First accesses are page faults. The compiler may unroll a loop: each of its instructions then
        # accesses each second page.
        distant = of(result, name).distant
        for accessed, least in zip(distant[pattern], distances, strict=True):
            assert least // 2 <= accessed <= least + 10, name
        assert sum(distant[pattern]) >= 0.5 * sum(map(sum, distant.values()))
    for count in ("L1D_TLB_REFILL_ON_HUGE", "PAGE_WALKS_ON_HUGE"):
        assert sum(origin.counts[count] for origin in result.origins or ()) == result.counts[count]


@needs_tracer
def test_without_entries_for_huge_pages_base_pages_are_counted_alone(simulate: Simulate, known: Path) -> None:
    result = simulate(known, geometry=TINY.replace("both", "base"))
    assert "PAGE_WALKS_ON_HUGE" not in {*result.counts, *of(result, "table").counts}
    assert walks([of(result, "table")]) >= 1279


@needs_tracer
def test_memory_that_is_reused_grows_or_is_small_belongs_to_its_site(of_known: Simulated) -> None:
    first, second = of(of_known, "first_use"), of(of_known, "second_use")
    assert first.begin < first.end <= second.begin < second.end
    assert first.allocations == second.allocations == 1
    grown = [origin for origin in of_known.origins or () if origin.name == "grown"]
    before, after = sorted(grown, key=lambda each: each.bytes)
    assert before.bytes < 6 * PAGE and after.bytes >= 200 * PAGE
    assert 4000 <= walks([after]) <= 4010 and walks([before]) <= 20
    nodes = of(of_known, "nodes")
    assert nodes.allocations == 200 and 200 * (PAGE // 2 + 8) <= nodes.bytes <= 101 * PAGE + 200 * 32
    # 200 nodes of 2064 bytes on 101 pages, 50 times.
    assert 50 * 100 <= walks([nodes]) <= 50 * 101 + 500


@needs_tracer
def test_identities_are_equal_in_each_run(simulate: Simulate, known: Path, of_known: Simulated) -> None:
    """Addresses are not: they are drawn for each process."""
    one, other = (
        {(origin.kind, origin.name, origin.identity) for origin in result.origins or ()}
        for result in (of_known, simulate(known))
    )
    mine = {origin for origin in one if origin[0] in ("allocation", "static")}
    assert mine <= other and len(mine) >= 8
    build_id = called(["readelf", "-n", known], check=True).stdout
    site = next(identity for _, name, identity in mine if name == "repeated")
    assert site[0].partition("+")[0] in build_id and len(site) == 2


@needs_tracer
def test_the_preloaded_library_changes_neither_counts_nor_natively_the_program(
    build: Path, simulate: Simulate, known: Path
) -> None:
    with_library, alone = (
        simulate(known, geometry=SMALL, origins=origins).counts["PAGE_WALKS"] for origins in (True, False)
    )
    assert with_library == pytest.approx(alone, rel=0.02)
    library = {"LD_PRELOAD": str(build / "model" / "libpagewise-preload.so")}
    for program in (["sort", SOURCES / "known.c"], ["sh", "-c", "sed p /etc/passwd | sort"]):
        outputs = [
            called(program, check=True, env={"PATH": "/usr/bin:/bin", **more}).stdout
            for more in (library, {})
        ]
        assert outputs[0] == outputs[1] != ""


def built(made: Path, compiler: str, source: str, *options: str) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    called([compiler, "-g", "-march=x86-64-v2", *options, SOURCES / source, "-o", made], check=True)
    return made


@needs_tracer
@pytest.mark.parametrize("optimized", [pytest.param("-O0", marks=pytest.mark.long), "-O2"])
def test_the_standard_library_of_cpp_allocates_for_its_callers(
    simulate: Simulate, tmp_path: Path, optimized: str
) -> None:
    result = simulate(built(tmp_path / "vectors", "g++", "vectors.cpp", optimized))
    origins = {origin.name.removesuffix("()"): origin for origin in result.origins or ()}
    # The most that is due to growing and to balancing the tree.
    for name, pages, least, more in (
        ("fill_vector", 100, 2000, 250),
        ("grow_vector", 60, 1200, 350),
        ("fill_map", 51, 1000, 2000),
    ):
        assert origins[name].kind == "allocation" and origins[name].bytes >= pages * PAGE, name
        assert least <= walks([origins[name]]) <= least + more, name
        assert (origins[name].caller or "").startswith("main"), name
    assert origins["fill_map"].allocations == 100


@needs_tracer
def test_allocatable_and_static_arrays_of_fortran_are_named(simulate: Simulate, tmp_path: Path) -> None:
    options = ("-O1", f"-J{tmp_path}")
    program = built(tmp_path / "allocatables", "gfortran", "allocatables.f90", *options)
    result = simulate(program)
    allocated = {(origin.name, origin.place): walks([origin]) for origin in result.origins or ()}
    for line, least in (9, 2000), (10, 1000):
        assert least <= allocated["fields::allocate_fields", f"allocatables.f90:{line}"] <= least + 10
    lookup = of(result, "fields::lookup")
    assert lookup.kind == "static" and 1499 <= walks([lookup]) <= 1510


@needs_tracer
def test_without_sites_mappings_are_listed(simulate: Simulate, tmp_path: Path) -> None:
    program = compiled(tmp_path / "static", "-g", "-static", SOURCES / "known.c")
    result = simulate(program)
    assert result.sites is False
    (repeated,) = [origin for origin in result.origins or () if origin.identity == (str(65 * PAGE),)]
    assert repeated.kind == "anonymous" and 6400 <= walks([repeated]) <= 6500
    assert of(result, "table").kind == "static" and 1279 <= walks([of(result, "table")]) <= 1290


@needs_tracer
@pytest.mark.parametrize("forks", [(), ("forks",)])
def test_all_threads_are_simulated_each_with_one_core(
    simulate: Simulate, tmp_path: Path, forks: tuple[str, ...]
) -> None:
    """Also where they change their mappings at once, and while children start."""
    program = compiled(tmp_path / "threads", "-g", "-pthread", SOURCES / "threads.c")
    result = simulate(program, *forks)
    for name, allocations, page_faults in ("work", 4, 4 * 64), ("map", 4 * 100, 4 * 6400):
        origin = of(result, name)
        assert origin.allocations == allocations
        # One thread may touch memory next to that which another maps then.
        assert page_faults <= origin.page_faults <= page_faults + 4
        assert 4 * 6400 <= walks([origin]) <= 4 * 6500
    assert not result.accesses_of_other_threads and result.child_processes == 100 * len(forks)


@needs_tracer
def test_children_are_reported_and_do_not_replace_the_parents_counts(simulate: Simulate, known: Path) -> None:
    result = simulate(known, "forks")
    assert result.child_processes == 1
    assert not any(origin.name == "table" for origin in result.origins or ())


@pytest.mark.long
@needs_tracer
def test_arrays_of_numpy_are_named(simulate: Simulate) -> None:
    pytest.importorskip("numpy")
    program = "import numpy as n; a = n.zeros(3_000_000); print(a[n.arange(0, a.size, 512)].sum())"
    result = simulate(Path(sys.executable), "-c", program)
    arrays = [origin for origin in result.origins or () if "PyArray" in origin.name]
    assert max(origin.bytes for origin in arrays) >= 24_000_000


def located(build: Path, folder: Path, *more: object) -> Any:
    return invoked("where", "--output", folder, "--build", build, "--geometry", "zen4", *more)


@needs_tracer
def test_the_command_ranks_origins_and_keeps_them(build: Path, tmp_path: Path, known: Path) -> None:
    done = located(build, tmp_path, "--json", "--", known)
    assert done.exception is None and done.return_value == 0, done.output
    reported = json.loads(done.stdout)
    assert faults("simulated", reported) == []
    (policy,) = reported["policies"]
    folder = Path(reported["folder"])
    ranked = [origin["counts"]["PAGE_WALKS"] for origin in policy["simulated"]["origins"]]
    assert ranked == sorted(ranked, reverse=True)
    rows = csv_rows(folder / "origins.csv")
    assert [int(row["page_walks"]) for row in rows] == ranked
    assert {"table", "repeated"} <= {row["origin"] for row in rows}
    lines = [line.split() for line in (folder / "selection.txt").read_text().splitlines()[1:]]
    assert {words[0] for words in lines} == {"module", "wrapper", "allocation", "static"}
    selected = {words[words.index("#") + 1] for words in lines if "#" in words}
    assert {"table", "repeated"} <= selected
    (record,) = read_result(folder).records
    assert record.simulated is not None and len(record.simulated.origins or ()) == len(rows)
    assert (folder / "report.html").exists() and folder.name.endswith("-where-known")


@needs_tracer
def test_a_program_that_fails_has_no_origins(build: Path, tmp_path: Path, known: Path) -> None:
    done = located(build, tmp_path, "--", known, "fails")
    assert done.return_value == 1
    (folder,) = tmp_path.iterdir()
    (record,) = read_result(folder).records
    assert record.status == "failed" and record.failure is not None


def test_missing_parts_are_reported(
    build: Path, tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(located(tmp_path, tmp_path, "--", known).exception, SelectionError)
    assert located(build, tmp_path).exception is not None
    monkeypatch.setenv("PATH", str(tmp_path))
    done = located(build, tmp_path, "--", known)
    assert isinstance(done.exception, SetupError) and done.exception.exit_code == 3
    assert done.exception.where is None and "qemu-user" in done.exception.remedy


def test_origins_after_the_first_are_summed() -> None:
    place = {"module": "", "frames": [{"module": "", "offset": 0}]}
    numbers = {"bytes": 16, "allocations": 1, "begin": 0, "end": 9, "page_faults": 1}
    reported = [
        {"kind": "anonymous", "name": str(i), **place, **numbers}
        | {"counts": {"L1D_TLB_REFILL": 3, "PAGE_WALKS": i}, "distant": {"independent": [i, 1]}}
        for i in range(MOST + 5)
    ]
    origins = name_origins(reported)
    assert len(origins) == MOST + 1 and origins[-1].kind == "others"
    assert walks(origins) == sum(range(MOST + 5)) and origins[-1].bytes == 5 * 16
    assert sum(origin.distant["independent"][0] for origin in origins) == sum(range(MOST + 5))
    assert origins[-1].distant["independent"][1] == 5


def test_names_without_parameters_and_template_arguments() -> None:
    shorter = {
        "table": "table",
        "std::vector<int, std::allocator<int> >::push_back(int const&)": "std::vector::push_back",
        "(anonymous namespace)::add((anonymous namespace)::T)": "{anonymous}::add",
        "ggc_alloc(unsigned long, void (*)(void*))": "ggc_alloc",
        "<anonymous>": "<anonymous>",
    }
    assert {name: without_arguments(name) for name in shorter} == shorter
