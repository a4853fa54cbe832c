from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class Hdf5(Package):
    """HDF5 of the site, its C library; see gcc."""

    has_code = False
