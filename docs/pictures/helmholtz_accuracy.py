"""Map the error of interpolation in the table of the equation of state, and print its quantiles.

helmholtz_accuracy.py TABLE FINE PICTURE

FINE is a table whose points are those of TABLE and the middles between them: what is computed there
directly is compared with what is interpolated in TABLE, in the middles of its cells.
docs/pictures/helmholtz_accuracy.png is of:
    pw-eos-table --output helmholtz.h5
    pw-eos-table --output fine.h5 --densities 1081 --temperatures 401
"""

import sys

import h5py
import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

# Orders of the derivatives by (x, T) of the nine functions in the file.
ORDERS = [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1), (2, 1), (1, 2), (2, 2)]
QUANTITIES = {
    "pressure": lambda f, x, t: x**2 * f[1, 0],
    "energy": lambda f, x, t: f[0, 0] - t * f[0, 1],
    "entropy": lambda f, x, t: -f[0, 1],
    "dp/drho": lambda f, x, t: x**2 * (2 * f[1, 0] + x * f[2, 0]),
    "dp/dT": lambda f, x, t: x**2 * f[1, 1],
    "cv": lambda f, x, t: -t * f[0, 2],
}
# Weights in the middle of a cell of length 1 of value, first and second derivative at its lower end, of an
# interpolant and its two derivatives; those at the upper end have the sign (-1)^(order + derivative).
MIDDLE = np.array([[1 / 2, 5 / 32, 1 / 64], [-15 / 8, -7 / 16, -1 / 32], [0, -3 / 2, -1 / 4]])
SIGNS = np.array([[(-1.0) ** (k + d) for k in range(3)] for d in range(3)])


def read(path):
    """Points x, T and the functions by the orders of their derivatives: cold (x), thermal (x, T)."""
    with h5py.File(path) as file:
        thermal = file["thermal"][()]
        return (
            file["dye"][()],
            file["temperature"][()],
            dict(enumerate(file["cold"][()])),
            {order: thermal[..., k] for k, order in enumerate(ORDERS)},
        )


def chain(f, x, axis):
    """Derivatives by x made ones by ln(x); `axis` is the one of the two orders that is of x."""

    def order(k, other):
        return (k, other) if axis == 0 else (other, k)

    g = {}
    for other in range(3):
        g[order(0, other)] = f[order(0, other)]
        g[order(1, other)] = x * f[order(1, other)]
        g[order(2, other)] = x * (x * f[order(2, other)] + f[order(1, other)])
    return g


def unchain(g, x, axis):
    """The way back."""

    def order(k, other):
        return (k, other) if axis == 0 else (other, k)

    f = {}
    for other in range(3):
        f[order(0, other)] = g[order(0, other)]
        f[order(1, other)] = g[order(1, other)] / x
        f[order(2, other)] = (g[order(2, other)] - g[order(1, other)]) / x**2
    return f


def logarithm(f):
    """Derivatives of g = ln(-f) from those of f."""
    g = {(0, 0): np.log(-f[0, 0])}
    for a, b in ((1, 0), (0, 1), (2, 0), (0, 2), (1, 1), (2, 1), (1, 2), (2, 2)):
        g[a, b] = rest(f, g, a, b) / f[0, 0]
    return g


def rest(f, g, a, b):
    """What of a derivative of f, by Leibniz' rule for f' = f g', is not f times that derivative of g."""
    axis = 0 if a else 1
    top = (a - 1, b) if axis == 0 else (a, b - 1)
    total = f[a, b].copy()
    for i in range(top[0] + 1):
        for j in range(top[1] + 1):
            if (i, j) == (0, 0):
                continue
            k = (top[0] - i + (axis == 0), top[1] - j + (axis == 1))
            total -= binomial(top[0], i) * binomial(top[1], j) * f[i, j] * g[k]
    return total


def binomial(n, k):
    return 1 if k in {0, n} else n


def exponential(g):
    """Derivatives of f = -exp(g)."""
    f = {(0, 0): -np.exp(g[0, 0])}
    for a, b in ((1, 0), (0, 1), (2, 0), (0, 2), (1, 1)):
        axis = 0 if a else 1
        top = (a - 1, b) if axis == 0 else (a, b - 1)
        total = 0.0
        for i in range(top[0] + 1):
            for j in range(top[1] + 1):
                k = (top[0] - i + (axis == 0), top[1] - j + (axis == 1))
                total = total + binomial(top[0], i) * binomial(top[1], j) * f[i, j] * g[k]
        f[a, b] = total
    return f


def middle(f, dx, dt):
    """Quintic Hermite interpolation, in the middles of the cells of lengths dx (x, 1) and dt (1, T)."""
    out = {}
    for a, b in ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1)):
        total = 0.0
        for i in range(3):
            for j in range(3):
                for up in (0, 1):
                    for right in (0, 1):
                        weight = MIDDLE[a, i] * MIDDLE[b, j]
                        weight *= (SIGNS[a, i] if up else 1) * (SIGNS[b, j] if right else 1)
                        part = f[i, j][up : f[i, j].shape[0] - 1 + up, right : f[i, j].shape[1] - 1 + right]
                        total = total + weight * dx ** (i - a) * dt ** (j - b) * part
        out[a, b] = total
    return out


def middle_cold(f, dx):
    out = {}
    for a in range(3):
        out[a] = sum(
            MIDDLE[a, i] * (SIGNS[a, i] if up else 1) * dx ** (i - a) * f[i][up : len(f[i]) - 1 + up]
            for i in range(3)
            for up in (0, 1)
        )
    return out


def interpolated(x, t, cold, thermal):
    """f and its derivatives by (x, T) in the middles (of the logarithms), as the equation of state has it."""
    du, dv = np.log(x[1] / x[0]), np.log(t[1] / t[0])
    xm, tm = np.sqrt(x[1:] * x[:-1])[:, None], np.sqrt(t[1:] * t[:-1])[None, :]
    g = logarithm(chain(chain(thermal, x[:, None], 0), t[None, :], 1))
    f = exponential(middle(g, du, dv))
    f[2, 1] = f[1, 2] = f[2, 2] = 0 * f[0, 0]
    f = unchain(unchain(f, xm, 0), tm, 1)
    c = middle_cold({0: cold[0], 1: x * cold[1], 2: x * (x * cold[2] + cold[1])}, du)
    xm = xm[:, 0]
    return with_cold(f, {0: c[0], 1: c[1] / xm, 2: (c[2] - c[1]) / xm**2}), xm[:, None], tm


def with_cold(f, cold):
    f = dict(f)
    for k in range(3):
        f[k, 0] = f[k, 0] + cold[k][:, None]
    return f


def main(table: str, fine: str, picture: str) -> None:
    """Prints quantiles and draws the picture."""
    f, x, t = interpolated(*read(table))
    fine_x, fine_t, cold, thermal = read(fine)
    exact = with_cold({k: v[1::2, 1::2] for k, v in thermal.items()}, {k: v[1::2] for k, v in cold.items()})
    assert np.allclose(fine_x[1::2], x[:, 0], rtol=1e-9), "FINE does not have the middles of TABLE's cells"
    assert np.allclose(fine_t[1::2], t[0], rtol=1e-9), "FINE does not have the middles of TABLE's cells"
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.2), dpi=80, sharex=True, sharey=True)
    figure.set_layout_engine("constrained")
    print(f"{'':10}{'median':>10}{'90 %':>10}{'99 %':>10}{'99.9 %':>10}{'largest':>10}")
    for axis, (name, quantity) in zip(axes.flat, QUANTITIES.items(), strict=True):
        right = quantity(exact, x, t)
        # In a plasma of pairs dp/drho is a small difference of numbers of the size of p/rho.
        least = QUANTITIES["pressure"](exact, x, t) if name == "dp/drho" else 0.0
        error = np.abs(quantity(f, x, t) - right) / np.maximum(np.abs(right), least)
        print(f"{name:10}" + "".join(f"{np.quantile(error, q):10.1e}" for q in (0.5, 0.9, 0.99, 0.999, 1)))
        image = axis.imshow(
            np.log10(np.maximum(error, 1e-16)).T,
            origin="lower",
            extent=(np.log10(fine_x[0]), np.log10(fine_x[-1]), np.log10(fine_t[0]), np.log10(fine_t[-1])),
            aspect="auto",
            cmap=mpl.colormaps["YlGnBu"].resampled(7),
            vmin=-14,
            vmax=0,
            interpolation="nearest",
        )
        axis.set_title(name, fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("log10 of rho Ye [g/cm3]")
    for axis in axes[:, 0]:
        axis.set_ylabel("log10 of T [K]")
    figure.colorbar(image, ax=axes, label="log10 of the relative error, electrons and positrons")
    figure.savefig(picture, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main(*sys.argv[1:])
