from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class LlvmOpenmp(Package):
    """The site's LLVM OpenMP library (libomp); see gcc."""

    has_code = False
