from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Openblas(Package):
    """The site's OpenBLAS; see gcc. `extra_attributes: library:` names its file."""

    has_code = False

    provides("blas")
