from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class Glibc(Package):
    """The machine's C library, which Spack detects; see gcc."""

    has_code = False
    tags = ("runtime",)

    provides("libc")
    provides("iconv")
