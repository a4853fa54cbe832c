from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Papi(Package):
    """The site's PAPI; see gcc."""

    has_code = False
