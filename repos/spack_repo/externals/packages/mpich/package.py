from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Mpich(Package):
    """The C interface of the site's MPICH; see gcc."""

    has_code = False

    provides("mpi")
