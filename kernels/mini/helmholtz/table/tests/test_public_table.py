"""pw-eos-table --format helmholtz: the text that it writes, read as the public routine reads it."""

from __future__ import annotations

import resource
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

h5py = pytest.importorskip("h5py", reason="make setup-tests installs h5py")

SYSTEM = 4
N_DENSITIES, N_TEMPERATURES = 28, 11
SIZE = ("--densities", str(N_DENSITIES), "--temperatures", str(N_TEMPERATURES))
FREE_ENERGY = ("f", "f_x", "f_T", "f_xx", "f_TT", "f_xT", "f_xxT", "f_xTT", "f_xxTT")
BOLTZMANN, AVOGADRO = 1.380649e-16, 6.02214076e23
EPSILON = np.finfo(float).eps


class Public(NamedTuple):
    """The four parts of the text, (columns, temperatures, densities)."""

    free_energy: np.ndarray
    stiffness: np.ndarray
    eta: np.ndarray
    particles: np.ndarray


def read(path: Path) -> Public:
    """Read lines in the order of the public routine's loops: temperatures, in each all densities."""
    lines = path.read_text(encoding="ascii").splitlines()
    points = N_DENSITIES * N_TEMPERATURES
    assert len(lines) == 4 * points
    parts = []
    for part, columns in enumerate((9, 4, 4, 4)):
        rows = np.array([[float(word) for word in line.split()] for line in lines[part * points :][:points]])
        assert rows.shape == (points, columns)
        parts.append(rows.T.reshape(columns, N_TEMPERATURES, N_DENSITIES))
    return Public(*parts)


class Tables(NamedTuple):
    """Both formats of the same points."""

    public: Public
    hdf5: dict[str, np.ndarray]


@pytest.fixture(scope="session")
def program(in_build: Callable[[str], Path]) -> Path:
    return in_build("table/pw-eos-table")


@pytest.fixture(scope="session")
def tables(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    folder = tmp_path_factory.mktemp("formats")
    for options in ("--format", "helmholtz"), ():
        command = [program, *SIZE, *options]
        subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=120)
    with h5py.File(folder / "helmholtz.h5") as file:
        hdf5 = {name: dataset[()] for name, dataset in file.items()}
    return Tables(read(folder / "helm_table.dat"), hdf5)


def test_the_free_energy_is_that_of_the_other_format(tables: Tables) -> None:
    thermal, cold = np.moveaxis(tables.hdf5["thermal"], (2, 1, 0), (0, 1, 2)), tables.hdf5["cold"]
    for i, name in enumerate(FREE_ENERGY):
        whole = thermal[i] + (cold[("f", "f_x", "f_xx").index(name)] if name in ("f", "f_x", "f_xx") else 0.0)
        assert (tables.public.free_energy[i] == whole).all(), name


def test_pressure_and_chemical_potential_follow_from_the_free_energy(tables: Tables) -> None:
    f = dict(zip(FREE_ENERGY, tables.public.free_energy, strict=True))
    x, t = tables.hdf5["dye"], tables.hdf5["temperature"][:, np.newaxis]
    # P = x^2 f_x and mu = (f + x f_x)/N_A. Where pairs abound the sums cancel, and only rounding is left.
    kt = BOLTZMANN * AVOGADRO * t
    sums = {
        "dP/dx": (tables.public.stiffness[0], 2 * x * f["f_x"], x**2 * f["f_xx"]),
        "d2P/dxdT": (tables.public.stiffness[2], 2 * x * f["f_xT"], x**2 * f["f_xxT"]),
        "eta": (tables.public.eta[0], f["f"] / kt, x * f["f_x"] / kt),
    }
    for name, (value, first, second) in sums.items():
        rounding = 1e3 * EPSILON * (abs(first) + abs(second))
        assert (abs(value - first - second) <= 1e-9 * abs(value) + rounding).all(), name


def test_matter_is_stable(tables: Tables) -> None:
    assert all(np.isfinite(part).all() for part in tables.public)
    assert (tables.public.stiffness[0] > 0).all()
    assert (tables.public.eta[1] > 0).all()


def test_particles_are_the_electrons_and_all_pairs(tables: Tables) -> None:
    x = tables.hdf5["dye"]
    ln_n, in_x, in_t, in_both = np.moveaxis(tables.hdf5["positrons"], (2, 1, 0), (0, 1, 2))
    # Cold matter has exp(-6e9) positrons, which a double cannot hold.
    positrons = np.exp(np.maximum(ln_n, np.log(np.finfo(float).tiny)))
    wanted = (
        AVOGADRO * x + 2 * positrons,
        AVOGADRO + 2 * positrons * in_x,
        2 * positrons * in_t,
        2 * positrons * (in_both + in_x * in_t),
    )
    # Among many pairs one electron more is half a positron less, and only rounding is left of the derivative.
    net = AVOGADRO / tables.hdf5["temperature"][:, np.newaxis]
    for value, expected, scale in zip(tables.public.particles, wanted, (0, AVOGADRO, 0, net), strict=True):
        assert (abs(value - expected) <= 1e-9 * abs(expected) + 1e-12 * scale + 1e-200).all()


def share_of_derivatives(values: np.ndarray, slopes: np.ndarray, at: np.ndarray, scale: np.ndarray) -> float:
    """Compare slopes with differences in the logarithm along axis 0; return the share that those resolve.

    The difference of the formulas of fourth and sixth order bounds the error of the latter. `scale` has its
    rounding.
    """
    step = np.log(at[-1] / at[0]) / (len(at) - 1)
    one, two, three = ((values[3 + k : len(at) - 3 + k] - values[3 - k : len(at) - 3 - k]) for k in (1, 2, 3))
    sixth = (45 * one - 9 * two + three) / (60 * step)
    error = abs(sixth - (8 * one - two) / (12 * step))
    wanted = (slopes.T * at).T[3:-3]
    largest = max_of_neighbours(scale, 3)
    resolved = max_of_neighbours(error, 1) <= 1e-3 * abs(wanted[1:-1]) + 1e-300
    near = abs(sixth - wanted)[1:-1] <= 2 * max_of_neighbours(error, 1) + 1e-11 * largest[1:-1] / step
    assert near[resolved].all()
    return float(resolved.mean())


def max_of_neighbours(values: np.ndarray, reach: int) -> np.ndarray:
    length = len(values) - 2 * reach
    return np.max([values[k : k + length] for k in range(2 * reach + 1)], axis=0)


@pytest.fixture(scope="session")
def fine(program: Path, tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """The last three parts of the full table, in the order of the file."""
    folder = tmp_path_factory.mktemp("full")
    subprocess.run(
        [program, "--format", "helmholtz"], cwd=folder, capture_output=True, check=True, timeout=300
    )
    points = 541 * 201
    rows = np.loadtxt(folder / "helm_table.dat", skiprows=points)
    assert rows.shape == (3 * points, 4)
    return rows.reshape(3, 201, 541, 4)


def test_derivatives_are_those_of_the_values(fine: np.ndarray) -> None:
    x, t = 10 ** np.linspace(-12, 15, 541), 10 ** np.linspace(3, 13, 201)
    for part in fine:
        f, f_x, f_t, f_xt = np.moveaxis(part, 2, 0)
        size, in_t, in_x = abs(f), abs(f) / t[:, np.newaxis], abs(f) / x
        shares = (
            share_of_derivatives(f.T, f_x.T, x, size.T),
            share_of_derivatives(f_t.T, f_xt.T, x, in_t.T),
            share_of_derivatives(f, f_t, t, size),
            share_of_derivatives(f_x, f_xt, t, in_x),
        )
        # Pairs increase with exp(-2 m c^2/kT), faster than the points resolve, and where there are many of
        # them the density changes nothing but the rounding.
        assert min(shares) > 0.6


@pytest.mark.parametrize("output", ["missing/table.dat", ".", "/dev/null"])
def test_a_file_that_cannot_be_written(program: Path, tmp_path: Path, output: str) -> None:
    command = [program, *SIZE, "--format", "helmholtz", "--output", output]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert done.returncode == SYSTEM
    assert not list(tmp_path.iterdir())


def test_no_room_leaves_the_file_before(program: Path, tmp_path: Path) -> None:
    file, limit = tmp_path / "helm_table.dat", 20000
    file.write_text("a file before", encoding="ascii")
    done = subprocess.run(
        [program, *SIZE, "--format", "helmholtz"],
        cwd=tmp_path, capture_output=True, check=False, timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    assert done.returncode == SYSTEM, done.stderr
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text(encoding="ascii") == "a file before"
