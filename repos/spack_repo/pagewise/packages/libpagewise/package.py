from pathlib import Path

from spack.package import *
from spack_repo.pagewise.build_systems.kernels import KernelsPackage


class Libpagewise(KernelsPackage):
    """Page policies and their proof, measured regions, timers and result records for kernels of pagewise.

    With them, the drivers of its micro-kernels.

    Built from the checkout only (develop:).
    """

    version("develop")

    depends_on("papi", when="+papi")

    def cmake_args(self):
        return [
            *super().cmake_args(),
            self.define("PAGEWISE_LIBRARY", True),
            self.define("PAGEWISE_MICRO", False),
        ]

    def test_package(self):
        """the archives, the Fortran modules and the CMake package are installed"""
        for pattern in (
            "lib*/libpagewise.a",
            "lib*/pagewise/libpw-*-driver.a",
            "include/pagewise/*.mod",
            "lib*/cmake/pagewise/pagewiseConfig.cmake",
        ):
            assert list(Path(self.prefix).glob(pattern)), f"{self.prefix} has no {pattern}"
