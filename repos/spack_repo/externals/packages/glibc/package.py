from spack_repo.externals.build_systems.site import SitePackage

from spack.package import provides


class Glibc(SitePackage):
    """The machine's C library, which Spack detects."""

    tags = ("runtime",)

    provides("libc", "iconv")
