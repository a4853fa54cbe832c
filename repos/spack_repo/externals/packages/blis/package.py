from spack_repo.externals.build_systems.site import SiteBlas


class Blis(SiteBlas):
    """The site's BLIS."""
