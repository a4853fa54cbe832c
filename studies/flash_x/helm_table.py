"""Write the table of the public Helmholtz routine, helm_table.dat, from the table of pw-eos-table.

helm_table.py helmholtz.h5 helm_table.dat

The text has four parts, each with one line per point, the densities of the first temperature first
(Timmes and Swesty, ApJS 126, 501, 2000): the free energy and its derivatives; then dP/dx, eta, and the
number density of electrons and positrons, each with d/dx, d/dT and d2/dxdT. Flash-X and many other codes
read it. 17 significant digits determine a double.
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import h5py
except ImportError:
    sys.exit("helm_table.py: error: h5py is missing\n  remedy: run make setup-tests, or pip install h5py")
import numpy as np

#: N_A of CODATA 2022 [1/mol], as in the table.
AVOGADRO = 6.02214076e23
#: Of f, f_x, f_T, f_xx, f_TT, f_xT, f_xxT, f_xTT, f_xxTT: those that have a part without temperature.
WITH_COLD = (0, 1, 3)


def particles(x: np.ndarray, positrons: np.ndarray) -> np.ndarray:
    """Return the density of electrons and positrons from x and ln n_pos, each with its derivatives."""
    ln_n, in_x, in_t, in_both = np.moveaxis(positrons, -1, 0)
    # Cold matter has exp(-6e9) positrons.
    pairs = 2 * np.exp(np.maximum(ln_n, np.log(np.finfo(float).tiny)))
    rows = (
        AVOGADRO * x[:, np.newaxis] + pairs,
        AVOGADRO + pairs * in_x,
        pairs * in_t,
        pairs * (in_both + in_x * in_t),
    )
    return np.stack(rows, axis=-1)


def parts(table: h5py.File) -> list[np.ndarray]:
    """Return the four parts, (density, temperature, column)."""
    free_energy = table["thermal"][()]
    free_energy[:, :, WITH_COLD] += table["cold"][()].T[:, np.newaxis, :]
    x = table["dye"][()]
    return [free_energy, table["dpdx"][()], table["eta"][()], particles(x, table["positrons"][()])]


def main(source: str, target: str) -> None:
    """Write the text."""
    with h5py.File(source) as table, Path(target).open("w", encoding="ascii") as text:
        for part in parts(table):
            lines = part.swapaxes(0, 1).reshape(-1, part.shape[-1])
            np.savetxt(text, lines, fmt="%24.16E")


if __name__ == "__main__":
    if len(sys.argv) != len(("program", "source", "target")):
        sys.exit("usage: helm_table.py helmholtz.h5 helm_table.dat")
    main(*sys.argv[1:])
