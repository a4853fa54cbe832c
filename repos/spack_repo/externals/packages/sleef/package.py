from spack_repo.externals.build_systems.site import SitePackage


class Sleef(SitePackage):
    """The site's SLEEF with the GNU vector ABI (libsleefgnuabi)."""
