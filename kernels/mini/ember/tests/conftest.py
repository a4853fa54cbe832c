"""Shared by the tests of whole runs: pw-ember of each build."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


class Ember:
    """pw-ember of one build, run in its own folder."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.folder = program, folder

    def attempt(self, *arguments: str, ranks: int = 0, **limits: Any) -> subprocess.CompletedProcess[str]:
        launcher = ("mpiexec", "-n", str(ranks)) if ranks else ()
        return subprocess.run(
            [*launcher, self.program, *arguments],
            cwd=self.folder,
            env={**os.environ, **MPI},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **limits,
        )

    def run(self, *arguments: str, ranks: int = 0) -> dict[str, Any]:
        """The record of a run that must succeed."""
        record = self.folder / "record.jsonl"
        done = self.attempt(*arguments, "--record", str(record), ranks=ranks)
        assert done.returncode == 0, done.stdout + done.stderr
        result = json.loads(record.read_text(encoding="utf-8").splitlines()[-1])
        assert result["validation"]["passed"]
        return result

    def error(self, *arguments: str) -> float:
        """The L1 error of the density."""
        return self.run(*arguments, "--errors")["metrics"]["density_error_l1"]

    def last_zones(self, *arguments: str, ranks: int = 0) -> bytes:
        """Return the bytes of all variables of the leaves' zones after the last step."""
        for file in self.folder.glob("*_hdf5_plt_cnt_*"):
            file.unlink()
        self.run(*arguments, "--plot-interval", "1000000", "--plot-precision", "double", ranks=ranks)
        return self.zones(max(self.folder.glob("*_hdf5_plt_cnt_*")))

    def runs_on_ranks(self) -> bool:
        """Whether this build has MPI, and mpiexec is of its MPI."""
        tiny = ("--problem", "sedov", "--dims", "2", "--steps", "1", "--memory", "16MiB")
        record = self.folder / "ranks.jsonl"
        done = self.attempt(*tiny, "--record", str(record), ranks=2)
        return done.returncode == 0 and len(record.read_text(encoding="utf-8").splitlines()) == 1

    @staticmethod
    def zones(file: Path) -> bytes:
        import h5py

        with h5py.File(file) as opened:
            leaf = opened["node type"][()] == 1
            names = [name.decode().strip() for name in opened["unknown names"][:, 0]]
            return b"".join(opened[name][()][leaf].tobytes() for name in ("bounding box", *names))


@pytest.fixture
def ember(in_build: Callable[[str], Path], tmp_path: Path) -> Ember:
    return Ember(in_build("pw-ember"), tmp_path)
