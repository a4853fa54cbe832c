"""The exact solutions against scipy, which solves other equations for them.

The point explosion: the similarity equations as differential equations in r/R, not in closed form. The
Riemann problem: the pressure by bisection, the curves of shocks and rarefactions by the relations across and
along them; and its conservation.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

PrintedBy = Callable[..., list[np.ndarray]]


@pytest.fixture
def printed_by(in_any_build: Callable[[str], Path]) -> PrintedBy:
    """Return a function that returns the lines of numbers that a test program prints."""

    def run(program: str, *arguments: object, stdin: str = "") -> list[np.ndarray]:
        command = [in_any_build(program), *map(str, arguments)]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=True, timeout=60)
        return [np.array(line.split(), dtype=float) for line in done.stdout.splitlines()]

    return run


def explosion(symmetry: int, gamma: float, radii: np.ndarray) -> tuple[float, np.ndarray]:
    """Alpha, and density, velocity and pressure at r/R, in units of those ahead of the shock, D, and rho D^2.

    D is the speed of the shock, and falls as R^(-symmetry/2). The unknowns are v/D, ln(rho), ln(p) and the
    energy inside, over x = ln(r/R).
    """

    def derivatives(x: float, state: np.ndarray) -> np.ndarray:
        lam = np.exp(x)
        u, rho, p = state[0], np.exp(state[1]), np.exp(state[2])
        inflow = u - lam
        # Continuity, momentum and entropy are linear in the derivatives of u, ln(rho), ln(p) by r/R.
        matrix = np.array([[1.0, inflow, 0.0], [inflow, 0.0, p / rho], [0.0, -gamma * inflow, inflow]])
        right = np.array([-(symmetry - 1) * u / lam, 0.5 * symmetry * u, symmetry])
        density_of_energy = 0.5 * rho * u**2 + p / (gamma - 1.0)
        return lam * np.append(np.linalg.solve(matrix, right), density_of_energy * lam ** (symmetry - 1))

    shock = [2.0 / (gamma + 1.0), np.log((gamma + 1.0) / (gamma - 1.0)), np.log(2.0 / (gamma + 1.0)), 0.0]
    end = np.log(1e-3)
    exact = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14}
    solved = solve_ivp(derivatives, (0.0, end), shock, dense_output=True, **exact)
    assert solved.success, solved.message
    u, log_rho, log_p, _ = solved.sol(np.log(radii))
    # Inside 1e-3 the pressure is constant and nothing else carries energy.
    inside = np.exp(solved.y[2, -1]) / (gamma - 1.0) * 1e-3**symmetry / symmetry
    surface = {1: 2.0, 2: 2.0 * np.pi, 3: 4.0 * np.pi}[symmetry]
    alpha = surface * (2.0 / (symmetry + 2)) ** 2 * (inside - solved.y[3, -1])
    return alpha, np.array([np.exp(log_rho), u, np.exp(log_p)])


@pytest.mark.parametrize("symmetry", [1, 2, 3])
@pytest.mark.parametrize("gamma", [1.1, 1.4, 5.0 / 3.0, 2.0, 3.0])
def test_explosion_solves_the_similarity_equations(
    printed_by: PrintedBy, symmetry: int, gamma: float
) -> None:
    lines = printed_by("test_ember_sedov_exact", symmetry, repr(gamma), 100)
    profile = np.array([line for line in lines[1:] if line[0] >= 0.05]).T
    alpha, expected = explosion(symmetry, gamma, profile[0])
    assert lines[0][0] == pytest.approx(alpha, rel=1e-9)
    for got, want in zip(profile[1:], expected, strict=True):
        # The density falls by 20 decades and more towards the centre.
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-20)


CASES = {
    "sod": (1.4, (1.0, 0.0, 1.0), (0.125, 0.0, 0.1)),
    "two rarefactions": (1.4, (1.0, -2.0, 0.4), (1.0, 2.0, 0.4)),
    "blast": (1.4, (1.0, 0.0, 1000.0), (1.0, 0.0, 0.01)),
    "two shocks": (1.4, (5.99924, 19.5975, 460.894), (5.99242, -6.19633, 46.095)),
    "monatomic": (5.0 / 3.0, (1.0, 0.3, 2.0), (3.0, -0.2, 0.5)),
}


def curve(gamma: float, gas: tuple[float, float, float], p: float) -> float:
    """Change of velocity through the wave that takes `gas` to the pressure p, by the wave's relations."""
    rho, _, p_0 = gas
    if p <= p_0:
        # Along a rarefaction dv = dp/(rho c) at constant entropy.
        def slope(q: float) -> float:
            density = rho * (q / p_0) ** (1.0 / gamma)
            return 1.0 / np.sqrt(gamma * q * density)

        # In ln(p), so that no decade is lost.
        ends = np.log(p_0), np.log(p)
        return quad(lambda x: slope(np.exp(x)) * np.exp(x), *ends, epsabs=1e-13, epsrel=1e-13)[0]

    # Through a shock the specific volumes obey Hugoniot's relation, and (dv)^2 = dp d(volume).
    def hugoniot(volume: float) -> float:
        energies = (p * volume - p_0 / rho) / (gamma - 1.0)
        return energies + 0.5 * (p + p_0) * (volume - 1.0 / rho)

    volume = brentq(hugoniot, 1e-3 / rho, 1.0 / rho, xtol=1e-16)
    return float(np.sqrt((p - p_0) * (1.0 / rho - volume)))


@pytest.mark.parametrize("name", CASES)
def test_riemann_problem_meets_between_the_waves(printed_by: PrintedBy, name: str) -> None:
    gamma, left, right = CASES[name]

    def difference(log_p: float) -> float:
        p = float(np.exp(log_p))
        return curve(gamma, left, p) + curve(gamma, right, p) + right[1] - left[1]

    log_p = brentq(difference, np.log(1e-6), np.log(1e5), xtol=1e-14)
    p = float(np.exp(log_p))
    u = 0.5 * (left[1] + right[1] + curve(gamma, right, p) - curve(gamma, left, p))
    star = printed_by("test_ember_riemann_exact", repr(gamma), *map(repr, left + right))[0]
    assert star[1] == pytest.approx(p, rel=1e-8)
    assert star[0] == pytest.approx(u, rel=1e-8, abs=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_riemann_samples_conserve(printed_by: PrintedBy, name: str) -> None:
    """Over a stretch that no wave leaves, mass, momentum and energy change by the fluxes at its ends."""
    gamma, left, right = CASES[name]
    edge = 60.0
    speeds = np.linspace(-edge, edge, 240001)
    speeds = 0.5 * (speeds[1:] + speeds[:-1])
    stdin = "\n".join(map(repr, speeds.tolist()))
    lines = printed_by("test_ember_riemann_exact", repr(gamma), *map(repr, left + right), stdin=stdin)
    _, rho, u, p = np.array(lines[1:]).T

    def conserved(rho: np.ndarray, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        return np.array([rho, rho * u, p / (gamma - 1.0) + 0.5 * rho * u**2])

    def flux(rho: float, u: float, p: float) -> np.ndarray:
        return np.array([rho * u, rho * u**2 + p, u * (gamma / (gamma - 1.0) * p + 0.5 * rho * u**2)])

    total = conserved(rho, u, p).sum(axis=1) * (2.0 * edge / len(speeds))
    before = edge * (conserved(*map(np.array, left)) + conserved(*map(np.array, right)))
    expected = before + flux(*left) - flux(*right)
    # The rule is of first order at jumps.
    scale = np.maximum(np.abs(before), np.abs(conserved(rho, u, p)).max(axis=1))
    np.testing.assert_allclose(total / scale, expected / scale, atol=2e-3)
