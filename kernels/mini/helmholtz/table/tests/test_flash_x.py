"""The table of pw-eos-table --format helmholtz in the public routine: that of a Flash-X source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

h5py = pytest.importorskip("h5py", reason="make setup-tests installs h5py")

STAND_INS = Path(__file__).parent / "flash_x"
FLAGS = ("-fdefault-real-8", "-fdefault-double-8", "-fallow-argument-mismatch", "-w")
PARTS = ("eos_helmConstData", "eos_helmData", "eos_helm", "eos_helmSpeciesInit")
BOLTZMANN, AVOGADRO = 1.380649e-16, 6.02214076e23


@pytest.fixture(scope="module")
def sources() -> Path:
    """FLASH_X names a source tree of Flash-X, which this repository does not contain."""
    folder = os.environ.get("FLASH_X")
    if folder is None:
        pytest.skip("set FLASH_X to a source tree of Flash-X")
    return Path(folder).resolve() / "source"


@pytest.fixture(scope="module")
def flash_x(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the public routine with its reader."""
    compiler = shutil.which("gfortran")
    if compiler is None:
        pytest.skip("gfortran is not installed")
    folder = tmp_path_factory.mktemp("flash-x")
    eos = sources / "physics" / "Eos"
    unit = eos / "EosMain" / "Helmholtz"
    headers = (STAND_INS, sources / "Simulation", eos, eos / "EosMain")
    command = [compiler, *FLAGS, *(f"-I{header}" for header in headers), "-c"]
    unit_sources = [unit / f"{part}.F90" for part in PARTS]
    for source in (STAND_INS / "stand_ins.F90", *unit_sources, STAND_INS / "evaluate.F90"):
        subprocess.run([*command, source], cwd=folder, check=True, timeout=300)
    objects = sorted(folder.glob("*.o"))
    subprocess.run([compiler, *objects, "-o", "flash_x"], cwd=folder, check=True, timeout=60)
    return folder / "flash_x"


class Points(NamedTuple):
    """Values at points: x = rho Ye [g/cm^3], T [K], then pressure, eta and number of particles."""

    x: np.ndarray
    t: np.ndarray
    pressure: np.ndarray
    eta: np.ndarray
    particles: np.ndarray


@pytest.fixture(scope="module")
def between(in_build: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Points:
    """Those in the middle between points of the public table: points of a table twice as fine."""
    folder = tmp_path_factory.mktemp("fine")
    command = [in_build("table/pw-eos-table"), "--densities", "1081", "--temperatures", "401"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=300)
    with h5py.File(folder / "helmholtz.h5") as file:
        # Every 7th of the odd points of both axes.
        densities, temperatures = slice(1, None, 14), slice(1, None, 14)
        x, t = np.meshgrid(file["dye"][densities], file["temperature"][temperatures], indexing="ij")
        f = file["thermal"][densities, temperatures, 0] + file["cold"][0, densities][:, np.newaxis]
        f_x = file["thermal"][densities, temperatures, 1] + file["cold"][1, densities][:, np.newaxis]
        ln_positrons = file["positrons"][densities, temperatures, 0]
    eta = (f + x * f_x) / (AVOGADRO * BOLTZMANN * t)
    particles = AVOGADRO * x + 2 * np.exp(np.maximum(ln_positrons, -700))
    return Points(*(values.ravel() for values in (x, t, x**2 * f_x, eta, particles)))


@pytest.mark.long
def test_the_public_routine_interpolates_the_table(
    in_build: Callable[[str], Path], flash_x: Path, between: Points, tmp_path: Path
) -> None:
    command = [in_build("table/pw-eos-table"), "--format", "helmholtz"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=300)
    points = "".join(f"{x!r} {t!r}\n" for x, t in zip(between.x.tolist(), between.t.tolist(), strict=True))
    done = subprocess.run(
        [flash_x], cwd=tmp_path, input=points, capture_output=True, text=True, check=True, timeout=120
    )
    rows = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("point ")]
    pressure, eta, particles = np.array(rows, dtype=float).T
    pressure_error = abs(pressure / between.pressure - 1)
    particle_error = abs(particles / between.particles - 1)
    # Pairs begin with exp(-2 m c^2/kT), which is steep between two points.
    steep = (between.t > 1e8) & (between.t < 2e9)
    assert 0.5 < (~steep).mean() < 1
    assert (pressure_error[~steep] < 1e-5).all()
    assert (particle_error[~steep] < 1e-3).all()
    assert (pressure_error[steep] < 0.1).all()
    assert (particle_error[steep] < 0.6).all()
    # Among pairs f + x f_x, from which eta follows here, is a small difference of large numbers.
    cold = between.t < 1e8
    assert (abs(eta - between.eta)[cold] < 1e-3 * (1 + abs(between.eta[cold]))).all()
