from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Sleef(Package):
    """The site's SLEEF with the GNU vector ABI (libsleefgnuabi); see gcc."""

    has_code = False
