"""Make norms.txt, which pw-ember compares its states with: python make_norms.py BUILD/pw-ember > norms.txt

Each run is one of the comparison, of the tests, of the studies or of the documentation. Use a program that
passes all other tests: any right build then gets these rows, within the tolerance that validation.f90 names.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

EMBER = Path(__file__).parents[1]
# The studies' 3-d Hydro test has 9 GiB and 2 or 200 steps, their EOS test 1 GiB and 50 steps.
HYDRO = "--problem sedov --memory 9GiB --fill-memory --lowest-level 0 --highest-level 1 --steps"
EOS = "--problem snia2d --memory 1GiB --fill-memory --lowest-level 0 --highest-level 1 --steps"
CROSSING = (
    "--problem sedov --sedov-octant --sedov-radius 12 --roots-x 2 --roots-y 2 --roots-z 2 --memory 64MiB "
    "--lowest-level 0 --highest-level 1 --regrid-interval 1000 --end-time 0.3"
)
RUNS = (
    *(f"{HYDRO} {steps}" for steps in (2, 10)),
    f"{EOS} 50",
    f"{EOS} 5 --table arrays",
    "--problem sedov --memory 160MiB --fill-memory --lowest-level 0 --highest-level 1 --steps 1",
    "--problem sedov --lowest-level 0 --highest-level 1 --steps 2",
    "--problem sedov --memory 64MiB --lowest-level 1 --highest-level 2 --steps 20",
    # A shock that crosses from finer to coarser blocks.
    f"{CROSSING} --steps 200",
    "--problem sod --dims 2 --uniform",
    "--problem flame --steps 20",
    "--problem snia2d --table arrays --highest-level 3 --steps 5",
)
HEAD = """\
# Norms of states; pw-ember compares its own with those of the same parameters. Made by tests/make_norms.py.
# Parameters and steps | L1, L2, Linf of density, of speed, of pressure, and of the density of each species.
"""


def described() -> list[str]:
    """The arguments of each description's comparison and smoke test."""
    kernels = [
        yaml.safe_load((EMBER / name).read_text(encoding="utf-8")) for name in ("kernel.yaml", "snia2d.yaml")
    ]
    return [" ".join(kernel[part]["arguments"]) for kernel in kernels for part in ("compare", "smoke")]


def main(program: str) -> None:
    """Run all, and print their rows."""
    split = [f"{run} --scheme flash" for run in described() if "--problem sedov" in run]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "norms.txt"
        for run in (*described(), *RUNS, *split):
            print(run, file=sys.stderr)
            arguments = [*run.split(), "--threads", "2", "--norms", str(file)]
            # Exit code 1: the state has other norms than before.
            code = subprocess.run([program, *arguments], stdout=subprocess.DEVNULL, check=False).returncode
            if code not in (0, 1):
                sys.exit(f"{program} {run}: exit code {code}")
        rows = dict.fromkeys(file.read_text(encoding="utf-8").splitlines())
    print(HEAD + "\n".join(sorted(rows)))


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
