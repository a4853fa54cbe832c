from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class Mpich(Package):
    """MPICH of the site, its C interface; see gcc."""

    has_code = False

    provides("mpi")
