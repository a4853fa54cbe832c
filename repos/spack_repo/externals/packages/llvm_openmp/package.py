from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class LlvmOpenmp(Package):
    """LLVM's OpenMP of the site (libomp); see gcc."""

    has_code = False
