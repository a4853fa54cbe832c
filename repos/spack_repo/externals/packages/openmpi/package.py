from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class Openmpi(Package):
    """Open MPI of the site, its C interface; see gcc."""

    has_code = False

    provides("mpi")
