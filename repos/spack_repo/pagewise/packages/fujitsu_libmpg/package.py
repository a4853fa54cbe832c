from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class FujitsuLibmpg(Package):
    """Fujitsu's large-page library (libmpg) with its linker script, part of A64FX systems."""

    has_code = False
    # libmpg's files have no version number.
    version("1.0")

    def install(self, spec, prefix):
        raise InstallError(
            "libmpg is part of the system: add its prefix to the site's packages.yaml"
        )
