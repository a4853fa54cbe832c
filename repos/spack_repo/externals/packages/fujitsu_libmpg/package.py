from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class FujitsuLibmpg(Package):
    """Fujitsu's library of large pages (libmpg) with its linker script, part of a system with A64FX."""

    has_code = False
    # Its files carry none.
    version("1.0")

    def install(self, spec, prefix):
        raise InstallError("libmpg comes with the machine: name it in packages.yaml of the site")
