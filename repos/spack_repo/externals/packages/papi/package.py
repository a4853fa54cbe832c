from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class Papi(Package):
    """PAPI of the site; see gcc."""

    has_code = False
