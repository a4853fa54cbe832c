from pathlib import Path

from spack_repo.pagewise.build_systems.kernels import MiniPackage

from spack.package import *


class PagewiseEosTable(MiniPackage):
    """The table of the electron-positron plasma's free energy, and its program pw-eos-table.

    pw-eos-table also writes `helm_table.dat`, the table of the public Helmholtz routine, for codes
    that contain that routine.
    """

    mini = "helmholtz/table"

    def test_table(self):
        """compute a coarse table with pw-eos-table"""
        program = Executable(self.prefix.bin.join("pw-eos-table"))
        coarse = ("--densities", "28", "--temperatures", "11")
        program(*coarse, "--output", "coarse.h5")
        program(*coarse, "--format", "helmholtz", "--output", "coarse.dat")
        assert Path("coarse.h5").stat().st_size > 0
        assert Path("coarse.dat").stat().st_size > 0
