from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class Glibc(Package):
    """The C library of the machine, which Spack detects by itself; see gcc."""

    has_code = False
    tags = ("runtime",)

    provides("libc")
    provides("iconv")
