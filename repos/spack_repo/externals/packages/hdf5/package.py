from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Hdf5(Package):
    """The C library of the site's HDF5; see gcc."""

    has_code = False

    variant("hl", default=True, description="High-level library")
