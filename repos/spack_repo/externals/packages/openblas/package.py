from spack_repo.externals.build_systems.site import SiteBlas


class Openblas(SiteBlas):
    """The site's OpenBLAS."""
