from spack_repo.externals.build_systems.site import SitePackage


class LlvmOpenmp(SitePackage):
    """The site's LLVM OpenMP library (libomp)."""
