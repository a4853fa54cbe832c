from pathlib import Path

from spack.package import *
from spack_repo.pagewise.build_systems.kernels import KernelsPackage, variant_simd


class Libpagewise(KernelsPackage):
    """Page policies and their proof, measured regions, timers and result records for kernels of pagewise.

    With them, the objects of its micro-kernels, drivers and timed code: each is compiled once a compiler,
    and not with every configuration.
    """

    variant_simd()

    depends_on("papi", when="+papi")

    own_parts = ("micro",)

    def cmake_args(self):
        return [
            *super().cmake_args(),
            self.define("PAGEWISE_LIBRARY", True),
            self.define("PAGEWISE_MICRO", False),
            self.define_from_variant("PAGEWISE_SIMD", "simd"),
        ]

    def test_package(self):
        """the archive, the kernels' objects, the Fortran modules and the CMake package are installed"""
        for pattern in (
            "lib*/libpagewise.a",
            "lib*/pagewise/objects-*/pw-*-driver/*.o",
            "lib*/pagewise/objects-*/pw-*-timed-*/*.o",
            "include/pagewise/*.mod",
            "lib*/cmake/pagewise/pagewiseConfig.cmake",
        ):
            assert list(Path(self.prefix).glob(pattern)), f"{self.prefix} has no {pattern}"
