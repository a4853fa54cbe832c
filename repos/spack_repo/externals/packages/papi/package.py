from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class Papi(Package):
    """The site's PAPI; see gcc."""

    has_code = False
