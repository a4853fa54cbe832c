"""pw-eos-table: the file that it writes, read by h5py, and its failures."""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

h5py = pytest.importorskip("h5py", reason="make setup-tests installs h5py")

USAGE, SYSTEM = 2, 4
COARSE = ("--densities", "28", "--temperatures", "11")
SHAPES = {
    "dye": (28,),
    "temperature": (11,),
    "cold": (3, 28),
    "thermal": (28, 11, 9),
    "positrons": (28, 11, 4),
    "dpdx": (28, 11, 4),
    "eta": (28, 11, 4),
}
FUNCTIONS = "f, f_x, f_T, f_xx, f_TT, f_xT, f_xxT, f_xTT, f_xxTT"
CONSTANTS = {
    "speed_of_light": 2.99792458e10,
    "planck": 6.62607015e-27,
    "boltzmann": 1.380649e-16,
    "avogadro": 6.02214076e23,
    "electron_mass": 9.1093837139e-28,
}


@pytest.fixture(scope="session")
def program(in_build: Callable[[str], Path]) -> Path:
    return in_build("table/pw-eos-table")


@pytest.fixture
def attempt(program: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
        command = [program, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False, **how
        )

    return run


def numbers(file: Path) -> dict[str, np.ndarray]:
    with h5py.File(file) as opened:
        return {name: opened[name][()] for name in SHAPES}


@pytest.fixture(scope="session")
def coarse(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("coarse") / "coarse.h5"
    subprocess.run([program, *COARSE, "--output", file], capture_output=True, check=True, timeout=120)
    return file


def test_the_file_describes_itself(coarse: Path) -> None:
    with h5py.File(coarse) as file:
        attributes = {
            name: getattr(value, "decode", lambda v=value: v)() for name, value in file.attrs.items()
        }
        assert set(file) == set(SHAPES)
        for name, dataset in file.items():
            assert dataset.shape == SHAPES[name]
            assert dataset.dtype == np.float64
            assert dataset.attrs["units"].decode()
            assert dataset.attrs["long_name"].decode()
            assert dataset.fletcher32
        assert file["thermal"].attrs["functions"].decode() == FUNCTIONS
    assert attributes["schema"] == "pagewise.eos-table/1"
    assert attributes["constants"] == "CODATA 2022"
    assert {name: attributes[name] for name in CONSTANTS} == CONSTANTS
    assert attributes["accuracy"] == 1e-10
    assert list(attributes["dye_limits"]) == [1e-12, 1e15]
    assert list(attributes["temperature_limits"]) == [1e3, 1e13]
    assert attributes["program"] == "pw-eos-table"
    assert "--densities 28" in attributes["command_line"]
    assert attributes["version"]
    assert attributes["compiler"]
    made = np.datetime64(attributes["date"].rstrip("Z"), "s").astype(int)
    assert abs(time.time() - made) < 86400


def test_points_are_powers_of_ten(coarse: Path) -> None:
    table = numbers(coarse)
    np.testing.assert_allclose(table["dye"], 10.0 ** np.arange(-12, 16), rtol=4e-16)
    np.testing.assert_allclose(table["temperature"], 10.0 ** np.arange(3, 14), rtol=4e-16)


def test_all_points_are_numbers_of_the_right_sign(coarse: Path) -> None:
    table = numbers(coarse)
    assert all(np.isfinite(values).all() for values in table.values())
    f, f_x, f_t, _, f_tt, *_ = np.moveaxis(table["thermal"], 2, 0)
    # Entropy, heat capacity and thermal pressure are positive.
    for positive in -f, f_x, -f_t, -f_tt, table["positrons"][:, :, 2]:
        assert (positive > 0).all()


def test_an_ideal_gas_and_a_gas_of_pairs(coarse: Path) -> None:
    table = numbers(coarse)
    k, avogadro = CONSTANTS["boltzmann"], CONSTANTS["avogadro"]
    x, t = table["dye"], table["temperature"]
    # 1e-12 g/cm^3 and 1e5 K: p = n k T, c_v = 3/2 k.
    pressure = x[0] * (table["thermal"][0, 2, 1] + table["cold"][1, 0])
    assert pressure == pytest.approx(avogadro * k * t[2], rel=1e-10)
    assert -t[2] * table["thermal"][0, 2, 4] == pytest.approx(1.5 * avogadro * k, rel=1e-4)
    # 1e-12 g/cm^3 and 1e13 K: 7/4 of the photons' pressure, a T^4/3 (the electron's mass is 1/1700 of kT).
    h, c = CONSTANTS["planck"], CONSTANTS["speed_of_light"]
    photons = 8 * np.pi**5 * (k * t[-1]) * (k * t[-1] / (h * c)) ** 3 / 45
    assert x[0] ** 2 * table["thermal"][0, -1, 1] == pytest.approx(7 / 4 * photons, rel=1e-6)


def test_pressure_and_chemical_potential_follow_from_the_free_energy(coarse: Path) -> None:
    table = numbers(coarse)
    f = dict(zip(FUNCTIONS.split(", "), np.moveaxis(table["thermal"], 2, 0), strict=True))
    for name, cold in zip(("f", "f_x", "f_xx"), table["cold"], strict=True):
        f[name] = f[name] + cold[:, np.newaxis]
    x = table["dye"][:, np.newaxis]
    # P = x^2 f_x and mu = (f + x f_x)/N_A. Where pairs abound the sums cancel, and only rounding is left.
    kt = CONSTANTS["boltzmann"] * CONSTANTS["avogadro"] * table["temperature"]
    dpdx, eta = table["dpdx"], table["eta"]
    for value, first, second in (
        (dpdx[:, :, 0], 2 * x * f["f_x"], x**2 * f["f_xx"]),
        (dpdx[:, :, 2], 2 * x * f["f_xT"], x**2 * f["f_xxT"]),
        (eta[:, :, 0], f["f"] / kt, x * f["f_x"] / kt),
    ):
        rounding = 1e3 * np.finfo(float).eps * (abs(first) + abs(second))
        assert (abs(value - first - second) <= 1e-9 * abs(value) + rounding).all()
    # Matter is stable.
    assert (dpdx[:, :, 0] > 0).all()
    assert (eta[:, :, 1] > 0).all()


@pytest.mark.long
def test_a_finer_table_has_the_same_points(program: Path, coarse: Path, tmp_path: Path) -> None:
    subprocess.run([program], cwd=tmp_path, capture_output=True, check=True, timeout=300)
    few, many = numbers(coarse), numbers(tmp_path / "helmholtz.h5")
    assert many["thermal"].shape == (541, 201, 9)
    for name in "dye", "temperature":
        assert (few[name] == many[name][::20]).all()
    assert (few["cold"] == many["cold"][:, ::20]).all()
    assert (few["thermal"] == many["thermal"][::20, ::20]).all()
    assert (few["positrons"] == many["positrons"][::20, ::20]).all()


def test_threads_do_not_change_a_bit(
    coarse: Path, attempt: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    for threads in "1", "3":
        assert attempt(*COARSE, "--threads", threads).returncode == 0
        table = numbers(tmp_path / "helmholtz.h5")
        assert all((values == table[name]).all() for name, values in numbers(coarse).items())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--densities", "1"), USAGE, "--densities"),
        (("--temperatures", "0"), USAGE, "--temperatures"),
        (("--temperatures", "ten"), USAGE, "--temperatures"),
        (("--threads", "0"), USAGE, "--threads"),
        (("--density", "28"), USAGE, "--density"),
        (("--densities", "2000000000"), SYSTEM, "no memory for 2000000000 densities"),
        (("--output", "missing/table.h5"), SYSTEM, "create the folder 'missing'"),
        (("--output", "."), SYSTEM, "name a file"),
    ],
)
def test_refused(
    attempt: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    done = attempt(*arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


def test_no_room_leaves_the_file_before(
    attempt: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    file = tmp_path / "helmholtz.h5"
    file.write_text("a file before", encoding="ascii")
    limit = 20000
    done = attempt(*COARSE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == SYSTEM, done.stderr
    assert "ulimit -f" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["helmholtz.h5"]
    assert file.read_text(encoding="ascii") == "a file before"


@pytest.mark.long
def test_the_references_can_be_made_again() -> None:
    pytest.importorskip("mpmath", reason="mpmath computes the references")
    spec = importlib.util.spec_from_file_location("reference", Path(__file__).with_name("reference.py"))
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    rows = np.loadtxt(reference.FILE, delimiter=",", skiprows=2)
    assert len(rows) == len(reference.POINTS)
    at = reference.POINTS.index((6, 9))
    np.testing.assert_allclose([float(value) for value in reference.point(6, 9)], rows[at], rtol=1e-15)
