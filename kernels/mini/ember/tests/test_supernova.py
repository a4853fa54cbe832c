"""The supernova and its parts: the star against scipy, at rest and burning, the flame's speed; equal bits."""

from __future__ import annotations

import csv
import math
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.integrate import solve_ivp, trapezoid
from scipy.interpolate import PchipInterpolator

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ember

h5py = pytest.importorskip("h5py", reason="make setup-tests installs h5py")

USAGE = 2
SUN = 1.98841e33
NEWTON = 6.67430e-8
AMBIENT = 1e3
STAR = (
    "--problem",
    "snia2d",
    "--memory",
    "64MiB",
    "--lowest-level",
    "1",
    "--highest-level",
    "4",
    "--star-level",
    "3",
)
FRONT = ("--problem", "flame", "--memory", "64MiB")


def rows(path: Path) -> dict[str, np.ndarray]:
    """The log's columns."""
    with path.open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in table]) for name in table[0]}


# ---- the star


@pytest.fixture
def printed(in_any_build: Callable[[str], Path]) -> Callable[..., np.ndarray]:
    """The pairs of numbers that test_white_dwarf prints."""
    program = in_any_build("test_ember_white_dwarf")

    def run(*arguments: str) -> np.ndarray:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True, timeout=60)
        return np.array([line.split() for line in done.stdout.splitlines()], dtype=float)

    return run


def integrate(central: float, density: PchipInterpolator, pressure: float, end: float) -> tuple[float, float]:
    """Mass and radius by scipy: r and m over ln(p), density(ln(p)) from the printed isotherm."""

    def slopes(log_p: float, state: np.ndarray) -> list[float]:
        r, m = state
        rho = np.exp(density(log_p))
        dr = -np.exp(log_p) * r**2 / ((rho - AMBIENT) * NEWTON * m)
        return [dr, 4 * np.pi * r**2 * rho * dr]

    small = 1e5
    start = pressure - 2 * np.pi / 3 * NEWTON * central**2 * small**2
    solved = solve_ivp(
        slopes,
        (np.log(start), np.log(end)),
        [small, 4 * np.pi / 3 * central * small**3],
        method="DOP853",
        rtol=1e-10,
        atol=1e-3,
    )
    assert solved.success, solved.message
    return solved.y[1, -1], solved.y[0, -1]


@pytest.mark.parametrize("central", ["1e8", "2.2e9", "5e9"])
def test_the_star_is_the_one_that_scipy_integrates(printed: Callable[..., np.ndarray], central: str) -> None:
    lines = printed(central, "5e7")
    (mass, radius), isotherm, profile = lines[0], lines[1:1002], lines[1002:]
    log_p = np.log(isotherm[:, 1])
    density = PchipInterpolator(log_p, np.log(isotherm[:, 0]))
    # To the density where the program ends the star, 1.001 of the ambient one.
    end = np.exp(PchipInterpolator(np.log(isotherm[:, 0]), log_p)(np.log(1.001 * AMBIENT)))
    expected_mass, expected_radius = integrate(float(central), density, isotherm[-1, 1], float(end))
    assert mass == pytest.approx(expected_mass, rel=1e-5)
    # Weight vanishes at the end, so that a step may be long there.
    assert radius == pytest.approx(expected_radius, rel=3e-4)
    # The table's mass is that of its densities.
    r, rho = profile[:, 0], profile[:, 1]
    assert trapezoid(4 * np.pi * r**2 * rho, r) == pytest.approx(mass, rel=1e-4)
    # 5.836 Ye^2 solar masses is the limit (Chandrasekhar 1939).
    assert mass < 1.459 * SUN
    if central == "2.2e9":
        assert 1.36 * SUN < mass < 1.40 * SUN
        assert 1.9e8 < radius < 2.2e8


@pytest.mark.long
def test_the_star_stays_at_rest(ember: Ember) -> None:
    """Over a dynamical time 1/sqrt(G rho), 0.083 s, at 32 km; energy with gravity's is kept to 1e-5."""
    level = ("--lowest-level", "2", "--highest-level", "3", "--star-level", "3")
    time = 1 / math.sqrt(NEWTON * 2.2e9)
    record = ember.run(
        *("--problem", "snia2d", "--ignition-radius", "0", "--memory", "64MiB", *level),
        *("--end-time", repr(time), "--log", "rest.csv"),
    )["metrics"]
    assert abs(record["density_drift"]) < 1e-3
    assert record["burnt_mass"] == 0
    log = rows(ember.folder / "rest.csv")
    energy = 2 * np.pi * log["energy"] + log["gravitational_energy"]
    assert -5.1e50 < energy[0] < -4.8e50
    assert abs(energy - energy[0]).max() < 1e-5 * abs(log["gravitational_energy"][0])
    assert 2 * np.pi * log["mass"][-1] == pytest.approx(1.366 * SUN, rel=0.04)
    # The momentum along the axis, which symmetry keeps at zero.
    assert abs(log["momentum_2"]).max() < 1e-12 * log["mass"][0] * 1e9


@pytest.mark.long
def test_the_star_s_drift_falls_with_the_second_power_of_the_zones(ember: Ember) -> None:
    def drift(level: str) -> float:
        return ember.run(
            *("--problem", "snia2d", "--ignition-radius", "0", "--memory", "128MiB", "--end-time", "0.083"),
            *("--lowest-level", "2", "--highest-level", level, "--star-level", level),
        )["metrics"]["density_drift"]

    coarse, fine = abs(drift("3")), abs(drift("4"))
    assert fine < 3e-4
    assert fine < coarse / 3


# ---- the flame


@pytest.mark.long
def test_the_front_moves_at_its_set_speed(ember: Ember) -> None:
    for speed, time in (("0.05", 8), ("0.2", 2)):
        log = ("--log", f"{speed}.csv", "--log-interval", "10")
        ember.run(
            *FRONT, "--uniform", "--highest-level", "2", "--flame-speed", speed, "--end-time", str(time), *log
        )
        table = rows(ember.folder / f"{speed}.csv")
        later = table["time"] > 0.3 * time
        measured = np.polyfit(table["time"][later], table["burnt_mass"][later], 1)[0]
        assert measured == pytest.approx(float(speed), rel=0.015)
        assert table["mass"] == pytest.approx(1, rel=1e-14)


@pytest.mark.long
def test_the_front_eats_fuel_at_its_speed_however_much_ash_expands(ember: Ember) -> None:
    """Into fuel at rest, ash leaving behind; a release of 3.5 doubles the volume."""
    for release in ("0.7", "3.5"):
        ember.run(
            *(*FRONT, "--uniform", "--highest-level", "3", "--boundary-x-lower", "outflow", "--cfl", "0.6"),
            *("--flame-speed", "0.02", "--flame-release", release, "--end-time", "4"),
            *("--log", f"{release}.csv", "--log-interval", "10"),
        )
        table = rows(ember.folder / f"{release}.csv")
        later = table["time"] > 1.5
        measured = np.polyfit(table["time"][later], table["burnt_mass"][later], 1)[0]
        assert measured == pytest.approx(0.02, rel=0.03), release


@pytest.mark.long
@pytest.mark.parametrize("dims", ["2", "3"])
def test_burnt_mass_releases_its_energy(ember: Ember, dims: str) -> None:
    """Between walls, while the mesh follows the front: the energy grows by q times the burnt mass."""
    levels = ("--lowest-level", "1", "--highest-level", "3" if dims == "2" else "2")
    release = ("--flame-release", "3", "--flame-speed", "0.1")
    record = ember.run(*FRONT, "--dims", dims, *levels, *release, "--steps", "60", "--log", "heat.csv")
    assert record["validation"]["error"] < 1e-13
    log = rows(ember.folder / "heat.csv")
    assert log["energy"] - 2.5 == pytest.approx(3 * log["burnt_mass"], rel=1e-11)
    assert log["released_energy"] == pytest.approx(3 * log["burnt_mass"], rel=1e-14)
    assert log["mass"] == pytest.approx(1, rel=1e-13)
    assert log["burnt_mass"][-1] > 0.01


@pytest.mark.long
def test_the_star_burns(ember: Ember) -> None:
    """The run checks its totals; here energies, species by name, and the position of the finest mesh."""
    record = ember.run(
        *STAR, "--steps", "30", "--plot-interval", "30", "--plot-precision", "double", "--log", "star.csv"
    )
    assert record["validation"]["error"] < 1e-12
    assert record["metrics"]["burnt_mass"] > 0
    log = rows(ember.folder / "star.csv")
    energy = (
        2 * np.pi * log["energy"]
        + log["gravitational_energy"]
        - log["released_energy"]
        - log["raised_energy"]
    )
    assert abs(energy - energy[0]).max() < 1e-4 * abs(log["gravitational_energy"][0])
    with h5py.File(ember.folder / "snia2d_hdf5_plt_cnt_0001") as file:
        leaf = file["node type"][()] == 1
        names = [name.decode().strip() for name in file["unknown names"][:, 0]]
        fuel, ash = file["fuel"][()][leaf], file["ash"][()][leaf]
        level = file["refine level"][()][leaf]
    assert names[-2:] == ["fuel", "ash"]
    assert abs(fuel + ash - 1).max() < 1e-13
    assert ash.max() == pytest.approx(1, abs=1e-9)
    assert ash.min() >= 0
    # The front's blocks, and only others that nesting requires, are the finest.
    front = ((ash > 0.02) & (ash < 0.98)).any(axis=(1, 2, 3))
    assert (level[front] == level.max()).all()
    assert (level == level.max()).sum() < leaf.sum() / 2


# ---- the same to the last bit


references: dict[tuple[Path, str], bytes] = {}
RUNS = {
    "star": STAR,
    "front": (*FRONT, "--lowest-level", "1", "--highest-level", "3", "--flame-release", "1"),
}


@pytest.fixture(params=sorted(RUNS))
def run(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def reference(ember: Ember, run: str) -> bytes:
    if (ember.program, run) not in references:
        references[ember.program, run] = ember.last_zones(*RUNS[run], "--steps", "16")
    return references[ember.program, run]


@pytest.mark.long
@pytest.mark.parametrize("other", [("--layout", "soa"), ("--threads", "2")])
def test_neither_layout_nor_threads_change_a_bit(
    ember: Ember,
    run: str,
    reference: bytes,
    other: tuple[str, ...],
) -> None:
    assert ember.last_zones(*RUNS[run], "--steps", "16", *other) == reference


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_change_no_bit(ember: Ember, run: str, reference: bytes, ranks: int) -> None:
    output = ember.attempt("--problem", "sedov", "--steps", "1", "--memory", "64MiB", ranks=2).stdout
    if output.count("ranks         2 of") != 1:
        pytest.skip("this build has no MPI, or mpiexec is not of its MPI")
    assert ember.last_zones(*RUNS[run], "--steps", "16", ranks=ranks) == reference


@pytest.mark.long
def test_the_table_as_separate_arrays_has_its_own_norms(ember: Ember) -> None:
    """dp/drho, and with it the speed of sound, is from another interpolation."""
    record = ember.run("--problem", "snia2d", "--table", "arrays", "--highest-level", "3", "--steps", "5")
    assert record["options"]["table"] == "arrays"
    assert "norms" in {check["name"] for check in record["validation"]["checks"]}
    assert record["validation"]["passed"], record["validation"]


# ---- what goes wrong


def test_a_missing_table_is_named(ember: Ember) -> None:
    done = ember.attempt(*STAR, "--steps", "1", "--eos-table", "nothing.h5")
    assert done.returncode != 0
    assert "nothing.h5" in done.stderr
    assert "remedy" in done.stderr


@pytest.mark.long
def test_a_malformed_table_is_refused(ember: Ember) -> None:
    ember.last_zones(*FRONT, "--steps", "1")
    file = max(ember.folder.glob("*_hdf5_plt_cnt_*"))
    done = ember.attempt(*STAR, "--steps", "1", "--eos-table", str(file))
    assert done.returncode == USAGE
    assert file.name in done.stderr
