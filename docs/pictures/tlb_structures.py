"""Draw which pages four access patterns touch, and which accesses miss the L1 data TLB of an A64FX.

tlb_structures.py PICTURE

Computed from sizes alone: no program runs. Blocks have 16^3 zones, 4 guard cells on each side and 16 variables. The table has
541 x 201 points, as that of the public Helmholtz routine.
"""

import sys
from collections import deque
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

#: Pages and entries of the first-level data TLB: runners/pagewise/workloads/simulation/geometries/a64fx.yaml.
BASE, HUGE, ENTRIES = 64 * 1024, 2 * 1024 * 1024, 16
WORD = 8
ZONES, VARIABLES, GATHERED = 24, 16, 7
DENSITIES, TEMPERATURES, ARRAYS, NODE = 541, 201, 21, 9
LOOK_UPS = 12


def zone(i: int, j: int, k: int) -> int:
    """The address of the first variable of a zone in a block, (variable, i, j, k)."""
    return WORD * VARIABLES * (i + ZONES * (j + ZONES * k))


def pencils() -> Iterator[int]:
    """A pencil along z and its neighbour, gathered variable by variable."""
    for i in (8, 9):
        for variable in range(GATHERED):
            for k in range(ZONES):
                yield zone(i, 8, k) + WORD * variable


def planes() -> Iterator[int]:
    """The rows of some planes, all variables of a zone together: one access per zone."""
    for k in range(ZONES):
        for j in range(0, ZONES, 2):
            yield zone(8, j, k)


def cells() -> Iterator[tuple[int, int]]:
    """Random cells of the table."""
    random = np.random.default_rng(1)
    for _ in range(LOOK_UPS):
        yield int(random.integers(DENSITIES - 1)), int(random.integers(TEMPERATURES - 1))


def arrays() -> Iterator[int]:
    """The four corners of a cell, in each array (density, temperature)."""
    for density, temperature in cells():
        for array in range(ARRAYS):
            for point in ((0, 0), (1, 0), (0, 1), (1, 1)):
                row = TEMPERATURES * array + temperature + point[1]
                yield WORD * (density + point[0] + DENSITIES * row)


def nodes() -> Iterator[int]:
    """The four corners of a cell, the values of each together (temperature, density)."""
    for density, temperature in cells():
        for point in ((0, 0), (0, 1), (1, 0), (1, 1)):
            yield WORD * NODE * (temperature + point[1] + TEMPERATURES * (density + point[0]))


def misses(addresses: list[int], page: int) -> list[bool]:
    """Whether each access misses a fully associative TLB that replaces the oldest entry."""
    held: deque[int] = deque(maxlen=ENTRIES)
    missed = []
    for number in (address // page for address in addresses):
        missed.append(number not in held)
        if missed[-1]:
            held.append(number)
    return missed


def main(picture: str) -> None:
    """Draws the picture."""
    parts = (
        ("Pencils along z, gathered by variable", list(pencils())),
        ("Planes, streamed", list(planes())),
        (f"Random look-ups in {ARRAYS} arrays", list(arrays())),
        ("The same in packed nodes", list(nodes())),
    )
    figure, panels = plt.subplots(2, 2, figsize=(9, 6.4), dpi=100, layout="constrained")
    for axes, (title, addresses) in zip(panels.flat, parts, strict=True):
        missed = np.array(misses(addresses, BASE))
        at, page = np.arange(len(addresses)), np.array(addresses) / BASE
        axes.scatter(at[~missed], page[~missed], s=5, color="0.6", label="hit")
        axes.scatter(at[missed], page[missed], s=7, color="tab:red", label="miss")
        axes.axhspan(0, ENTRIES, color="tab:blue", alpha=0.08, zorder=0, label=f"{ENTRIES} pages")
        axes.set(xlabel="access", ylabel="page of 64 KiB")
        base, huge = (sum(misses(addresses, size)) for size in (BASE, HUGE))
        axes.set_title(
            f"{title}\n{len(addresses)} accesses: {base} misses, {huge} with huge pages", fontsize=10
        )
        print(f"{title}: {len(addresses)} accesses, misses {base}, with huge pages {huge}")
    panels[0, 1].legend(loc="upper left", fontsize=8)
    figure.savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
