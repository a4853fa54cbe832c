"""Writes reference.csv: the free energy of electrons and positrons at points, independently with 90 digits.

Densities and pressures are Gauss-Legendre sums of the Fermi-Dirac integrals over panels about the Fermi
surface, electrons minus positrons by plain subtraction, the free energy of the cold gas subtracted also;
derivatives are central differences of free energies at 3 x 3 points, with steps of 1e-9 of density and
temperature, whose error is of the order 1e-17. The cancellation of up to 36 + 28 digits is why there
are 90.

    python reference.py            the points missing in the file (7 s each)
    python reference.py --check    two points with 40 more Gauss points in each panel: digits that agree
"""

from __future__ import annotations

import argparse
import csv
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import mpmath
from mpmath import mpf

if TYPE_CHECKING:
    from collections.abc import Iterator

mpmath.mp.dps = 90
STEP = mpf(10) ** -9
ORDER = 340
FAR = 230  # kT: what is left of exp(-230) is 1e-100
FILE = Path(__file__).with_name("reference.csv")
COLUMNS = ["dye", "temperature", "f", "f_x", "f_T", "f_xx", "f_TT", "f_xT", "f_xxT", "f_xTT", "f_xxTT"]
COLUMNS += ["ln_positrons", "ln_positrons_x", "ln_positrons_T", "ln_positrons_xT"]

# CODATA 2022, cgs.
LIGHT = mpf("2.99792458e10")
PLANCK = mpf("6.62607015e-27")
BOLTZMANN = mpf("1.380649e-16")
AVOGADRO = mpf("6.02214076e23")
ELECTRON = mpf("9.1093837139e-28")
REST_ENERGY = ELECTRON * LIGHT**2
UNIT_DENSITY = 8 * mpmath.pi * (ELECTRON * LIGHT / PLANCK) ** 3

# Decimal logarithms of rho Ye [g/cm^3] and T [K].
POINTS = [
    # corners
    (-12, 3), (-12, 13), (15, 3), (15, 13),
    # neither degenerate nor hot, to where quantum corrections show
    (-12, 5), (-8, 3.5), (-10, 7.5), (-6, 5), (-3, 6), (0, 7), (2, 8), (-7, 3), (-6.3, 3.05),
    # where pairs appear, and where they are all
    (-12, 8.4), (-12, 9), (-6, 9), (0, 9), (4, 9.2), (-12, 10), (0, 10), (6, 10), (-5, 11.5), (5, 12),
    (12, 12.9), (9, 11),
    # partly degenerate, not and fully relativistic
    (-5.5, 3), (-2, 4.5), (0, 5.4), (3, 7), (4, 8.25), (4.5, 8.2), (6, 9), (7, 9.3), (8, 10), (11, 11.2),
    # just below and above a Fermi energy of 50 kT
    (-1.2, 3), (-1.1, 3), (2.25, 5.3), (2.3, 5.3), (6.3, 7.9), (6.45, 7.9), (11.9, 10.05), (11.95, 10.05),
    # and a chemical potential of -kT
    (-1.1, 5), (-0.95, 5),
    # a white dwarf, hot and cold; matter without temperature
    (5, 7), (6, 7), (9.0413927, 7), (9.0413927, 9.6), (12, 9.5), (14, 10), (10, 5), (2, 4), (-1, 3),
]  # fmt: skip


def gauss(order: int) -> list[tuple[mpf, mpf]]:
    """Points and weights on [-1, 1]: Newton's method on Legendre's polynomial."""
    rule = []
    for k in range(1, order // 2 + 1):
        x = mpmath.cos(mpmath.pi * (k - mpf("0.25")) / (order + mpf("0.5")))
        for _ in range(20):
            before, here = mpf(1), x
            for j in range(2, order + 1):
                before, here = here, ((2 * j - 1) * x * here - (j - 1) * before) / j
            slope = order * (x * here - before) / (x * x - 1)
            change = here / slope
            x -= change
            if abs(change) < mpf(10) ** -(mpmath.mp.dps - 5):
                break
        weight = 2 / ((1 - x * x) * slope * slope)
        rule += [(-x, weight), (x, weight)]
    return rule


class Gas:
    """Electrons and positrons at one temperature, near one chemical potential.

    Units are m c^2 and 8 pi (m c/h)^3.
    """

    def __init__(self, beta: mpf, about: mpf, rule: list[tuple[mpf, mpf]]) -> None:
        self.beta = beta
        self.about = about
        self.bottom = max(mpf(0), about - FAR * beta)
        top = max(about, mpf(0)) + FAR * beta
        self.nodes = list(self.panels(self.bottom, top, rule))
        # Where the electrons' panels do not begin at zero, positrons have their own.
        self.apart = list(self.panels(mpf(0), FAR * beta, rule)) if self.bottom > 0 else []
        self.pair = mpmath.exp((2 + 2 * about) / beta)
        q = mpmath.sqrt(self.bottom * (self.bottom + 2))
        self.full = (q**3 / 3, cold_pressure(q))

    def panels(self, bottom: mpf, top: mpf, rule: list[tuple[mpf, mpf]]) -> Iterator[tuple[mpf, mpf, mpf]]:
        """exp((E - about)/kT), weights of density and pressure. E = cosh u - 1 leaves no root at E = 0."""
        edges = [bottom, bottom + 2 * self.beta]
        while edges[-1] < top:
            edges.append(edges[-1] + 20 * self.beta)
        edges = [mpmath.acosh(1 + e) for e in edges]
        for a, b in itertools.pairwise(edges):
            for x, weight in rule:
                u = (a + b) / 2 + x * (b - a) / 2
                energy, p = mpmath.cosh(u), mpmath.sinh(u)
                w = weight * (b - a) / 2
                yield mpmath.exp((energy - 1 - self.about) / self.beta), w * p**2 * energy, w * p**4 / 3

    def sums(self, w: mpf) -> tuple[mpf, mpf, mpf, mpf]:
        """Net density, its derivative in w, pressure, and positrons' density at the chemical potential w."""
        shift = mpmath.exp((w - self.about) / self.beta)
        back = self.pair * shift
        net, slope, pressure, positrons = self.full[0], mpf(0), self.full[1], mpf(0)
        for y, density, weight in self.nodes:
            f = 1 / (1 + y / shift)
            fp = 1 / (1 + y * back)
            net += density * (f - fp)
            positrons += density * fp
            slope += density * (f * (1 - f) + fp * (1 - fp))
            pressure += weight * (f + fp)
        if self.apart:
            positrons = sum(density / (1 + y * back) for y, density, _ in self.apart)
        return net, slope / self.beta, pressure, positrons


def cold_pressure(q: mpf) -> mpf:
    return (q * (2 * q**2 / 3 - 1) * mpmath.sqrt(1 + q**2) + mpmath.asinh(q)) / 8


def cold_free_energy(n: mpf) -> mpf:
    q = mpmath.cbrt(3 * n)
    return (mpmath.sqrt(1 + q * q) - 1) * n - cold_pressure(q)


def estimate(n: mpf, beta: mpf) -> mpf:
    """A chemical potential for the panels, by bisection and mpmath's quadrature in few digits."""
    with mpmath.workdps(20):
        q = mpmath.cbrt(3 * n)
        high = mpmath.sqrt(1 + q * q) - 1
        if high > 300 * beta:
            return high

        def density(w: mpf) -> mpf:
            # The net density's integrand, the difference of both in one piece.
            def integrand(u: mpf) -> mpf:
                e = mpmath.cosh(u)
                both = mpmath.exp(-(e - 1 - w) / beta)
                anti = mpmath.exp(-(e + 1 + w) / beta)
                return mpmath.sinh(u) ** 2 * e * (both - anti) / ((1 + both) * (1 + anti))

            top = max(w, mpf(0)) + 60 * beta
            cuts = [mpmath.acosh(1 + top * k / 12) for k in range(13)]
            return mpmath.quad(integrand, cuts, maxdegree=5)

        low = mpf(-1)
        if beta < 1:
            low = max(low, beta * mpmath.log(n / (2 * beta**1.5)) - 5 * beta)
        for _ in range(40):
            middle = (low + high) / 2
            if density(middle) > n:
                high = middle
            else:
                low = middle
        return (low + high) / 2


def point(log_x: float, log_t: float, order: int = ORDER) -> list[mpf]:
    x, t = mpf(float(10.0**log_x)), mpf(float(10.0**log_t))
    rule = gauss_rule(order)
    n = AVOGADRO * x / UNIT_DENSITY
    beta = BOLTZMANN * t / REST_ENERGY
    w = estimate(n, beta)
    f, ln_p = {}, {}
    for j in (0, -1, 1):
        gas = Gas(beta * (1 + j * STEP), w, rule)
        for i in (0, -1, 1):
            wanted = n * (1 + i * STEP)
            for _ in range(60):
                net, slope, pressure, positrons = gas.sums(w)
                change = (wanted - net) / slope
                w += change
                # Stationary: the free energy's error is that of w squared.
                if abs(change) < mpf(10) ** -46 * min(beta, abs(w + 1)):
                    break
            else:
                raise ArithmeticError(f"no chemical potential at {x}, {t}")
            net, slope, pressure, positrons = gas.sums(w)
            # The last difference of net and wanted is corrected to first order.
            w += (wanted - net) / slope
            pressure += net * (wanted - net) / slope
            f[i, j] = ((w * wanted - pressure) - cold_free_energy(wanted)) / wanted
            ln_p[i, j] = mpmath.log(positrons * UNIT_DENSITY) - (wanted - net) / slope / gas.beta

    def derivative(g: dict[tuple[int, int], mpf], in_x: int, in_t: int) -> mpf:
        weights = {0: {0: mpf(1)}, 1: {-1: mpf(-0.5), 1: mpf(0.5)}, 2: {-1: mpf(1), 0: mpf(-2), 1: mpf(1)}}
        total = sum(a * b * g[i, j] for i, a in weights[in_x].items() for j, b in weights[in_t].items())
        return total / (x * STEP) ** in_x / (t * STEP) ** in_t

    orders = [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1), (2, 1), (1, 2), (2, 2)]
    values = [derivative(f, *o) * AVOGADRO * REST_ENERGY for o in orders]
    return [x, t, *values, *(derivative(ln_p, *o) for o in [(0, 0), (1, 0), (0, 1), (1, 1)])]


RULES: dict[int, list[tuple[mpf, mpf]]] = {}


def gauss_rule(order: int) -> list[tuple[mpf, mpf]]:
    if order not in RULES:
        RULES[order] = gauss(order)
    return RULES[order]


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=FILE)
    arguments = parser.parse_args()
    if arguments.check:
        for where in POINTS[1], POINTS[26]:
            first, second = point(*where), point(*where, ORDER + 40)
            errors = [abs(a / b - 1) + mpf(10) ** -80 for a, b in zip(first, second, strict=True)]
            print(where, [int(-mpmath.log10(error)) for error in errors])
        return
    done = {}
    if arguments.output.exists():
        with arguments.output.open(encoding="ascii") as file:
            done = {tuple(row[:2]): row for row in csv.reader(line for line in file if line[0] not in "#d")}
    origin = f"# by reference.py, mpmath {mpmath.__version__}, {mpmath.mp.dps} digits; CODATA 2022, cgs and K"
    lines = [origin + "\n", ",".join(COLUMNS) + "\n"]
    for log_x, log_t in POINTS:
        key = (repr(float(10.0**log_x)), repr(float(10.0**log_t)))
        row = done.get(key) or [*key, *(mpmath.nstr(v, 22) for v in point(log_x, log_t)[2:])]
        lines.append(",".join(row) + "\n")
        arguments.output.write_text("".join(lines), encoding="ascii")
        print(key, flush=True)


if __name__ == "__main__":
    main()
