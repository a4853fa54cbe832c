from pathlib import Path

from spack_repo.pagewise.build_systems.kernels import KernelsPackage, variant_simd

from spack.package import *


class Libpagewise(KernelsPackage):
    """Page policies and verification, measured regions, timers and records for pagewise's kernels.

    It also contains the objects of the micro-kernels, drivers and timed code, which are compiled
    once per compiler instead of once per configuration.
    """

    variant_simd()
    variant(
        "all_variants",
        default=True,
        description="Timed code of every prefetch, store type and loop, not only hardware-regular",
    )

    depends_on("papi", when="+papi")

    def cmake_args(self):
        return [
            *super().cmake_args(),
            self.define("PAGEWISE_LIBRARY", True),
            self.define("PAGEWISE_MICRO", False),
            self.define_from_variant("PAGEWISE_SIMD", "simd"),
            self.define_from_variant("PAGEWISE_ALL_VARIANTS", "all_variants"),
        ]

    def test_package(self):
        """check that archive, objects, modules, CMake package and Flash-X's unit are installed"""
        for pattern in (
            "lib*/libpagewise.a",
            "lib*/pagewise/objects-*/pw-*-driver/**/*.o",
            "lib*/pagewise/objects-*/pw-*-timed-*/**/*.o",
            "include/pagewise/*.mod",
            "lib*/cmake/pagewise/pagewiseConfig.cmake",
            "share/pagewise/flash-x/Config",
        ):
            assert list(Path(self.prefix).glob(pattern)), f"{self.prefix} has no {pattern}"
