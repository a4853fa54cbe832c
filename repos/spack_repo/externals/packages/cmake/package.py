from spack_repo.externals.build_systems.site import SitePackage

from spack.package import *


class Cmake(SitePackage):
    """The site's CMake."""

    # Spack's recipes use this variant.
    variant("ownlibs", default=True, description="Bundled libraries")

    def setup_dependent_package(self, module, dependent_spec):
        module.cmake = Executable(self.spec.prefix.bin.cmake)
        module.ctest = Executable(self.spec.prefix.bin.ctest)
