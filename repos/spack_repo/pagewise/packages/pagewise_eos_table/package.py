from pathlib import Path

from spack_repo.pagewise.build_systems.kernels import MiniPackage

from spack.package import *


class PagewiseEosTable(MiniPackage):
    """The table of the electron-positron plasma's free energy, and its program pw-eos-table."""

    mini = "helmholtz/table"

    def test_table(self):
        """compute a coarse table with pw-eos-table"""
        program = Executable(self.prefix.bin.join("pw-eos-table"))
        program("--densities", "28", "--temperatures", "11", "--output", "coarse.h5")
        assert Path("coarse.h5").stat().st_size > 0
