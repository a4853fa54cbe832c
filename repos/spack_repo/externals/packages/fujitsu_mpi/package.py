from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class FujitsuMpi(Package):
    """The C interface of the site's Fujitsu MPI; see gcc."""

    has_code = False

    provides("mpi")
