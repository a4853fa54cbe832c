from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class FujitsuMpi(Package):
    """The C interface of the site's Fujitsu MPI; see gcc."""

    has_code = False

    provides("mpi")
