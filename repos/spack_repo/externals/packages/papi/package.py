from spack_repo.externals.build_systems.site import SitePackage


class Papi(SitePackage):
    """The site's PAPI."""
