from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class NetlibLapack(Package):
    """The reference BLAS of the site; see gcc. Its file is told by `extra_attributes: library:`."""

    has_code = False

    provides("blas")
