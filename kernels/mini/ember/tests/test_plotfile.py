"""Plotfiles read by other programs: yt and h5py read the written data.

test_plotfile writes the files: a smooth state, whose formulas are repeated here, on meshes with refinement.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.long

MESHES = ("plane", "cylinder", "cube")
NODE_LEAF = 1
#: As states.f90 writes it.
NOTE = "a text" + 10 * " that is long"


def give_up(reason: str) -> None:
    """End the test: a failure in CI, skipped with the reason elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def needed(module: str) -> object:
    """The module, if the tests' environment has it."""
    try:
        return __import__(module)
    except ImportError as missing:
        give_up(f"{missing}: make setup-tests installs it, if available for this machine")


@pytest.fixture(scope="module")
def program(in_any_build: Callable[[str], Path]) -> Path:
    return in_any_build("test_ember_plotfile")


class Written:
    """The files in a folder, and the masses and numbers of leaves that their writer printed."""

    def __init__(self, folder: Path, output: str) -> None:
        self.folder = folder
        lines = [line.split() for line in output.splitlines() if line]
        self.mass = {name: float(mass) for name, mass, _ in lines}
        self.leaves = {name: int(leaves) for name, _, leaves in lines}

    def plotfile(self, name: str) -> Path:
        return self.folder / f"{name}_hdf5_plt_cnt_0000"


@pytest.fixture(scope="module")
def written(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("plotfiles")
    done = subprocess.run(
        [program, "plotfiles"], cwd=folder, capture_output=True, text=True, check=True, timeout=120
    )
    return Written(folder, done.stdout)


def state(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> dict[str, np.ndarray]:
    """The file's variables at these points; in 2-d z is 0."""
    dens = 2 + np.sin(2 * np.pi * x) * np.cos(2 * np.pi * y) + 0.4 * (1 + x) * (y + z)
    pres = 1 + 0.1 * x + 0.2 * y**2 + 0.3 * z
    velx, vely, velz = x - 0.3, 0.5 * y + 1, z * x + 0.25
    eint = pres / (0.4 * dens)
    helium = 0.25 + 0.1 * x
    return {
        "dens": dens,
        "velx": velx,
        "vely": vely,
        "velz": velz,
        "pres": pres,
        "ener": eint + 0.5 * (velx**2 + vely**2 + velz**2),
        "eint": eint,
        "temp": 300 * pres / dens,
        "gamc": 1.4 + 0 * x,
        "he4": helium,
        "neon20": 1 - helium,
    }


def same(values: np.ndarray, expected: np.ndarray) -> None:
    """To round-off."""
    np.testing.assert_allclose(np.asarray(values), expected, rtol=1e-13, atol=1e-13)


# ---- yt


@pytest.fixture(scope="module")
def load(written: Written) -> Callable[[str], object]:
    yt = needed("yt")
    yt.set_log_level("error")
    return lambda name: yt.load(written.plotfile(name))


def points(part: object, dataset: object) -> tuple[np.ndarray, ...]:
    """The positions of the zones of a part of the data."""
    names = ("r", "z") if dataset.geometry == "cylindrical" else ("x", "y")
    x, y = (part["index", name].to_ndarray() for name in names)
    return x, y, part["index", "z"].to_ndarray() if dataset.dimensionality == 3 else 0 * x


@pytest.mark.parametrize("name", MESHES)
def test_yt_knows_the_run(load: Callable[[str], object], name: str) -> None:
    dataset = load(name)
    assert dataset.dimensionality == (3 if name == "cube" else 2)
    assert str(dataset.geometry) == ("cylindrical" if name == "cylinder" else "cartesian")
    assert float(dataset.current_time) == 0.1
    assert dataset.parameters["dt"] == 1e-3 / 3
    assert dataset.parameters["nstep"] == 17
    assert dataset.parameters["problem"] == "test"
    assert dataset.gamma == 1.4
    assert dataset.parameters["cfl"] == 0.4
    assert dataset.parameters["levels"] == 4
    assert dataset.parameters["verbose"] == 1
    assert dataset.parameters["note"] == NOTE
    assert dataset.periodicity == (False, name != "cylinder", False)
    assert {field for _, field in dataset.field_list} == set(state(*np.zeros((3, 1))))


@pytest.mark.parametrize("name", MESHES)
def test_yt_finds_every_zone(load: Callable[[str], object], written: Written, name: str) -> None:
    dataset = load(name)
    zones = dataset.all_data()
    expected = state(*points(zones, dataset))
    assert len(expected["dens"]) == written.leaves[name] * 16**dataset.dimensionality
    for field, values in expected.items():
        same(zones["flash", field], values)


@pytest.mark.parametrize("name", MESHES)
def test_mass_in_yt_is_the_mass_in_ember(load: Callable[[str], object], written: Written, name: str) -> None:
    dataset = load(name)
    mass = float(dataset.all_data().quantities.total_mass()[0])
    turn = 2 * np.pi if name == "cylinder" else 1
    assert mass == pytest.approx(turn * written.mass[name], rel=1e-13)


# ---- h5py


@pytest.fixture(scope="module")
def opened(written: Written) -> Callable[[Path], object]:
    h5py = needed("h5py")
    return lambda path: h5py.File(path, "r")


@pytest.mark.parametrize("name", MESHES)
def test_the_tree_hangs_together(opened: Callable[[Path], object], written: Written, name: str) -> None:
    with opened(written.plotfile(name)) as file:
        dims = 3 if name == "cube" else 2
        gid, level, kind = file["gid"][:], file["refine level"][:], file["node type"][:]
        box, which = file["bounding box"][:], file["which child"][:]
        assert file["coordinates"][:] == pytest.approx(box.mean(axis=2), abs=1e-15)
        assert file["block size"][:] == pytest.approx(box[:, :, 1] - box[:, :, 0], abs=1e-15)
        names = [text.decode() for text in file["unknown names"][:, 0]]
    assert set(names) == set(state(*np.zeros((3, 1))))
    faces, parent, children = gid[:, : 2 * dims], gid[:, 2 * dims], gid[:, 2 * dims + 1 :]
    assert (kind == NODE_LEAF).sum() == written.leaves[name]
    assert ((children > 0).any(axis=1) == (kind != NODE_LEAF)).all()
    assert ((parent == -1) == (level == 1)).all()
    for node, own in enumerate(children):
        for c, child in enumerate(own[own > 0] - 1):
            assert child > node
            assert parent[child] == node + 1
            assert which[child] == c + 1
            assert level[child] == level[node] + 1
            half = (box[node, :, 1] + box[node, :, 0]) / 2
            for d in range(dims):
                assert tuple(box[child, d]) == (
                    (half[d], box[node, d, 1]) if c >> d & 1 else (box[node, d, 0], half[d])
                )
        for face, other in enumerate(faces[node]):
            if other > 0:
                assert level[other - 1] == level[node]
                assert faces[other - 1, face ^ 1] == node + 1
            elif other == -1:
                assert level[node] > 1
            else:
                assert other == (-31 if face == 0 else -32)


@pytest.mark.parametrize("name", MESHES)
def test_parents_are_the_means_of_their_children(
    opened: Callable[[Path], object], written: Written, name: str
) -> None:
    with opened(written.plotfile(name)) as file:
        data = {key: file[key][:] for key in state(*np.zeros((3, 1)))}
        gid, box = file["gid"][:], file["bounding box"][:]
    count = 8 if name == "cube" else 4
    zones = data["dens"].shape[1:]
    for node, children in enumerate(gid[:, -count:]):
        if children[0] < 0:
            continue
        for c, child in enumerate(children - 1):
            edges = np.linspace(box[child, 0, 0], box[child, 0, 1], zones[2] + 1)
            weight = (edges[1:] + edges[:-1]) / 2 if name == "cylinder" else np.ones(zones[2])

            def mean(values: np.ndarray, weight: np.ndarray = weight) -> np.ndarray:
                """Over pairs of zones in each direction."""
                weighted = values * weight
                share = np.broadcast_to(weight, zones)
                for axis in range(3):
                    if zones[axis] > 1:
                        weighted = np.add.reduceat(weighted, range(0, weighted.shape[axis], 2), axis=axis)
                        share = np.add.reduceat(share, range(0, share.shape[axis], 2), axis=axis)
                return weighted / share

            low = [8 * (c >> d & 1) if zones[2 - d] > 1 else 0 for d in (2, 1, 0)]
            part = tuple(slice(a, a + (8 if n > 1 else 1)) for a, n in zip(low, zones, strict=True))
            dens = mean(data["dens"][child])
            same(data["dens"][node][part], dens)
            for key in ("velx", "vely", "velz", "ener", "he4", "neon20"):
                expected = mean(data["dens"][child] * data[key][child]) / dens
                same(data[key][node][part], expected)
            for key in ("pres", "temp", "gamc"):
                same(data[key][node][part], mean(data[key][child]))


@pytest.mark.parametrize("name", MESHES)
def test_extremes_and_single_precision(opened: Callable[[Path], object], written: Written, name: str) -> None:
    with opened(written.plotfile(name)) as file, opened(written.plotfile(f"{name}_single")) as single:
        leaves = file["node type"][:] == NODE_LEAF
        for key in state(*np.zeros((3, 1))):
            values = file[key][:]
            assert values.dtype == np.float64
            assert file[key].attrs["minimum"] == values[leaves].min()
            assert file[key].attrs["maximum"] == values[leaves].max()
            assert single[key].dtype == np.float32
            assert file[key].fletcher32
            assert (single[key][:] == values.astype(np.float32)).all()


# ---- A full disk


def test_a_full_disk_leaves_the_last_plotfile(in_any_build: Callable[[str], Path], tmp_path: Path) -> None:
    """On a separate file system of 30 MB, in a separate name space."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is missing on this machine")
    program = in_any_build("test_ember_plotfile")
    own = ["unshare", "--user", "--map-root-user", "--mount"]
    mount = f"mount -t tmpfs -o size=30m none '{tmp_path}'"
    tried = subprocess.run([*own, "sh", "-c", mount], capture_output=True, check=False, timeout=60)
    if tried.returncode != 0:
        pytest.skip("this machine does not allow users to mount file systems")
    done = subprocess.run(
        [*own, "sh", "-c", f"{mount} && cd '{tmp_path}' && exec '{program}' fill"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert os.strerror(errno.ENOSPC) in done.stdout
    assert "(--output)" in done.stdout
