from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class LlvmOpenmp(Package):
    """The site's LLVM OpenMP library (libomp); see gcc."""

    has_code = False
