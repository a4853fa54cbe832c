from pathlib import Path

from spack_repo.pagewise.build_systems.kernels import SAME, KernelsPackage, depends_on_same

from spack.package import *


class PagewiseEosTable(KernelsPackage):
    """The table of the electron-positron plasma's free energy, and its program pw-eos-table."""

    # H5LT is in the high-level library; older versions write metadata without checksums.
    depends_on("hdf5@1.10.2:+hl")
    depends_on_same("libpagewise", *SAME)

    def cmake_args(self):
        return [*super().cmake_args(), *self.mini_args("helmholtz/table")]

    def test_table(self):
        """compute a coarse table with pw-eos-table"""
        program = Executable(self.prefix.bin.join("pw-eos-table"))
        program("--densities", "28", "--temperatures", "11", "--output", "coarse.h5")
        assert Path("coarse.h5").stat().st_size > 0
