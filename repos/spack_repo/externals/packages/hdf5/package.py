from spack_repo.externals.build_systems.site import SitePackage

from spack.package import variant


class Hdf5(SitePackage):
    """The C library of the site's HDF5."""

    variant("hl", default=True, description="High-level library")
