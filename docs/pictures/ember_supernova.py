"""Draw a burning star of ember from a plotfile of snia2d: density and ash, with the outlines of the blocks.

ember_supernova.py PLOTFILE PICTURE

docs/pictures/ember_supernova.png is of:
    pw-ember --problem snia2d --plot-time 1
"""

import sys

import h5py
import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Rectangle

LEAF = 1
REACH = 2600.0  # km
KM = 1e5


def draw(axes: Axes, boxes: np.ndarray, blocks: np.ndarray, look: dict, side: int) -> object:
    """One variable, to the right of the axis or, mirrored, to its left."""
    image = None
    for box, values in zip(boxes / KM, blocks, strict=True):
        (left, right), (low, high) = box[0], box[1]
        image = axes.imshow(
            values[0][:, ::side],
            origin="lower",
            extent=(left, right, low, high) if side > 0 else (-right, -left, low, high),
            interpolation="nearest",
            **look,
        )
        corner = left if side > 0 else -right
        outline = Rectangle((corner, low), right - left, high - low, fill=False, color="0.7", linewidth=0.2)
        axes.add_patch(outline)
    return image


def main(plotfile: str, picture: str) -> None:
    """Draws the picture."""
    with h5py.File(plotfile) as file:
        leaf = file["node type"][()] == LEAF
        boxes, density, ash = (file[name][()][leaf] for name in ("bounding box", "dens", "ash"))
        scalars = {name.decode().strip(): value for name, value in file["real scalars"][()]}
    figure, axes = plt.subplots(figsize=(9, 7), dpi=110)
    left = draw(axes, boxes, density, {"norm": LogNorm(1e4, 3e9), "cmap": "inferno"}, -1)
    right = draw(axes, boxes, ash, {"norm": Normalize(0, 1), "cmap": "viridis"}, 1)
    axes.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), xlabel="r [km]", ylabel="z [km]")
    axes.set_title(f"A white dwarf after {scalars['time']:.2f} s; {len(boxes)} blocks of 16 x 16 zones")
    figure.colorbar(right, label="mass fraction of ash", pad=0.02, shrink=0.8)
    figure.colorbar(left, label="density [g/cm$^3$]", pad=0.02, shrink=0.8)
    figure.savefig(picture, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
