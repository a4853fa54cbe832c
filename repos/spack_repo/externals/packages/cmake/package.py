from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Cmake(Package):
    """The site's CMake; see gcc."""

    has_code = False

    # Spack's recipes use this variant.
    variant("ownlibs", default=True, description="Bundled libraries")

    def setup_dependent_package(self, module, dependent_spec):
        module.cmake = Executable(self.spec.prefix.bin.cmake)
        module.ctest = Executable(self.spec.prefix.bin.ctest)
