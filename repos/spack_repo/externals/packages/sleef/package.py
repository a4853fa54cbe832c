from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class Sleef(Package):
    """SLEEF of the site, its functions by the vector ABI of GNU (libsleefgnuabi); see gcc."""

    has_code = False
