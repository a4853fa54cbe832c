"""For Flash-X: the table that it reads, and the white dwarf with stand-ins for the rest of Flash-X."""

from __future__ import annotations

import math
import shutil
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from scripts import called
from stage import ROOT

FLASH_X = ROOT / "studies" / "flash_x"
SIMULATION = FLASH_X / "WhiteDwarf"
STAND_INS = Path(__file__).with_name("flash_x")
FLAGS = ("-fdefault-real-8", "-fdefault-double-8", "-Wall", "-Werror", "-Wno-unused-dummy-argument")
# Those of the stand-ins: densities [g/cm^3], and P = K rho^2, whose length is sqrt(K/(2 pi G)) [cm].
CENTER, AMBIENT, LENGTH = 2.0e9, 1.0e3, 6.0e7
GRAVITY = 6.67408e-8
SUN = 1.98841e33


def density(xi: float) -> float:
    """Return that of the polytrope of index 1 at a radius in its length."""
    return CENTER * math.sin(xi) / xi if xi > 0 else CENTER


# The variables of a cell in the order of Simulation.h.
Cell = namedtuple("Cell", "x y dens temp pres eint ener gamc game velx vely velz carbon oxygen")


# What the simulation computes: (radius/LENGTH, density) of shells, cells, log.
Star = namedtuple("Star", "shells cells log")


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> Star:
    compiler = shutil.which("gfortran")
    if compiler is None:
        pytest.skip("gfortran is not installed")
    folder = tmp_path_factory.mktemp("white-dwarf")
    data, *parts = (SIMULATION / f"Simulation_{part}.F90" for part in ("data", "init", "initBlock"))
    sources = [data, STAND_INS / "flash_x.F90", *parts]
    called([compiler, *FLAGS, f"-I{STAND_INS}", *sources, "-o", "star"], cwd=folder, check=True)
    done = called([folder / "star"], check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    shells = [(float(row[1]), float(row[2])) for row in rows if row[0] == "shell"]
    size = 4.0e8 / 64
    cells = [
        Cell((int(row[1]) - 0.5) * size, (int(row[2]) - 0.5) * size - 1e8, *map(float, row[3:]))
        for row in rows
        if row[0] == "cell"
    ]
    return Star(shells, cells, {row[1]: float(row[-1]) for row in rows if row[0] == "log"})


def test_the_profile_is_in_equilibrium(star: Star) -> None:
    assert star.shells[0] == (0.0, CENTER)
    assert star.shells[-1][1] == pytest.approx(AMBIENT, rel=1e-9)
    assert len(star.shells) > 1000
    radii = [radius for radius, _ in star.shells]
    assert radii == sorted(set(radii))
    for radius, dens in star.shells:
        assert dens == pytest.approx(density(radius), abs=1e-4 * CENTER, rel=0), radius
    # The surface of this polytrope is at pi; its mass is 4 pi^2 rho_c LENGTH^3.
    assert radii[-1] == pytest.approx(math.pi, rel=1e-4)
    assert star.log["mass"] * SUN == pytest.approx(4 * math.pi**2 * CENTER * LENGTH**3, rel=1e-4)
    assert star.log["radius"] == pytest.approx(math.pi * LENGTH, rel=1e-4)


def test_cells_have_the_profile_at_rest(star: Star) -> None:
    assert len(star.cells) == 256
    inside = 0
    for cell in star.cells:
        xi = math.hypot(cell.x, cell.y) / LENGTH
        if xi > math.pi * 1.001:
            assert cell.dens == AMBIENT
        elif xi < math.pi * 0.999:
            inside += 1
            assert cell.dens == pytest.approx(density(xi), abs=1e-4 * CENTER, rel=0)
        pressure = 2 * math.pi * GRAVITY * LENGTH**2 * cell.dens**2
        assert cell.pres == pytest.approx(pressure, rel=1e-12)
        assert cell.ener == cell.eint == pytest.approx(pressure / cell.dens, rel=1e-12)
        assert (cell.temp, cell.gamc, cell.game) == (1e8, 2.0, pytest.approx(2.0))
        assert (cell.velx, cell.vely, cell.velz) == (0.0, 0.0, 0.0)
        assert (cell.carbon, cell.oxygen) == (0.25, 0.75)
    assert 0 < inside < len(star.cells)


def test_the_public_table_has_the_values_of_the_hdf5_table(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="make setup-tests installs h5py")
    avogadro, shape = 6.02214076e23, (3, 2)
    x, t = np.array([1e-6, 1.0, 1e6]), np.array([1e4, 1e9])
    random = np.random.default_rng(1)
    data = {name: random.normal(size=(*shape, 4)) for name in ("dpdx", "eta")}
    data |= {"thermal": random.normal(size=(*shape, 9)), "cold": random.normal(size=(3, 3))}
    # n_pos = 1e20 x^2 t: ln n_pos, d/dx, d/dT, d2/dxdT.
    at_x, at_t = np.meshgrid(x, t, indexing="ij")
    positrons = 1e20 * at_x**2 * at_t
    data["positrons"] = np.stack([np.log(positrons), 2 / at_x, 1 / at_t, 0 * at_x], axis=-1)
    with h5py.File(tmp_path / "helmholtz.h5", "w") as file:
        for name, values in (data | {"dye": x, "temperature": t}).items():
            file[name] = values
    command = [sys.executable, FLASH_X / "helm_table.py", "helmholtz.h5", "helm_table.dat"]
    called(command, cwd=tmp_path, check=True)
    lines = (tmp_path / "helm_table.dat").read_text(encoding="ascii").splitlines()
    points = x.size * t.size
    read = [np.array([row.split() for row in lines[i * points : (i + 1) * points]], float) for i in range(4)]
    assert len(lines) == 4 * points
    # The density varies fastest.
    free_energy, dpdx, eta, particles = (part.reshape(t.size, x.size, -1).swapaxes(0, 1) for part in read)
    whole = data["thermal"].copy()
    whole[:, :, [0, 1, 3]] += data["cold"].T[:, np.newaxis, :]
    assert (free_energy == whole).all()
    assert (dpdx == data["dpdx"]).all()
    assert (eta == data["eta"]).all()
    expected = (avogadro * at_x + 2 * positrons, avogadro + 4e20 * at_x * at_t, 2e20 * at_x**2, 4e20 * at_x)
    np.testing.assert_allclose(particles, np.stack(expected, axis=-1), rtol=1e-12)
