"""Whole runs of pw-ember: against exact solutions, for symmetry, and equal to the last bit however run."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Ember

h5py = pytest.importorskip("h5py", reason="make setup-tests installs h5py")

pytestmark = pytest.mark.long
USAGE, UNAVAILABLE = 2, 3
BLAST = ("--problem", "sedov", "--memory", "64MiB", "--lowest-level", "1", "--highest-level", "2")


def order(coarse: float, fine: float) -> float:
    return math.log2(coarse / fine)


SPLIT = ("--scheme", "flash")
DISC = (
    "--problem",
    "sedov",
    "--dims",
    "2",
    "--geometry",
    "cylindrical",
    "--roots-y",
    "2",
    "--highest-level",
    "3",
    "--memory",
    "32MiB",
)

# ---- exact solutions


def test_the_smooth_wave_converges_with_second_order(ember: Ember) -> None:
    for dims, levels in (("2", (2, 3)), ("3", (1, 2))):
        coarse, fine = (
            ember.error(
                "--problem",
                "wave",
                "--dims",
                dims,
                "--uniform",
                "--highest-level",
                str(level),
                "--end-time",
                "0.25",
            )
            for level in levels
        )
        assert order(coarse, fine) >= 1.9, (
            f"{dims}-d: {coarse} at level {levels[0]}, {fine} at level {levels[1]}"
        )


def test_the_shock_tube_matches_the_exact_riemann_solver(ember: Ember) -> None:
    def tube(direction: str, level: int) -> float:
        return ember.error(
            *("--problem", "sod", "--dims", "3", "--uniform", "--highest-level", str(level)),
            "--sod-direction",
            direction,
        )

    errors = {direction: tube(direction, 1) for direction in "xyz"}
    assert max(errors.values()) <= min(errors.values()) * (1 + 1e-9), errors
    assert errors["x"] < 0.02
    assert order(errors["x"], tube("x", 2)) > 0.7


OCTANT = ("--sedov-octant", *(word for axis in "xyz" for word in (f"--upper-{axis}", "0.5")))
PLANE = ("--dims", "2", *OCTANT[:-2])


@pytest.mark.parametrize(
    "mesh",
    [OCTANT, PLANE, ("--dims", "2", "--geometry", "cylindrical", "--roots-y", "2"), (*PLANE, "--gamma", "2")],
)
def test_the_shock_of_the_blast_is_where_sedov_s_solution_has_it(ember: Ember, mesh: tuple[str, ...]) -> None:
    levels = ("--lowest-level", "0", "--highest-level", "2")
    blast = ("--problem", "sedov", "--end-time", "0.04", "--errors", "--memory", "128MiB")
    metrics = ember.run(*blast, *mesh, *levels)["metrics"]
    assert metrics["shock_radius"] == pytest.approx(metrics["shock_radius_exact"], abs=0.5 / 64)


def test_split_sweeps_follow_the_exact_solutions(ember: Ember) -> None:
    wave = ("--problem", "wave", "--dims", "2", "--uniform", "--end-time", "0.25", *SPLIT, "--highest-level")
    coarse, fine = (ember.error(*wave, level) for level in "12")
    assert order(coarse, fine) > 2, (coarse, fine)
    tube = ("--problem", "sod", "--dims", "2", "--uniform", "--highest-level", "2")
    split = ember.error(*tube, *SPLIT)
    assert split < 0.6 * ember.error(*tube)
    for size, level in (("8", "3"), ("32", "1")):
        other = ember.error(*tube, *SPLIT, "--block-size", size, "--highest-level", level)
        assert other == pytest.approx(split, rel=1e-9), size
    ball = ember.run(*DISC, *SPLIT, "--highest-level", "2", "--lowest-level", "0", "--end-time", "0.04")
    assert [check["name"] for check in ball["validation"]["checks"]] == ["conservation", "exact"]


# ---- conservation


def test_momentum_is_kept_while_the_mesh_adapts(ember: Ember) -> None:
    walls = tuple(word for axis in "xy" for word in (f"--boundary-{axis}", "periodic"))
    levels = ("--lowest-level", "1", "--highest-level", "4")
    record = ember.run(
        *("--problem", "sod", "--dims", "2", *walls, *levels, "--end-time", "0.1", "--log", "tube.csv")
    )
    names, *rows = (ember.folder / "tube.csv").read_text(encoding="utf-8").splitlines()
    table = [dict(zip(names.split(","), row.split(","), strict=True)) for row in rows]
    assert len({row["blocks"] for row in table}) > 1, "the mesh did not adapt"
    for name in ("momentum_1", "momentum_2", "momentum_3"):
        assert max(abs(float(row[name])) for row in table) < 1e-13, name
    assert record["validation"]["checks"][0]["error"] < 1e-13


# ---- symmetry


def test_the_blast_keeps_its_symmetry(ember: Ember) -> None:
    ember.run(
        "--problem",
        "sedov",
        "--memory",
        "64MiB",
        "--uniform",
        "--highest-level",
        "1",
        "--steps",
        "30",
        "--plot-interval",
        "30",
        "--plot-precision",
        "double",
    )
    with h5py.File(ember.folder / "sedov_hdf5_plt_cnt_0001") as file:
        cells = assemble(file)
    largest = abs(cells).max()
    assert cells.std() > 0.1
    for axis in range(3):
        assert abs(cells - cells[(slice(None),) * axis + (slice(None, None, -1),)]).max() <= 1e-12 * largest
    for turned in ((1, 0, 2), (0, 2, 1), (2, 1, 0)):
        assert abs(cells - cells.transpose(turned)).max() <= 1e-11 * largest


def assemble(file: Any) -> Any:
    """The densities of a uniform mesh of blocks as one array."""
    import numpy as np

    leaf = file["node type"][()] == 1
    boxes = file["bounding box"][()][leaf]
    data = file["dens"][()][leaf]
    n = data.shape[1]
    blocks = round(1 / (boxes[0, 0, 1] - boxes[0, 0, 0]))
    whole = np.empty((n * blocks,) * 3)
    for box, values in zip(boxes, data, strict=True):
        x, y, z = (round(low * blocks) * n for low in box[:, 0])
        whole[z : z + n, y : y + n, x : x + n] = values
    return whole


def test_split_sweeps_keep_mirror_images_and_walls(ember: Ember) -> None:
    walls = tuple(word for axis in "xy" for word in (f"--boundary-{axis}", "reflecting"))
    mesh = ("--dims", "2", "--uniform", "--highest-level", "1", "--end-time", "0.3", "--sedov-pressure", "1")
    plot = ("--plot-interval", "1000", "--plot-precision", "double")
    record = ember.run("--problem", "sedov", *SPLIT, *mesh, *walls, *plot)
    assert record["validation"]["checks"][0]["error"] < 1e-14 * record["metrics"]["steps"]
    with h5py.File(max(ember.folder.glob("*_hdf5_plt_cnt_*"))) as opened:
        blocks = opened["dens"][()][opened["node type"][()] == 1]
    low, high = (blocks[i].reshape(16, 16) for i in (0, 1))
    assert low.std() > 0.01
    assert (low == high[:, ::-1]).all()
    assert (low == blocks[2].reshape(16, 16)[::-1]).all()


# ---- the same to the last bit


references: dict[Path, bytes] = {}


@pytest.fixture
def reference(ember: Ember) -> bytes:
    if ember.program not in references:
        references[ember.program] = ember.last_zones(*BLAST, "--steps", "20")
    return references[ember.program]


@pytest.mark.parametrize(
    "other",
    [
        ("--layout", "soa", "--padding-variables", "3", "--parents", "data"),
        ("--threads", "2", "--padding-variables", "2", "--allocation", "static"),
        ("--pages", "none", "--memory", "96MiB"),
    ],
)
def test_neither_layout_nor_threads_nor_memory_nor_padding_change_a_bit(
    ember: Ember, reference: bytes, other: tuple[str, ...]
) -> None:
    assert ember.last_zones(*BLAST, "--steps", "20", *other) == reference


def test_split_sweeps_are_the_same_to_the_last_bit(ember: Ember) -> None:
    small = (*DISC, *SPLIT, "--block-size", "8")
    reference = ember.last_zones(*small, "--steps", "9")
    others = ("--layout", "soa", "--threads", "2", "--padding-variables", "3", "--parents", "none")
    assert ember.last_zones(*small, "--steps", "9", *others) == reference
    if ember.runs_on_ranks():
        assert ember.last_zones(*small, "--steps", "9", ranks=3) == reference


def test_split_sweeps_without_their_physics_are_refused(ember: Ember) -> None:
    for problem in ("flame", "snia2d"):
        done = ember.attempt("--problem", problem, *SPLIT, "--limiter", "mc")
        assert done.returncode == USAGE
        assert all(named in done.stderr for named in (problem, "planes", "limiter", "flash"))


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_change_no_bit(ember: Ember, reference: bytes, ranks: int) -> None:
    if not ember.runs_on_ranks():
        pytest.skip("this build has no MPI, or mpiexec is not of its MPI")
    assert ember.last_zones(*BLAST, "--steps", "20", ranks=ranks) == reference


# ---- what goes wrong


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--memory", "4MiB", "--uniform", "--highest-level", "2"), "--memory"),
        (("--sedov-radius", "100"), "--sedov-radius"),
        (("--problem", "snia2d", "--errors"), "errors"),
    ],
)
def test_a_run_that_cannot_begin_is_refused(ember: Ember, arguments: tuple[str, ...], named: str) -> None:
    done = ember.attempt("--problem", "sedov", *arguments)
    assert done.returncode == USAGE
    assert named in done.stderr


def test_the_container_has_the_blocks_that_are_asked_for(ember: Ember) -> None:
    refined = ("--problem", "sedov", "--lowest-level", "1", "--highest-level", "1", "--steps", "1")
    record = ember.run(*refined, "--max-blocks", "8", "--padding-variables", "4", "--allocation", "static")
    assert record["sizes"]["working_set_bytes"] == 8 * 12 * 20**3 * 8
    for arguments, status in (
        (("--max-blocks", "7"), USAGE),
        (("--max-blocks", "8", "--parents", "data"), USAGE),
        (("--max-blocks", "1000000", "--allocation", "static"), USAGE),
        (("--max-blocks", "8", "--allocation", "static", "--pages", "hugetlbfs"), UNAVAILABLE),
    ):
        done = ember.attempt(*refined, *arguments)
        assert done.returncode == status, done.stdout + done.stderr
        assert "remedy" in done.stderr


def test_the_log_has_a_row_a_step(ember: Ember) -> None:
    ember.run(*BLAST, "--steps", "4", "--log", "blast.csv")
    names, *rows = (ember.folder / "blast.csv").read_text(encoding="utf-8").splitlines()
    assert [row.split(",")[0] for row in rows] == ["1", "2", "3", "4"]
    last = dict(zip(names.split(","), rows[-1].split(","), strict=True))
    assert float(last["hydro_s"]) > 0
    assert float(last["mass"]) == pytest.approx(1, rel=1e-12)
    # That of the explosion and of the gas around.
    assert float(last["energy"]) == pytest.approx(1 + 1e-5 / 0.4, rel=1e-12)


def test_the_record_is_valid(ember: Ember) -> None:
    module = pytest.importorskip("pagewise.core.record")
    record = ember.run("--problem", "sedov", "--memory", "256MiB", "--steps", "3")
    assert module.parse_record(json.dumps(record).encode())[1] is None
    assert len(record["seconds"]["repetitions"]) == 3
    assert record["metrics"]["memory_ratio"] < 1.3


def test_the_regions_of_the_record_are_the_timers(ember: Ember) -> None:
    record = ember.run(*BLAST, "--steps", "8", "--threads", "2", "--plot-interval", "4")
    regions = {region["path"]: region for region in record["regions"]}
    steps, metrics = sum(record["seconds"]["repetitions"]), record["metrics"]
    inside = ("guards", "hydro", "fluxes", "regrid")
    assert {"step", "output", "step/hydro/eos"} | {f"step/{name}" for name in inside} <= set(regions)
    assert regions["step"]["calls"] == 2 * 8
    assert regions["step"]["threads"] == regions["step/hydro/eos"]["threads"] == 2
    for timer, path in (
        (steps, "step"),
        (metrics["guard_share"] * steps, "step/guards"),
        (metrics["regrid_share"] * steps, "step/regrid"),
        (metrics["output_seconds"], "output"),
    ):
        assert regions[path]["seconds"] == pytest.approx(timer, rel=0.01), path
    parts = sum(regions[f"step/{name}"]["seconds"] for name in inside)
    assert regions["step"]["seconds"] >= parts
    assert regions["step"]["seconds_exclusive"] == pytest.approx(regions["step"]["seconds"] - parts, rel=0.01)
    if "counts" in regions["step"]:
        assert record["counters"] == regions["step"]["counts"]
        assert record["counters_source"] in ("papi", "perf_event", "software")
