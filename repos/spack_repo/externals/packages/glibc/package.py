from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Glibc(Package):
    """The machine's C library, which Spack detects; see gcc."""

    has_code = False
    tags = ("runtime",)

    provides("libc")
    provides("iconv")
