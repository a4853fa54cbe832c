from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Mvapich2(Package):
    """The C interface of the site's MVAPICH; see gcc."""

    has_code = False

    provides("mpi")
