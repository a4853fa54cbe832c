"""Draw the density of a 2-d plotfile of ember, with the outlines of its blocks.

ember_blast.py PLOTFILE PICTURE

docs/pictures/ember_blast.png is of:
    pw-ember --problem sedov --dims 2 --lowest-level 1 --highest-level 5 --end-time 0.05 --plot-time 0.05
"""

import sys

import h5py
import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

LEAF = 1


def main(plotfile: str, picture: str) -> None:
    """Draws the picture."""
    with h5py.File(plotfile) as file:
        leaf = file["node type"][()] == LEAF
        boxes, density = file["bounding box"][()][leaf], file["dens"][()][leaf]
    figure, axes = plt.subplots(figsize=(7, 6), dpi=110)
    for box, values in zip(boxes, density, strict=True):
        (left, right), (low, high) = box[0], box[1]
        image = axes.imshow(
            values[0],
            origin="lower",
            extent=(left, right, low, high),
            vmin=0,
            vmax=density.max(),
            cmap="inferno",
            interpolation="nearest",
        )
        outline = Rectangle((left, low), right - left, high - low, fill=False, color="0.6", linewidth=0.3)
        axes.add_patch(outline)
    axes.set(xlim=(boxes[:, 0].min(), boxes[:, 0].max()), ylim=(boxes[:, 1].min(), boxes[:, 1].max()))
    axes.set(xlabel="x", ylabel="y", title=f"Density of the blast; {len(boxes)} blocks of 16 x 16 zones")
    figure.colorbar(image, label="density")
    figure.savefig(picture, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
